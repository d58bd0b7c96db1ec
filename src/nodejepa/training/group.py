"""Who shares the nodes of a step: how sums over rows and gradients become those of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

from torch import Tensor, nn


class Group(ABC):
    """What a loss and the loop ask of the processes that train together, each on nodes of its own."""

    @abstractmethod
    def rows(self, h: Tensor) -> int:
        """Rows of ``h`` ``[n, ...]`` in all processes."""

    @abstractmethod
    def sum(self, x: Tensor) -> Tensor:
        """The sum of all processes' ``x``."""

    @abstractmethod
    def mean(self, h: Tensor) -> Tensor:
        """The mean of all processes' rows ``h`` ``[n, ...]``."""

    @abstractmethod
    def combine_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Make gradients those of the whole step; called after the backward pass."""


@final
class Alone(Group):
    """One process has all the nodes: everything is what it is."""

    def rows(self, h: Tensor) -> int:
        """Its own."""
        return len(h)

    def sum(self, x: Tensor) -> Tensor:
        """The very tensor."""
        return x

    def mean(self, h: Tensor) -> Tensor:
        """Over its own rows."""
        return h.mean(dim=0)

    def combine_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Nothing to combine."""


ALONE = Alone()
