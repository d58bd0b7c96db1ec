"""Attention along the edges of a graph, on CSR: no ``[edges, width]`` tensor is ever made.

One head is one CSR product whose values are the attention. Its gradient is a product with the transposed
pattern (for the embeddings) and one dot product an edge (for the attention), which torch computes in place.
Every sum runs over the edges of a row in their order: the same bits in every run on a CPU.
"""

from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from nodejepa.graph_checks import SparseMatrix
from nodejepa.nn.sparse import SparseOperator, csr_tensor, multiply

_SLOPE = 0.2  # of the LeakyReLU below 0


class AttentionEdges:
    """Who may attend to whom: the entries of a CSR matrix ``[targets, sources]`` without empty rows."""

    def __init__(self, matrix: SparseMatrix, device: torch.device | str = "cpu") -> None:
        self.matrix, self.device = matrix, torch.device(device)
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.pointers, self.sources = self._tensor(matrix.indptr), self._tensor(matrix.indices)

    def _tensor(self, array: Any) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self.device)

    @cached_property
    def targets(self) -> Tensor:
        """Row of every edge ``[E]``."""
        rows = np.arange(self.shape[0], dtype=self.matrix.indices.dtype)
        return self._tensor(np.repeat(rows, np.diff(self.matrix.indptr)))

    @cached_property
    def transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Pointers and columns of the transposed pattern, and where each of its edges stands in this one."""
        order = np.arange(self.matrix.nnz, dtype=self.matrix.indices.dtype)
        numbered = sp.csr_array((order, self.matrix.indices, self.matrix.indptr), shape=self.shape).T.tocsr()
        return self._tensor(numbered.indptr), self._tensor(numbered.indices), self._tensor(numbered.data)

    def gather(self, values: Tensor, embeddings: Tensor) -> Tensor:
        """``V @ embeddings`` with one value ``[E]`` an edge."""
        return multiply(csr_tensor(self.pointers, self.sources, values, self.shape), embeddings)

    def gather_transposed(self, values: Tensor, embeddings: Tensor) -> Tensor:
        """``V^T @ embeddings``."""
        pointers, columns, order = self.transposed
        return multiply(
            csr_tensor(pointers, columns, values.index_select(0, order), self.shape[::-1]), embeddings
        )

    def dot(self, rows: Tensor, columns: Tensor) -> Tensor:
        """``<rows[i], columns[j]>`` of every edge (i, j), ``[E]``."""
        nothing = torch.zeros(self.sources.shape, dtype=rows.dtype, device=self.device)
        pattern = csr_tensor(self.pointers, self.sources, nothing, self.shape)
        dots: Tensor = torch.sparse.sampled_addmm(pattern, rows, columns.T, beta=0.0).values()
        return dots

    def by_target(self, values: Tensor, how: str) -> Tensor:
        """The ``"sum"`` or ``"max"`` of the values ``[E]`` in every row, given to each of its edges."""
        return torch.segment_reduce(values, how, offsets=self.pointers.long()).index_select(0, self.targets)


_KNOWN: WeakKeyDictionary[SparseOperator, AttentionEdges] = WeakKeyDictionary()


def attention_edges(operator: SparseOperator) -> AttentionEdges:
    """The edges of an operator, computed once for as long as the operator lives."""
    if operator not in _KNOWN:
        _KNOWN[operator] = AttentionEdges(operator.matrix, operator.device)
    return _KNOWN[operator]


def edge_attention(source: Tensor, target: Tensor, edges: AttentionEdges) -> Tensor:
    r"""Attention ``[heads, E]``, a softmax over the edges of every target (Velickovic et al. 2018).

    .. math:: \alpha_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}(t_i + s_j)

    with s ``[heads, sources]`` and t ``[heads, targets]``.
    """
    heads = []
    for s, t in zip(source, target, strict=True):
        score = leaky_relu(s.index_select(0, edges.sources) + t.index_select(0, edges.targets), _SLOPE)
        raised = (score - edges.by_target(score.detach(), "max")).exp()
        heads.append(raised / edges.by_target(raised, "sum"))
    return torch.stack(heads)


def attend(attention: Tensor, embeddings: Tensor, edges: AttentionEdges) -> Tensor:
    r"""Each head's :math:`\sum_j \alpha_{ij} z_j`, side by side: ``[targets, heads * width]``.

    Of attention ``[heads, E]`` and embeddings z ``[sources, heads * width]``, heads side by side.
    """
    gathered: Tensor = _Attend.apply(attention, embeddings, edges)  # type: ignore[no-untyped-call]
    return gathered


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, attention: Tensor, embeddings: Tensor, edges: AttentionEdges) -> Tensor:
        heads = len(attention)
        gathered = embeddings.new_empty(edges.shape[0], heads, embeddings.shape[1] // heads)
        for head, z in enumerate(_split(embeddings, heads)):
            gathered[:, head] = edges.gather(attention[head], z)
        ctx.edges = edges
        ctx.save_for_backward(attention, embeddings)
        return gathered.flatten(1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        edges, (attention, embeddings) = ctx.edges, ctx.saved_tensors
        heads = len(attention)
        for_attention = torch.empty_like(attention)
        for_embeddings = torch.empty_like(embeddings)
        targets = _split(for_embeddings, heads)
        for head, (z, grad) in enumerate(
            zip(_split(embeddings, heads), _split(grads[0], heads), strict=True)
        ):
            grad = grad.contiguous()
            for_attention[head] = edges.dot(grad, z.contiguous())
            targets[head].copy_(edges.gather_transposed(attention[head], grad))
        return for_attention, for_embeddings, None


def _split(x: Tensor, heads: int) -> tuple[Tensor, ...]:
    """The columns of each head, as views."""
    return x.chunk(heads, dim=1)
