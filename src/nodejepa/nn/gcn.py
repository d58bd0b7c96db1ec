"""The GCN encoder (Kipf & Welling 2017), on CSR products and sparse features."""

from typing import Unpack

import torch
from torch import Tensor

from nodejepa.nn.hidden import HiddenFeatures
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.restrict import Rows
from nodejepa.nn.stack import Encoder, StackSettings, operator_to


class GCN(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{LN}(S H W + b))`, no activation after the last.

    The paper's encoder is ``layers=3, hidden=256`` with layer normalisation. That the last layer is
    normalised and not activated follows from the paper's own collapse table: std and uncentred
    participation ratio of every method satisfy mean^2 + std^2 = 1, as rows of a LayerNorm output do.
    """

    def __init__(self, in_dim: int, **settings: Unpack[StackSettings]) -> None:
        super().__init__(in_dim, **settings)
        self.first = HiddenFeatures(in_dim, self.widths[1])
        self.weights, self.biases = self.later_weights(), self.zero_biases()

    def first_layer(
        self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None, rows: Rows
    ) -> Tensor:
        r"""``S \tilde X W + b``."""
        return self.first.propagated(inputs, hidden, token, rows).add_(self.biases[0])

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """``S H W + b``."""
        gathered = operator_to(inputs.propagation, rows)(h)
        return torch.addmm(self.biases[layer], gathered, self.weights[layer - 1])
