"""The GCN encoder (Kipf & Welling 2017), on CSR products and sparse features."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.errors import ConfigError
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.restrict import restrict

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "prelu": nn.PReLU, "elu": nn.ELU, "gelu": nn.GELU}


def make_activation(name: str) -> nn.Module:
    """The activation called ``name``."""
    if name not in ACTIVATIONS:
        raise ConfigError(f"activation {name!r} is unknown", fix=f"Use one of {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]()


class HiddenFeatures(nn.Module):
    r"""First linear map of an encoder, for features of which some rows may be hidden behind a mask token.

    .. math:: \tilde X W = \text{keep} \odot (X W) + \text{hide}\,(t W)

    so that no edited copy of X is ever made.
    """

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_dim, out_dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None) -> Tensor:
        """``[N, out_dim]``; rows in ``hidden`` (bool ``[N]``) show ``token`` (``[F]``)."""
        if hidden is None or token is None:
            return inputs.transform_features(self.weight)
        visible = inputs.transform_features(self.weight)
        return torch.where(hidden[:, None], token @ self.weight, visible)

    def propagated(self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None) -> Tensor:
        r"""``S \tilde X W`` in the order of products that is cheaper for this graph."""
        if not inputs.propagates_first(self.weight.shape[1]):
            return inputs.propagation(self(inputs, hidden, token))
        if hidden is None or token is None:
            return inputs.propagated_features @ self.weight
        features = inputs.features
        assert isinstance(features, Tensor)
        # S (keep * X) carries no gradient: the backward pass has no sparse product here
        visible = inputs.propagation(features.masked_fill(hidden[:, None], 0))
        share = inputs.propagation(hidden.to(features.dtype)[:, None])
        return visible @ self.weight + share * (token @ self.weight)


class GCN(nn.Module):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{LN}(S H W + b))`, no activation after the last.

    The paper's encoder is ``layers=3, hidden=256`` with layer normalisation. That the last layer is
    normalised and not activated follows from the paper's own collapse table: std and uncentred
    participation ratio of every method satisfy mean^2 + std^2 = 1, as rows of a LayerNorm output do.

    Args:
        in_dim: feature columns F.
        hidden: width of every layer, also of the output.
        layers: how many.
        activation: see :data:`ACTIVATIONS`.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        out_dim: width of the last layer if it differs.
        norm_last: whether the last layer is normalised too.
        activate_last: whether the last layer is activated too.
        dropout: on the input of every layer but the first.
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
    ) -> None:
        super().__init__()
        widths = [in_dim] + [hidden] * (layers - 1) + [hidden if out_dim is None else out_dim]
        self.in_dim, self.out_dim, self.dropout = in_dim, widths[-1], dropout
        self.first = HiddenFeatures(in_dim, widths[1])
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths[1:])
        )
        self.biases = nn.ParameterList(torch.zeros(width) for width in widths[1:])
        self.norms = nn.ModuleList(
            make_norm(norm if norm_last or i < layers - 1 else "none", width)
            for i, width in enumerate(widths[1:])
        )
        self.activations = nn.ModuleList(
            make_activation(activation) if activate_last or i < layers - 1 else nn.Identity()
            for i in range(layers)
        )

    def forward(
        self,
        inputs: GraphInputs,
        hidden: Tensor | None = None,
        token: Tensor | None = None,
        rows: npt.NDArray[np.bool_] | None = None,
    ) -> Tensor:
        """Embeddings ``[N, out_dim]``, or only those of ``rows`` (bool ``[N]``), in order.

        Nodes in ``hidden`` (bool ``[N]``) show ``token`` (``[F]``) instead of their features. With
        ``rows`` the last layer is computed for these alone.
        """
        h = self.first.propagated(inputs, hidden, token)
        if rows is not None and not self.weights:
            h = h[torch.from_numpy(rows).to(h.device)]
        h = self._finish(0, h)
        for i, weight in enumerate(self.weights, start=1):
            last = i == len(self.weights)
            propagate = restrict(inputs.propagation, rows, None) if last and rows is not None else None
            h = nn.functional.dropout(h, self.dropout, self.training)
            h = self._finish(i, (propagate or inputs.propagation)(h) @ weight)
        return h

    def _finish(self, layer: int, h: Tensor) -> Tensor:
        activated: Tensor = self.activations[layer](self.norms[layer](h + self.biases[layer]))
        return activated


def make_norm(name: str, width: int) -> nn.Module:
    """The normalisation called ``name`` for ``width`` columns."""
    if name == "layer":
        return nn.LayerNorm(width)
    if name == "batch":
        return nn.BatchNorm1d(width)
    if name == "none":
        return nn.Identity()
    raise ConfigError(f"norm {name!r} is unknown", fix="Use one of layer, batch, none.")
