"""Studies: methods scored on named graphs over many seeds, their reports, and the demo.

scoring   a method or a trained run on a data set, with everything needed to repeat the figure
demo      the built-in graph from start to end: embeddings, few-shot scores, comparison with the floors
render    every table and figure of a study from its records
tables, figures, statistics, paper   what render is made of; the paper's own figures are in paper.toml
report    one interactive HTML page on runs, studies or the demo
"""
