"""Figures of a study: pure functions of its frame. One without any data is ``None`` and not written.

panels     one colour, marker and hatch per method, saving without dates, and the layouts that several share
accuracy   accuracy, average rank, few labels, the ablation, geometry, and which differences hold
time       accuracy against time, total and per-epoch time
"""
