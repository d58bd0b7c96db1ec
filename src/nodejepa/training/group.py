"""Who shares the nodes of a step: how sums over the rows of one unit become those of all units."""

from abc import ABC, abstractmethod
from typing import final

from torch import Tensor


class Group(ABC):
    """What a loss asks of the units of a step, each of which has nodes of its own.

    Every unit gets the same values. The gradient of a sum is that of the unit's own share: gradients of units
    are added afterwards.
    """

    units: int = 1

    @abstractmethod
    def rows(self, h: Tensor) -> int:
        """Rows of ``h`` ``[n, ...]`` in all units."""

    @abstractmethod
    def sum(self, x: Tensor) -> Tensor:
        """The sum of all units' ``x``."""

    @abstractmethod
    def mean(self, h: Tensor) -> Tensor:
        """The mean of all units' rows ``h`` ``[n, ...]``."""

    @abstractmethod
    def average(self, term: Tensor, rows: int) -> Tensor:
        """The mean over all units' rows of what has the mean ``term`` (one number) over ``rows`` here."""


@final
class Alone(Group):
    """One unit has all the nodes: everything is what it is."""

    def rows(self, h: Tensor) -> int:
        """Its own."""
        return len(h)

    def sum(self, x: Tensor) -> Tensor:
        """The very tensor."""
        return x

    def mean(self, h: Tensor) -> Tensor:
        """Over its own rows."""
        return h.mean(dim=0)

    def average(self, term: Tensor, rows: int) -> Tensor:  # noqa: ARG002 - there are no others to weigh it against
        """The very tensor."""
        return term


ALONE = Alone()
