"""Encoders by name. All are called alike: ``encoder(inputs, rows=None)``."""

from typing import Literal, Unpack, get_args

import torch
from torch import Tensor, nn

from nodejepa.errors import ConfigError, did_you_mean
from nodejepa.nn.attention import AttentionEdges, attend, attention_edges, edge_attention
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.sparse import Rows
from nodejepa.nn.stack import (
    Encoder,
    FirstWeight,
    StackSettings,
    make_activation,
    make_norm,
    pick_rows,
)


class GCN(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{LN}(S H W + b))`, no activation after the last.

    The paper's encoder is ``layers=3, hidden=256`` with layer normalisation. That the last layer is
    normalised and not activated follows from the paper's own collapse table: std and uncentred
    participation ratio of every method satisfy mean^2 + std^2 = 1, as rows of a LayerNorm output do.
    """

    def __init__(self, in_dim: int, **settings: Unpack[StackSettings]) -> None:
        super().__init__(in_dim, **settings)
        self.first = FirstWeight(in_dim, self.widths[1])
        self.weights, self.biases = self.later_weights(), self.zero_biases()

    def first_layer(self, inputs: GraphInputs, rows: Rows) -> Tensor:
        r"""``S \tilde X W + b``."""
        return self.first.propagated(inputs, rows).add_(self.biases[0])

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """``S H W + b``."""
        gathered = inputs.propagation.cut(rows)(h)
        return torch.addmm(self.biases[layer], gathered, self.weights[layer - 1])


class GraphSAGE(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(H W_{self} + M H W_{neigh} + b))`.

    M is the (weighted) mean over in-neighbours: zero for a node without any, which then only sees itself.
    """

    def __init__(self, in_dim: int, **settings: Unpack[StackSettings]) -> None:
        super().__init__(in_dim, **settings)
        self.first_own = FirstWeight(in_dim, self.widths[1])
        self.first_neighbours = FirstWeight(in_dim, self.widths[1])
        self.own, self.neighbours = self.later_weights(), self.later_weights()
        self.biases = self.zero_biases()

    def first_layer(self, inputs: GraphInputs, rows: Rows) -> Tensor:
        r"""``\tilde X W_self + M \tilde X W_neigh + b``."""
        own = pick_rows(self.first_own(inputs), rows)
        mean = inputs.neighbour_mean.cut(rows)
        neighbours = self.first_neighbours.gathered(mean, inputs)
        total: Tensor = own + neighbours + self.biases[0]
        return total

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """``H W_self + M H W_neigh + b``."""
        mean = inputs.neighbour_mean.cut(rows)(h)
        own = torch.addmm(self.biases[layer], pick_rows(h, rows), self.own[layer - 1])
        return torch.addmm(own, mean, self.neighbours[layer - 1])


class GIN(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(\mathrm{MLP}((1 + \epsilon) H + A H)))`.

    The MLP is linear, norm, activation, linear; :math:`\epsilon` is learned, from 0. A is the (weighted) sum
    over in-neighbours. In the first layer the MLP's first map W is pulled through the sum,

    .. math:: ((1 + \epsilon) X + A X) W = (1 + \epsilon) X W + A (X W)

    so that sparse features are never filled up.
    """

    def __init__(self, in_dim: int, **settings: Unpack[StackSettings]) -> None:
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

    def first_layer(self, inputs: GraphInputs, rows: Rows) -> Tensor:
        """The layer on features, W pulled through the sum."""
        total = inputs.neighbour_sum.cut(rows)
        own = self.first(inputs)
        narrow = inputs.propagates_first(own.shape[1])  # A X is cheaper than A (X W)
        gathered = self.first.gathered(total, inputs) if narrow else total(own)
        return self._finish(0, (1 + self.eps[0]) * pick_rows(own, rows) + gathered)

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """The layer on embeddings."""
        total = inputs.neighbour_sum.cut(rows)(h)
        summed = torch.addcmul(total, 1 + self.eps[layer], pick_rows(h, rows))
        return self._finish(layer, summed @ self.weights[layer - 1])

    def _finish(self, layer: int, mapped: Tensor) -> Tensor:
        """What the MLP does after its first map."""
        out: Tensor = self.inner[layer](mapped + self.biases[layer])
        return out


class MLP(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(H W + b))`."""

    def __init__(self, in_dim: int, **settings: Unpack[StackSettings]) -> None:
        super().__init__(in_dim, **settings)
        self.first = FirstWeight(in_dim, self.widths[1])
        self.weights, self.biases = self.later_weights(), self.zero_biases()

    def first_layer(self, inputs: GraphInputs, rows: Rows) -> Tensor:
        r"""``\tilde X W + b``."""
        out: Tensor = pick_rows(self.first(inputs), rows) + self.biases[0]
        return out

    def later_layer(
        self,
        layer: int,
        inputs: GraphInputs,  # noqa: ARG002 - all encoders are called alike
        h: Tensor,
        rows: Rows,
    ) -> Tensor:
        """``H W + b``."""
        return torch.addmm(self.biases[layer], pick_rows(h, rows), self.weights[layer - 1])


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
        self.first = FirstWeight(in_dim, self.widths[1])
        self.weights = self.later_weights()

    def first_layer(self, inputs: GraphInputs, rows: Rows) -> Tensor:
        """Attention on the features, transformed first: sparse ones stay sparse."""
        return self._attend(0, inputs, self.first(inputs), rows)

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """Attention on embeddings."""
        return self._attend(layer, inputs, h, rows)

    def shared(self, layer: int, h: Tensor) -> Tensor:
        """``H W``: a row attends to others' transformed embeddings."""
        out: Tensor = h @ self.weights[layer - 1]
        return out

    def _attend(self, layer: int, inputs: GraphInputs, z: Tensor, rows: Rows) -> Tensor:
        # the pattern of S is what is needed: in-neighbours and the node itself
        edges = attention_edges(inputs.propagation.cut(rows))
        out: Tensor = self.attentions[layer](z, edges, rows)
        return out


EncoderKind = Literal["gcn", "sage", "gin", "gat", "mlp"]


def make_encoder(
    kind: str,
    in_dim: int,
    *,
    heads: int = 4,
    attention_dropout: float = 0.0,
    **settings: Unpack[StackSettings],
) -> Encoder:
    """A fresh encoder; ``heads`` and ``attention_dropout`` are those of ``"gat"``, the others have none."""
    if kind == "gat":
        return GAT(in_dim, heads=heads, attention_dropout=attention_dropout, **settings)
    plain: dict[str, type[GCN | GraphSAGE | GIN | MLP]] = {
        "gcn": GCN,
        "sage": GraphSAGE,
        "gin": GIN,
        "mlp": MLP,
    }
    if kind in plain:
        return plain[kind](in_dim, **settings)
    known = get_args(EncoderKind)
    hint = did_you_mean(kind, known)
    raise ConfigError(f"encoder {kind!r} is unknown", fix=f"{hint}Use one of {', '.join(known)}.")
