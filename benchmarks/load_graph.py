"""Row ``load_graph``: an edge list with string ids, file to adjacency, against pandas and NetworkX."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.timing import Row, best_of
from nodejepa.tables import read_graph

EDGES = 1_000_000


def run() -> Row:
    import networkx as nx
    import pandas as pd

    def naive() -> tuple[list[str], sp.csr_array]:
        graph = nx.from_pandas_edgelist(pd.read_csv(path), "source", "target")
        graph.remove_edges_from(nx.selfloop_edges(graph))
        return list(graph), nx.to_scipy_sparse_array(graph, format="csr")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        write_edges(path)
        # features of the nodes are another matter: the naive route has none
        loaded = read_graph(path, structural=False)
        names, adjacency = naive()
        ours_s = best_of(lambda: read_graph(path, structural=False), 5)
        naive_s = best_of(naive, 2)
        size = path.stat().st_size / 1e6
    position = {name: i for i, name in enumerate(names)}
    order = np.array([position[name] for name in loaded.graph.node_ids.tolist()])
    same = abs(adjacency[order][:, order] - loaded.graph.adjacency).nnz == 0
    assert same, "the two routes disagree"
    note = (
        f"CSV of {EDGES:,} edges with string ids ({size:.0f} MB) to a CSR adjacency of {len(names):,} nodes; "
        "pandas.read_csv, NetworkX and to_scipy_sparse_array give the same matrix"
    )
    return Row("load_graph", ours_s, naive_s, note)


def write_edges(path: Path, edges: int = EDGES) -> None:
    """A random edge list, five edges a node, ids such as user-00012345."""
    ends = np.random.default_rng(0).integers(0, edges // 5, size=(edges, 2)).tolist()
    rows = (f"user-{a:08d},user-{b:08d}\n" for a, b in ends)
    path.write_text("source,target\n" + "".join(rows), encoding="utf-8")
