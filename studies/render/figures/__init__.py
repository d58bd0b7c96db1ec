"""Figures of a study, drawn with matplotlib (``pip install nodejepa[figures]``): pure functions of records.

style         one colour, marker and hatch a method everywhere; saving without dates
panels        the layouts that several figures share
accuracy      accuracy, average rank, few labels, the ablation, how much of their space embeddings use
differences   significant wins, difference to GraphMAE
time          accuracy against time, total and per-epoch time

A figure without any data is ``None`` and not written.
"""
