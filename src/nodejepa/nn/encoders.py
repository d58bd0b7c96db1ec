"""Encoders by name, and the frame they share: layers one after the other, normalised, activated, cut to rows.

All are called alike: ``encoder(inputs, rows=None)``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from nodejepa.errors import ConfigError
from nodejepa.machine import progress_bar
from nodejepa.nn.attention import AttentionEdges, attend, attention_edges, edge_attention
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.sparse import Rows, SparseOperator

Activation = Literal["relu", "prelu", "elu", "gelu"]
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "prelu": nn.PReLU, "elu": nn.ELU, "gelu": nn.GELU}
HEADS = 4  # of attention


def make_activation(name: str) -> nn.Module:
    """The activation called ``name``; ReLU overwrites its input, which saves memory."""
    return nn.ReLU(inplace=True) if name == "relu" else ACTIVATIONS[name]()


def make_norm(name: str, width: int) -> nn.Module:
    """The normalisation called ``name`` for ``width`` columns."""
    kinds: dict[str, Callable[[int], nn.Module]] = {
        "layer": nn.LayerNorm,
        "graph": GraphLayerNorm,
        "batch": nn.BatchNorm1d,
        "none": nn.Identity,
    }
    return kinds[name](width)


class GraphLayerNorm(nn.Module):
    r"""Layer normalisation over all nodes and columns: :math:`\gamma (H - \bar h) / \sigma_h + \beta`.

    PyG's ``LayerNorm(mode="graph")``. A node's row depends on every other, so it is never computed by blocks.
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, h: Tensor) -> Tensor:
        """The same shape."""
        centred = h - h.mean()
        return centred / (centred.square().mean().sqrt() + self.eps) * self.weight + self.bias


