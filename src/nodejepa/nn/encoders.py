"""Encoders by name. All are called alike: ``encoder(inputs, rows=None)``."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from nodejepa.errors import ConfigError
from nodejepa.nn.attention import AttentionEdges, attend, attention_edges, edge_attention
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.sparse import Rows
from nodejepa.nn.stack import (
    Encoder,
    FirstWeight,
    make_activation,
    make_norm,
    pick_rows,
)

HEADS = 4  # of attention


class GCN(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{LN}(S H W + b))`, no activation after the last.

    The paper's encoder is ``layers=3, hidden=256`` with layer normalisation. That the last layer is
    normalised and not activated follows from the paper's own collapse table: std and uncentred
    participation ratio of every method satisfy mean^2 + std^2 = 1, as rows of a LayerNorm output do.
    """

    def __init__(self, in_dim: int, **settings: Any) -> None:
        super().__init__(in_dim, **settings)
        self.first = FirstWeight(in_dim, self.widths[1])
        self.weights, self.biases = self.later_weights(), self.zero_biases()

    def layer(self, i: int, inputs: GraphInputs, h: Tensor | None, rows: Rows) -> Tensor:
        r"""``S H W + b``; of features ``S \tilde X W + b``, in the cheaper order."""
        if h is None:
            return self.first.propagated(inputs, rows).add_(self.biases[0])
        return torch.addmm(self.biases[i], inputs.propagation.cut(rows)(h), self.weights[i - 1])


class GraphSAGE(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(H W_{self} + M H W_{neigh} + b))`.

    M is the (weighted) mean over in-neighbours: zero for a node without any, which then only sees itself.
    """

    def __init__(self, in_dim: int, **settings: Any) -> None:
        super().__init__(in_dim, **settings)
        self.first_own = FirstWeight(in_dim, self.widths[1])
        self.first_neighbours = FirstWeight(in_dim, self.widths[1])
        self.own, self.neighbours = self.later_weights(), self.later_weights()
        self.biases = self.zero_biases()

    def layer(self, i: int, inputs: GraphInputs, h: Tensor | None, rows: Rows) -> Tensor:
        """``H W_self + M H W_neigh + b``."""
        mean = inputs.neighbour_mean.cut(rows)
        if h is None:
            own = pick_rows(self.first_own(inputs), rows)
            total: Tensor = own + self.first_neighbours.gathered(mean, inputs) + self.biases[0]
            return total
        gathered = mean(h)
        own = torch.addmm(self.biases[i], pick_rows(h, rows), self.own[i - 1])
        return torch.addmm(own, gathered, self.neighbours[i - 1])


class GIN(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(\mathrm{MLP}((1 + \epsilon) H + A H)))`.

    The MLP is linear, norm, activation, linear; :math:`\epsilon` is learned, from 0. A is the (weighted) sum
    over in-neighbours. In the first layer the MLP's first map W is pulled through the sum,

    .. math:: ((1 + \epsilon) X + A X) W = (1 + \epsilon) X W + A (X W)

    so that sparse features are never filled up.
    """

    def __init__(self, in_dim: int, **settings: Any) -> None:
        super().__init__(in_dim, **settings)
        outputs = self.widths[1:]
        norm, activation = settings.get("norm", "layer"), settings.get("activation", "relu")
        self.eps = nn.Parameter(torch.zeros(len(outputs)))
        self.first = FirstWeight(in_dim, outputs[0])
        self.weights, self.biases = self.later_weights(), self.zero_biases()
        self.inner = nn.ModuleList(
            nn.Sequential(make_norm(norm, width), make_activation(activation), nn.Linear(width, width))
            for width in outputs
        )

    def layer(self, i: int, inputs: GraphInputs, h: Tensor | None, rows: Rows) -> Tensor:
        """The MLP of the sum; of features, W pulled through the sum."""
        total = inputs.neighbour_sum.cut(rows)
        if h is None:
            own = self.first(inputs)
            narrow = inputs.propagates_first(own.shape[1])  # A X is cheaper than A (X W)
            gathered = self.first.gathered(total, inputs) if narrow else total(own)
            mapped = (1 + self.eps[0]) * pick_rows(own, rows) + gathered
        else:
            summed = torch.addcmul(total(h), 1 + self.eps[i], pick_rows(h, rows))
            mapped = summed @ self.weights[i - 1]
        out: Tensor = self.inner[i](mapped + self.biases[i])
        return out


class MLP(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(H W + b))`."""

    def __init__(self, in_dim: int, **settings: Any) -> None:
        super().__init__(in_dim, **settings)
        self.first = FirstWeight(in_dim, self.widths[1])
        self.weights, self.biases = self.later_weights(), self.zero_biases()

    def layer(self, i: int, inputs: GraphInputs, h: Tensor | None, rows: Rows) -> Tensor:
        """``H W + b``."""
        if h is None:
            out: Tensor = pick_rows(self.first(inputs), rows) + self.biases[0]
            return out
        return torch.addmm(self.biases[i], pick_rows(h, rows), self.weights[i - 1])


