"""Studies: methods scored on named graphs over many seeds.

spec       a TOML file -> cells, and when two results are the same result
runner     measures what has no record yet, a process for each cell
measure    one cell, inside its process -> its record; trained networks are kept and shared
records    records.jsonl, appended safely
table      records -> a plain table of any study

What knows the studies of this repository and the paper's tables stands beside them, in ``studies/render``.
"""
