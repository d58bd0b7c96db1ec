"""Where a step's part of the graph comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from nodejepa.nn.inputs import GraphInputs
from nodejepa.training.task import Moment


class Source(ABC):
    """Hands out what each step trains on.

    Args:
        whole: what is validated and watched.
        steps_per_epoch: how many steps an epoch has.
    """

    def __init__(self, whole: GraphInputs, steps_per_epoch: int = 1) -> None:
        self.whole, self.steps_per_epoch = whole, steps_per_epoch

    @abstractmethod
    def batch(self, moment: Moment) -> GraphInputs:
        """What the step at ``moment`` trains on: a function of the moment, of nothing drawn before."""


@final
class Whole(Source):
    """Every step sees everything."""

    def batch(self, moment: Moment) -> GraphInputs:  # noqa: ARG002 - the same at every moment
        """All of it."""
        return self.whole