class Encoder(nn.Module, ABC):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(\text{layer}(H)))`, no activation after the last.

    Args:
        in_dim: feature columns F.
        hidden: width of every layer, also of the output.
        layers: how many.
        activation: see :data:`ACTIVATIONS`.
        norm: ``"layer"``, ``"graph"`` (layer normalisation over all nodes), ``"batch"`` or ``"none"``.
        out_dim: width of the last layer if it differs.
        norm_last: whether the last layer is normalised too.
        activate_last: whether the last layer is activated too.
        dropout: on the input of every layer but the first.
        row_normalise: whether features are first divided by the sum of absolute values of their row.
    """

    def __init__(
        self,
        in_dim: int,
        *,
        hidden: int = 256,
        layers: int = 3,
        activation: str = "relu",
        norm: str = "layer",
        out_dim: int | None = None,
        norm_last: bool = True,
        activate_last: bool = False,
        dropout: float = 0.0,
        row_normalise: bool = False,
    ) -> None:
        super().__init__()
        self.widths = [in_dim] + [hidden] * (layers - 1) + [hidden if out_dim is None else out_dim]
        self.in_dim, self.out_dim, self.dropout = in_dim, self.widths[-1], dropout
        self.row_normalise = row_normalise
        self.norms = nn.ModuleList(
            make_norm(norm if norm_last or i < layers - 1 else "none", width)
            for i, width in enumerate(self.widths[1:])
        )
        self.by_rows = norm != "graph"  # whether a row can be normalised without the others
        self.activations = nn.ModuleList(
            make_activation(activation) if activate_last or i < layers - 1 else nn.Identity()
            for i in range(layers)
        )

    def later_weights(self) -> nn.ParameterList:
        """A random weight for every layer but the first."""
        empty = (torch.empty(a, b) for a, b in pairwise(self.widths[1:]))
        return nn.ParameterList(nn.init.xavier_uniform_(weight) for weight in empty)

    def zero_biases(self) -> nn.ParameterList:
        """A bias for every layer."""
        return nn.ParameterList(torch.zeros(width) for width in self.widths[1:])

    @abstractmethod
    def layer(self, i: int, inputs: GraphInputs, h: Tensor | None, rows: Rows) -> Tensor:
        """Layer i before norm and activation: on features, or on what :meth:`shared` made of the one before.

        ``h`` ``[N, width]`` is none for layer 0.
        """

    def shared(self, layer: int, h: Tensor) -> Tensor:  # noqa: ARG002 - most layers read h as it is
        """What every row of a layer reads of ``h`` ``[N, width]``, the layer before."""
        return h

    def forward(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """Embeddings ``[N, out_dim]``, or only those of ``rows`` (bool ``[N]``), in order.

        With ``rows`` the last layer is computed for these alone.
        """
        if rows is not None and not self.by_rows:
            return pick_rows(self(inputs), rows)
        inputs = inputs.row_normalised if self.row_normalise else inputs
        last = len(self.norms) - 1
        h = self._layer(0, inputs, None, rows if last == 0 else None)
        for i in range(1, last + 1):
            h = nn.functional.dropout(h, self.dropout, self.training)
            h = self._layer(i, inputs, self.shared(i, h), rows if i == last else None)
        return h

    def _layer(self, layer: int, inputs: GraphInputs, h: Tensor | None, rows: Rows) -> Tensor:
        """One layer, normalised and activated; ``h`` is what it reads of the one before, if there is one."""
        done: Tensor = self.activations[layer](self.norms[layer](self.layer(layer, inputs, h, rows)))
        return done

    @torch.no_grad()
    def embed(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """``forward`` without gradients; on disk layer by layer, each by blocks of rows.

        Blocks leave the bits of a GCN, and change those of the others by rounding.
        """
        space = inputs.workspace
        if not space.on_disk:
            return self(inputs, rows=rows)  # type: ignore[no-any-return]
        if not self.by_rows:
            raise ConfigError(
                "norm graph needs all nodes at once, and a graph on disk is read by blocks of rows",
                where="encoder.norm",
                fix="Use norm layer, or read the graph into memory.",
            )
        inputs = inputs.row_normalised if self.row_normalise else inputs
        h: Tensor | None = None
        with progress_bar("Embedding", total=len(self.norms)) as advance:
            for i in range(len(self.norms)):
                h = self._in_blocks(i, inputs, h)
                inputs.workspace.forget()
                advance()
        assert h is not None
        return pick_rows(h, rows)

    def _in_blocks(self, layer: int, inputs: GraphInputs, before: Tensor | None) -> Tensor:
        space, width = inputs.workspace, self.widths[layer + 1]
        h = before
        if before is not None and type(self).shared is not Encoder.shared:
            h = space.fill(width, lambda low, high: self.shared(layer, before[low:high]))

        def block(low: int, high: int) -> Tensor:
            part = np.zeros(inputs.num_nodes, dtype=bool)
            part[low:high] = True
            return self._layer(layer, inputs, h, part)

        out: Tensor = space.fill(width, block)
        return out


def pick_rows(h: Tensor, rows: Rows) -> Tensor:
    """The rows asked for; all of them if none were named."""
    if rows is None:
        return h
    # by position: by a mask, torch would look for them again in the backward pass
    return h.index_select(0, torch.from_numpy(np.flatnonzero(rows)).to(h.device))


def transformed(inputs: GraphInputs, weight: Tensor) -> Tensor:
    """``X W`` ``[N, columns of W]``, with the token of ``inputs`` for hidden rows."""
    if inputs.mask is None:
        return inputs.transform_features(inputs.shown(weight))
    # hidden rows are not transformed at all: a step that hides half of the nodes pays for half of X W
    hidden, token = inputs.mask
    shown = ~hidden
    visible = inputs.transform_features(inputs.shown(weight), shown.cpu().numpy())
    return (token @ weight).repeat(len(hidden), 1).index_copy(0, shown.nonzero().squeeze(1), visible)


class FirstWeight(nn.Module):
    r"""First linear map of an encoder, for features of which some rows may be hidden behind a mask token.

    .. math:: \tilde X W = \text{keep} \odot (X W) + \text{hide}\,(t W)

    so that no edited copy of X is ever made. Hidden columns (of a view) are hidden rows of W; the token is
    shown in full.
    """

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_dim, out_dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, inputs: GraphInputs) -> Tensor:
        r"""``\tilde X W`` ``[N, out_dim]``."""
        return transformed(inputs, self.weight)

    def propagated(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        r"""``S \tilde X W``: as :meth:`gathered`, but the constant ``S X`` is computed only once."""
        if inputs.workspace.on_disk and rows is not None:  # block after block: S X is never whole
            return self.gathered(inputs.propagation.cut(rows), inputs)
        if inputs.mask is None and inputs.propagates_first(self.weight.shape[1]):
            return pick_rows(inputs.propagated_features @ inputs.shown(self.weight), rows)
        return pick_rows(self.gathered(inputs.propagation, inputs), rows)

    def gathered(self, operator: SparseOperator, inputs: GraphInputs) -> Tensor:
        r"""``M \tilde X W`` for an operator M, in the order of products that is cheaper for this graph."""
        if not inputs.propagates_first(self.weight.shape[1]):
            return operator(self(inputs))
        features = inputs.features
        assert isinstance(features, Tensor)
        if inputs.mask is None:
            return operator(features) @ inputs.shown(self.weight)
        # M (keep * X) carries no gradient: the backward pass has no sparse product here
        hidden, token = inputs.mask
        visible = operator(features.masked_fill(hidden[:, None], 0))
        share = operator(hidden.to(features.dtype)[:, None])
        return visible @ inputs.shown(self.weight) + share * (token @ self.weight)


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
    """A fresh encoder; settings are those of :class:`Encoder`."""
    return ENCODERS[kind](in_dim, **settings)
