"""Studies: methods scored on named graphs over many seeds, and the demo with its page.

scoring   a method or a trained run on a data set, with everything needed to repeat the figure
demo      the built-in graph from start to end: embeddings, few-shot scores, comparison with the floors
page      the demo's HTML page; scatter draws its maps
"""
