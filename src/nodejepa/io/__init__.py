"""A user's own graph in, embeddings out."""

from nodejepa.io.convert import as_graph, from_networkx, from_pyg, to_networkx, to_pyg
from nodejepa.io.embeddings import write_embeddings
from nodejepa.io.feature_schema import FeatureSchema
from nodejepa.io.load import LoadedGraph, load_graph, read_graph
from nodejepa.io.report import ReadReport

__all__ = [
    "FeatureSchema",
    "LoadedGraph",
    "ReadReport",
    "as_graph",
    "from_networkx",
    "from_pyg",
    "load_graph",
    "read_graph",
    "to_networkx",
    "to_pyg",
    "write_embeddings",
]
