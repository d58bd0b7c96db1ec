"""The GIN encoder (Xu et al. 2019): a sum over neighbours, then a small perceptron."""

from typing import Unpack

import torch
from torch import Tensor, nn

from nodejepa.nn.hidden import HiddenFeatures
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.restrict import Rows
from nodejepa.nn.stack import Encoder, StackSettings, make_activation, make_norm, operator_to, pick_rows


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
        self.first = HiddenFeatures(in_dim, outputs[0])
        self.weights, self.biases = self.later_weights(), self.zero_biases()
        self.inner = nn.ModuleList(
            nn.Sequential(make_norm(norm, width), make_activation(activation), nn.Linear(width, width))
            for width in outputs
        )

    def first_layer(
        self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None, rows: Rows
    ) -> Tensor:
        """The layer on features, W pulled through the sum."""
        total = operator_to(inputs.neighbour_sum, rows)
        own = self.first(inputs, hidden, token)
        if inputs.propagates_first(own.shape[1]):  # A X of narrow features is cheaper than A (X W)
            gathered = self.first.gathered(total, inputs, hidden, token)
        else:
            gathered = total(own)
        return self._finish(0, (1 + self.eps[0]) * pick_rows(own, rows) + gathered)

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """The layer on embeddings."""
        total = operator_to(inputs.neighbour_sum, rows)(h)
        summed = torch.addcmul(total, 1 + self.eps[layer], pick_rows(h, rows))
        return self._finish(layer, summed @ self.weights[layer - 1])

    def _finish(self, layer: int, mapped: Tensor) -> Tensor:
        """What the MLP does after its first map."""
        out: Tensor = self.inner[layer](mapped + self.biases[layer])
        return out
