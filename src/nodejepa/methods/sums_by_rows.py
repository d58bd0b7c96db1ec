"""The sums of :mod:`nodejepa.methods.closed_form` over blocks of rows of a graph on disk."""

import numpy as np
import torch
from torch import Tensor

from nodejepa.nn.operators import FeatureMatrix
from nodejepa.nn.sparse import SparseOperator, multiply
from nodejepa.nn.stored_inputs import StoredInputs
from nodejepa.progress import progress_bar


def onto(x: FeatureMatrix, v: Tensor) -> Tensor:
    """``X v``."""
    return multiply(x.tensor, v) if isinstance(x, SparseOperator) else x @ v


def back(x: FeatureMatrix, u: Tensor) -> Tensor:
    """``X' u``."""
    return multiply(x.transposed, u) if isinstance(x, SparseOperator) else x.T @ u


class SumsByRows:
    """Blocks are summed in float64; one block alone gives the bits of the graph in memory."""

    def __init__(self, inputs: StoredInputs) -> None:
        self.inputs, self.spans = inputs, [*inputs.graph.spans()]
        has = [np.diff(inputs.graph.in_rows(*span).indptr) > 0 for span in self.spans]
        self.has = torch.from_numpy(np.concatenate(has)).float()[:, None]
        self.count = float(self.has.sum(dtype=torch.float64))

    def second(self, v: Tensor) -> Tensor:
        """One pass over X."""
        total = _Total()
        for low, high in self.spans:
            x = self.inputs.feature_rows(low, high)
            total.add(back(x, onto(x, v) * self.has[low:high]))
        return total.value

    def cross(self, v: Tensor) -> Tensor:
        """Two passes over X and one over the edges for each group of columns that fits into memory."""
        with self.inputs.holding(1):  # the latents
            groups = self.inputs.column_groups(v.shape[1])
            return torch.cat([self._cross(v[:, group].contiguous()) for group in groups], dim=1)

    def _cross(self, v: Tensor) -> Tensor:
        inputs, total = self.inputs, _Total()
        latents = inputs.tall(v.shape[1], lambda low, high: onto(inputs.feature_rows(low, high), v))
        with progress_bar("Summing over rows", total=len(self.spans)) as advance:
            for low, high in self.spans:
                both = multiply(inputs.operator_rows("neighbour_mean", low, high).tensor, latents)
                both += multiply(inputs.turned_mean_rows(low, high).tensor, latents)
                total.add(back(inputs.feature_rows(low, high), both))
                advance()
        return total.value

    def means(self) -> tuple[Tensor, Tensor]:
        """One pass over X and the edges."""
        own, seen = _Total(), _Total()
        for low, high in self.spans:
            x = self.inputs.feature_rows(low, high)
            own.add(back(x, self.has[low:high]))
            seen.add(back(x, multiply(self.inputs.turned_mean_rows(low, high).tensor, self.has)))
        return own.value.squeeze(1), seen.value.squeeze(1)


class _Total:
    value: Tensor

    def add(self, part: Tensor) -> None:
        self.value = self.value.double() + part if hasattr(self, "value") else part
