"""Every table of a study as data: pure functions of its records.

accuracy       the paper's Table 1 under both probes
ranks          average ranks
significance   tests against every other method, wins / ties / losses
fewshot, ablation, geometry, efficiency, finetune   one table of the paper each, or what it promised
columns, marks, wording   what several of them share
"""
