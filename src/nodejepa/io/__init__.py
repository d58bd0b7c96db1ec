"""A user's own graph in, embeddings out."""

from nodejepa.io.convert import as_graph, from_networkx, from_pyg, to_networkx, to_pyg
from nodejepa.io.embeddings import write_embeddings

__all__ = ["as_graph", "from_networkx", "from_pyg", "to_networkx", "to_pyg", "write_embeddings"]
