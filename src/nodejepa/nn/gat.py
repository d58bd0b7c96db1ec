"""The GAT encoder (Velickovic et al. 2018), attention on CSR without a message per edge."""

from typing import Unpack

import torch
from torch import Tensor, nn

from nodejepa.errors import ConfigError
from nodejepa.nn.attention import AttentionEdges, attend, attention_edges, edge_attention
from nodejepa.nn.hidden import HiddenFeatures
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.restrict import Rows
from nodejepa.nn.stack import Encoder, StackSettings, operator_to, pick_rows


class GraphAttention(nn.Module):
    r"""The attention of one layer on transformed embeddings :math:`z = H W`.

    .. math:: h_i = \big\Vert_k \sum_j \alpha^k_{ij} z^k_j + b, \quad
        \alpha^k_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}(a_k \cdot z^k_i + c_k \cdot z^k_j)

    of ``width`` columns a head; ``dropout`` is the share of the attention that is dropped in training.
    """

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.target = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, width)))
        self.source = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, width)))
        self.bias = nn.Parameter(torch.zeros(heads * width))

    def forward(self, z: Tensor, edges: AttentionEdges, rows: Rows = None) -> Tensor:
        """``[targets, out]`` from ``z`` ``[N, heads * width]``; ``rows`` (bool ``[N]``) are the targets."""
        source = z @ _block_diagonal(self.source)
        target = pick_rows(z @ _block_diagonal(self.target), rows)
        attention = edge_attention(source.T.contiguous(), target.T.contiguous(), edges)
        attention = nn.functional.dropout(attention, self.dropout, self.training)
        return attend(attention, z, edges) + self.bias


def _block_diagonal(vectors: Tensor) -> Tensor:
    """``[heads, width]`` as ``[heads * width, heads]``: the scores of all heads become one thin product."""
    blocks: Tensor = torch.block_diag(*vectors[:, :, None])  # type: ignore[no-untyped-call]
    return blocks


class GAT(Encoder):
    r"""L layers of attention over in-neighbours and the node itself; edge weights are not used.

    The number of heads must divide the width of every layer, which they fill side by side.
    """

    def __init__(
        self,
        in_dim: int,
        *,
        heads: int = 4,
        attention_dropout: float = 0.0,
        **settings: Unpack[StackSettings],
    ) -> None:
        super().__init__(in_dim, **settings)
        for width in self.widths[1:]:
            if heads < 1 or width % heads:
                raise ConfigError(
                    f"{heads} attention heads do not fill a layer of width {width}",
                    where="heads",
                    fix="Give a number of heads that divides the width.",
                )
        self.attentions = nn.ModuleList(
            GraphAttention(width // heads, heads, dropout=attention_dropout) for width in self.widths[1:]
        )
        self.first = HiddenFeatures(in_dim, self.widths[1])
        self.weights = self.later_weights()

    def first_layer(
        self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None, rows: Rows
    ) -> Tensor:
        """Attention on the features, transformed first: sparse ones stay sparse."""
        return self._attend(0, inputs, self.first(inputs, hidden, token), rows)

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """Attention on embeddings."""
        return self._attend(layer, inputs, h, rows)

    def shared(self, layer: int, h: Tensor) -> Tensor:
        """``H W``: a row attends to others' transformed embeddings."""
        out: Tensor = h @ self.weights[layer - 1]
        return out

    def _attend(self, layer: int, inputs: GraphInputs, z: Tensor, rows: Rows) -> Tensor:
        # the pattern of S is what is needed: in-neighbours and the node itself
        edges = attention_edges(operator_to(inputs.propagation, rows))
        out: Tensor = self.attentions[layer](z, edges, rows)
        return out
