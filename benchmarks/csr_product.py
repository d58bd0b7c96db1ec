"""Row ``csr_product``: CSR times dense against PyTorch's own kernel, which the package used before."""

from __future__ import annotations

import torch

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.nn.sparse import SparseOperator, csr_product

WIDTH = 256


def run() -> Row:
    graph = load_dataset("synthetic-arxiv").graph
    matrix = SparseOperator(graph.normalized_adjacency, symmetric=True).tensor
    x = torch.randn(graph.num_nodes, WIDTH)
    same = csr_product(matrix, x).equal(torch.sparse.mm(matrix, x, "sum"))
    ours_s = best_of(lambda: csr_product(matrix, x), 5)
    naive_s = best_of(lambda: torch.sparse.mm(matrix, x, "sum"), 5)
    note = (
        f"normalised adjacency of synthetic-arxiv ({graph.num_nodes:,} nodes, {graph.num_edges:,} edges) "
        f"times {WIDTH} columns, {torch.get_num_threads()} threads, against torch.sparse.mm(..., 'sum'); "
        f"{'the same' if same else 'not the same'} bits"
    )
    return Row("csr_product", ours_s, naive_s, note)
