"""The practitioner's path: files in, embeddings out, nothing lost.

inspect      the data report: what was read, what the graph is like
plan         estimated time and memory against what there is, and settings that fit
embed        read, train, embed, score, write; ``memory``, ``places`` and ``timing`` serve it
apply        a trained encoder on a graph it has not seen; ``run_schema`` says how to read that
scores       what the embeddings are worth, where there are labels
page         the HTML report; ``manifest`` is the same for programs
"""

from nodejepa.owngraph.apply import AppliedRun, apply_run
from nodejepa.owngraph.embed import EmbeddedGraph, embed_graph, make_trainable
from nodejepa.owngraph.inspect import Inspection, inspect_graph

__all__ = [
    "AppliedRun",
    "EmbeddedGraph",
    "Inspection",
    "apply_run",
    "embed_graph",
    "inspect_graph",
    "make_trainable",
]
