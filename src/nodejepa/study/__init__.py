"""Studies: methods scored on named graphs over many seeds, their reports, and the demo.

spec, cell   which cells a study has
runner    measures what has no record yet: plan, order and outcome; processes starts a worker for each cell
measure   one cell, inside its worker; records keeps what it found
scoring   a method or a trained run on a data set, with everything needed to repeat the figure
demo      the built-in graph from start to end: embeddings, few-shot scores, comparison with the floors
render    every table and figure of a study from its records
tables, figures, statistics, paper   what render is made of; the paper's own figures are in paper.toml
report    one interactive HTML page on runs, studies or the demo
"""
