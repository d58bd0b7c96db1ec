"""The practitioner's path: files or a graph store in, embeddings out, nothing lost.

read         a user's graph in memory or on disk, how it was read, and the data report
use          what features are made of: columns, structure or both
plan         estimated time and memory against what there is, and settings that fit
embed        read, train, embed, write, then score; where to
apply        a trained encoder on a graph it has not seen
scores       what the embeddings are worth, where there are labels; the HTML report, and the manifest
compare      several methods on one graph, and which to take (``recommend``)
"""

from nodejepa.workflow.apply import apply_run
from nodejepa.workflow.compare import COMPARED, EMBEDDINGS, PAGE, RESULT, Comparison, compare, compare_files
from nodejepa.workflow.embed import ScoringInterrupted, embed_graph
from nodejepa.workflow.read import Inspection, inspect_graph, make_trainable
from nodejepa.workflow.recommend import MethodRow
from nodejepa.workflow.scores import EmbeddedGraph
from nodejepa.workflow.use import choose_features

__all__ = [
    "COMPARED",
    "EMBEDDINGS",
    "PAGE",
    "RESULT",
    "Comparison",
    "EmbeddedGraph",
    "Inspection",
    "MethodRow",
    "ScoringInterrupted",
    "apply_run",
    "choose_features",
    "compare",
    "compare_files",
    "embed_graph",
    "inspect_graph",
    "make_trainable",
]
