"""A user's own graph in, embeddings out."""

from nodejepa.io.assemble import graph_with_features, refuse_another
from nodejepa.io.convert import as_graph, embeddings_frame, from_networkx, from_pyg, to_networkx, to_pyg
from nodejepa.io.embeddings import write_embeddings
from nodejepa.io.embeddings_reader import StoredEmbeddings, read_columns, read_embeddings
from nodejepa.io.export import EXPORT_FORMATS, export_embeddings
from nodejepa.io.feature_schema import FeatureSchema
from nodejepa.io.id_lookup import find_row, find_rows
from nodejepa.io.load import LoadedGraph, load_graph, read_graph
from nodejepa.io.reading_options import ReadingOptions

__all__ = [
    "EXPORT_FORMATS",
    "FeatureSchema",
    "LoadedGraph",
    "ReadingOptions",
    "StoredEmbeddings",
    "as_graph",
    "embeddings_frame",
    "export_embeddings",
    "find_row",
    "find_rows",
    "from_networkx",
    "from_pyg",
    "graph_with_features",
    "load_graph",
    "read_columns",
    "read_embeddings",
    "read_graph",
    "refuse_another",
    "to_networkx",
    "to_pyg",
    "write_embeddings",
]
