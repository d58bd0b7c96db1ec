"""The practitioner's path: files in, embeddings out, nothing lost.

inspect      the data report: what was read, what the graph is like
plan         estimated time and memory against what there is, and settings that fit
embed        read, train, embed, score, write; ``places`` says where to
embed_stored the same for a graph on disk
apply        a trained encoder on a graph it has not seen; ``run_schema`` says how to read that
scores       what the embeddings are worth, where there are labels
page         the HTML report; the manifest (``run_schema``) is the same for programs
compare      several methods on one graph (``bench`` measures), and which to take (``recommend``)
"""

from nodejepa.workflow.apply import apply_run
from nodejepa.workflow.compare import COMPARED, EMBEDDINGS, PAGE, RESULT, Comparison, compare, compare_files
from nodejepa.workflow.embed import EmbeddedGraph, embed_graph
from nodejepa.workflow.embed_stored import EmbeddedStore, embed_stored_graph
from nodejepa.workflow.inspect import Inspection, inspect_graph, make_trainable
from nodejepa.workflow.recommend import MethodRow

__all__ = [
    "COMPARED",
    "EMBEDDINGS",
    "PAGE",
    "RESULT",
    "Comparison",
    "EmbeddedGraph",
    "EmbeddedStore",
    "Inspection",
    "MethodRow",
    "apply_run",
    "compare",
    "compare_files",
    "embed_graph",
    "embed_stored_graph",
    "inspect_graph",
    "make_trainable",
]