class GraphAttention(nn.Module):
    r"""The attention of one layer on transformed embeddings :math:`z = H W`.

    .. math:: h_i = \big\Vert_k \sum_j \alpha^k_{ij} z^k_j + b, \quad
        \alpha^k_{ij} = \mathrm{softmax}_j\,\mathrm{LeakyReLU}(a_k \cdot z^k_i + c_k \cdot z^k_j)

    of ``width`` columns a head.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.target = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, width)))
        self.source = nn.Parameter(nn.init.xavier_uniform_(torch.empty(heads, width)))
        self.bias = nn.Parameter(torch.zeros(heads * width))

    def forward(self, z: Tensor, edges: AttentionEdges, rows: Rows = None) -> Tensor:
        """``[targets, out]`` from ``z`` ``[N, heads * width]``; ``rows`` (bool ``[N]``) are the targets."""
        source = z @ _block_diagonal(self.source)
        target = pick_rows(z @ _block_diagonal(self.target), rows)
        attention = edge_attention(source.T.contiguous(), target.T.contiguous(), edges)
        return attend(attention, z, edges) + self.bias


def _block_diagonal(vectors: Tensor) -> Tensor:
    """``[heads, width]`` as ``[heads * width, heads]``: the scores of all heads become one thin product."""
    blocks: Tensor = torch.block_diag(*vectors[:, :, None])  # type: ignore[no-untyped-call]
    return blocks


class GAT(Encoder):
    r"""L layers of attention over in-neighbours and the node itself; edge weights are not used.

    The 4 heads fill each layer side by side.
    """

    def __init__(self, in_dim: int, **settings: Any) -> None:
        super().__init__(in_dim, **settings)
        for width in self.widths[1:]:
            if width % HEADS:
                raise ConfigError(
                    f"{HEADS} attention heads do not fill a layer of width {width}",
                    where="encoder.hidden",
                    fix=f"Give a width that {HEADS} divides.",
                )
        self.attentions = nn.ModuleList(GraphAttention(width // HEADS, HEADS) for width in self.widths[1:])
        self.first = FirstWeight(in_dim, self.widths[1])
        self.weights = self.later_weights()

    def layer(self, i: int, inputs: GraphInputs, h: Tensor | None, rows: Rows) -> Tensor:
        """Attention on features or embeddings, transformed first: sparse ones stay sparse."""
        z = self.first(inputs) if h is None else h
        # the pattern of S is what is needed: in-neighbours and the node itself
        edges = attention_edges(inputs.propagation.cut(rows))
        out: Tensor = self.attentions[i](z, edges, rows)
        return out

    def shared(self, layer: int, h: Tensor) -> Tensor:
        """``H W``: a row attends to others' transformed embeddings."""
        out: Tensor = h @ self.weights[layer - 1]
        return out


EncoderKind = Literal["gcn", "sage", "gin", "gat", "mlp"]
ENCODERS: dict[EncoderKind, type[GCN | GraphSAGE | GIN | GAT | MLP]] = {
    "gcn": GCN,
    "sage": GraphSAGE,
    "gin": GIN,
    "gat": GAT,
    "mlp": MLP,
}


def make_encoder(kind: EncoderKind, in_dim: int, **settings: Any) -> Encoder:
    """A fresh encoder; settings are those of :class:`~nodejepa.nn.stack.Encoder`."""
    return ENCODERS[kind](in_dim, **settings)
