"""Which processes train together, and how what their units have becomes one sum, in one order."""

from abc import ABC, abstractmethod
from functools import reduce
from typing import final

from torch import Tensor


class Team(ABC):
    """Processes 0 .. ``size`` - 1, of which the first owns the run folder."""

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def leads(self) -> bool:
        """Whether this is the process that reads, writes and shows."""
        return self.rank == 0

    def mine(self, units: int) -> range:
        """The units that this process works on: a stretch of them, as even as can be."""
        return range(self.rank * units // self.size, (self.rank + 1) * units // self.size)

    @abstractmethod
    def sum(self, mine: list[Tensor], units: int) -> Tensor:
        """The sum over all units, from one tensor for each of those of this process."""

    @abstractmethod
    def share(self, content: bytes) -> bytes:
        """What the leader gives, to everybody."""


@final
class Solo(Team):
    """One process."""

    def sum(self, mine: list[Tensor], units: int) -> Tensor:  # noqa: ARG002 - all of them are here
        """In the order of the units."""
        return in_order(mine)

    def share(self, content: bytes) -> bytes:
        """What it has."""
        return content


def in_order(tensors: list[Tensor]) -> Tensor:
    """Their sum, taken from the first to the last: the same bits whoever computes it."""
    return reduce(lambda total, x: total + x, tensors)


SOLO = Solo()
