"""A graph on disk: plain arrays in a folder, checked, with an identity made once.

layout       which arrays there are, how large each must be, the manifest
graph        ``StoredGraph``: the arrays by rows, never the whole of them
prepare      a user's files -> a store, in steps that a killed process goes on from
numbering    ids of any kind -> positions; ``edges`` sorts them on disk, ``features`` encodes columns and
             has the graph described, ``feature_rows`` writes them dense or sparse; ``seal`` ends it
labels       beside the graph, for who scores embeddings (``dataset``) or writes them out
ordered      a copy whose rows are ordered by part, to train from
"""

from nodejepa.store.graph import StoredGraph

__all__ = ["StoredGraph"]
