"""The encoder that does not look at the edges: what features alone give (CCA-SSG on Coauthor-CS)."""

from typing import Unpack

import torch
from torch import Tensor

from nodejepa.nn.hidden import HiddenFeatures
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.restrict import Rows
from nodejepa.nn.stack import Encoder, StackSettings, pick_rows


class MLP(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(H W + b))`."""

    def __init__(self, in_dim: int, **settings: Unpack[StackSettings]) -> None:
        super().__init__(in_dim, **settings)
        self.first = HiddenFeatures(in_dim, self.widths[1])
        self.weights, self.biases = self.later_weights(), self.zero_biases()

    def first_layer(
        self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None, rows: Rows
    ) -> Tensor:
        r"""``\tilde X W + b``."""
        out: Tensor = pick_rows(self.first(inputs, hidden, token), rows) + self.biases[0]
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
