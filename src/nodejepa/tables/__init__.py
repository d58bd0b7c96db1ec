"""A user's own graph in, embeddings out.

options     how files are read, what columns mean by their names, and what became of every row and column
table       a file: what it is by its content, how large it becomes, its table; ``text`` opens delimited text
ids         ids of any kind, and the column that holds them; ``numbering`` them
edges       as positions of nodes and as an adjacency
cells       what cells mean; ``columns`` and ``schema`` make features of them, and of the structure
read        all of it to a graph in memory; ``prepare`` to a graph store
store       a graph on disk; ``sorted_parts`` what others have sorted; ``ordered`` a copy to train from
convert     PyG, NetworkX, SciPy, pandas
embeddings  out and back
"""

from nodejepa.neighbours import find_row, find_rows
from nodejepa.tables.convert import as_graph, embeddings_frame, from_networkx, from_pyg
from nodejepa.tables.embeddings import StoredEmbeddings, read_columns, read_embeddings, write_embeddings
from nodejepa.tables.options import ReadingOptions
from nodejepa.tables.read import LoadedGraph, load_graph, read_graph
from nodejepa.tables.schema import FeatureSchema, graph_with_features, refuse_another
from nodejepa.tables.store import StoredGraph
from nodejepa.tables.table import is_store

__all__ = [
    "FeatureSchema",
    "LoadedGraph",
    "ReadingOptions",
    "StoredEmbeddings",
    "StoredGraph",
    "as_graph",
    "embeddings_frame",
    "find_row",
    "find_rows",
    "from_networkx",
    "from_pyg",
    "graph_with_features",
    "is_store",
    "load_graph",
    "read_columns",
    "read_embeddings",
    "read_graph",
    "refuse_another",
    "write_embeddings",
]
