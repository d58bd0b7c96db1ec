"""The GraphSAGE encoder with mean aggregation (Hamilton et al. 2017)."""

from typing import Unpack

import torch
from torch import Tensor

from nodejepa.nn.hidden import HiddenFeatures
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.restrict import Rows
from nodejepa.nn.stack import Encoder, StackSettings, operator_to, pick_rows


class GraphSAGE(Encoder):
    r"""L layers of :math:`H \leftarrow \sigma(\mathrm{norm}(H W_{self} + M H W_{neigh} + b))`.

    M is the (weighted) mean over in-neighbours: zero for a node without any, which then only sees itself.
    """

    def __init__(self, in_dim: int, **settings: Unpack[StackSettings]) -> None:
        super().__init__(in_dim, **settings)
        self.first_own = HiddenFeatures(in_dim, self.widths[1])
        self.first_neighbours = HiddenFeatures(in_dim, self.widths[1])
        self.own, self.neighbours = self.later_weights(), self.later_weights()
        self.biases = self.zero_biases()

    def first_layer(
        self, inputs: GraphInputs, hidden: Tensor | None, token: Tensor | None, rows: Rows
    ) -> Tensor:
        r"""``\tilde X W_self + M \tilde X W_neigh + b``."""
        own = pick_rows(self.first_own(inputs, hidden, token), rows)
        mean = operator_to(inputs.neighbour_mean, rows)
        neighbours = self.first_neighbours.gathered(mean, inputs, hidden, token)
        total: Tensor = own + neighbours + self.biases[0]
        return total

    def later_layer(self, layer: int, inputs: GraphInputs, h: Tensor, rows: Rows) -> Tensor:
        """``H W_self + M H W_neigh + b``."""
        mean = operator_to(inputs.neighbour_mean, rows)(h)
        own = torch.addmm(self.biases[layer], pick_rows(h, rows), self.own[layer - 1])
        return torch.addmm(own, mean, self.neighbours[layer - 1])
