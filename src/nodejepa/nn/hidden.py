"""The first linear map of an encoder: features may be sparse, and some rows may be hidden."""

import torch
from torch import Tensor, nn

from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.restrict import Rows
from nodejepa.nn.sparse import SparseOperator
from nodejepa.nn.stack import operator_to, pick_rows


def transformed(inputs: GraphInputs, weight: Tensor, hidden: Tensor | None, token: Tensor | None) -> Tensor:
    """``X W`` ``[N, columns of W]``; rows in ``hidden`` (bool ``[N]``) show ``token`` (``[F]``)."""
    if hidden is None or token is None:
        return inputs.transform_features(inputs.shown(weight))
    # hidden rows are not transformed at all: a step that hides half of the nodes pays for half of X W
    shown = ~hidden
    visible = inputs.transform_features(inputs.shown(weight), shown.cpu().numpy())
    return (token @ weight).repeat(len(hidden), 1).index_copy(0, shown.nonzero().squeeze(1), visible)


class HiddenFeatures(nn.Module):
    r"""First linear map of an encoder, for features of which some rows may be hidden behind a mask token.

    .. math:: \tilde X W = \text{keep} \odot (X W) + \text{hide}\,(t W)

    so that no edited copy of X is ever made. Hidden columns (of a view) are hidden rows of W; the token is
    shown in full.
    """

    def __init__(self, in_dim: int, out_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_dim, out_dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None) -> Tensor:
        """``[N, out_dim]``; rows in ``hidden`` (bool ``[N]``) show ``token`` (``[F]``)."""
        return transformed(inputs, self.weight, hidden, token)

    def propagated(
        self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None, rows: Rows = None
    ) -> Tensor:
        r"""``S \tilde X W``: as :meth:`gathered`, but the constant ``S X`` is computed only once."""
        if inputs.on_disk and rows is not None:  # one block of rows after the other: S X is never whole
            return self.gathered(operator_to(inputs.propagation, rows), inputs, hidden, token)
        if (hidden is None or token is None) and inputs.propagates_first(self.weight.shape[1]):
            return pick_rows(inputs.propagated_features @ inputs.shown(self.weight), rows)
        return pick_rows(self.gathered(inputs.propagation, inputs, hidden, token), rows)

    def gathered(
        self, operator: SparseOperator, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None
    ) -> Tensor:
        r"""``M \tilde X W`` for an operator M, in the order of products that is cheaper for this graph."""
        if not inputs.propagates_first(self.weight.shape[1]):
            return operator(self(inputs, hidden, token))
        features = inputs.features
        assert isinstance(features, Tensor)
        if hidden is None or token is None:
            return operator(features) @ inputs.shown(self.weight)
        # M (keep * X) carries no gradient: the backward pass has no sparse product here
        visible = operator(features.masked_fill(hidden[:, None], 0))
        share = operator(hidden.to(features.dtype)[:, None])
        return visible @ inputs.shown(self.weight) + share * (token @ self.weight)
