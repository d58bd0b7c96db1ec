"""Where a step's part of the graph comes from."""

from collections.abc import Callable
from typing import final

from nodejepa.nn.inputs import GraphInputs
from nodejepa.training.task import StepContext, TrainingConfig, numpy_generator


class Source:
    """Hands out what each step or micro-batch trains on: here, the whole of it.

    ``whole`` is what is validated and monitored.
    """

    def __init__(self, whole: GraphInputs, steps_per_epoch: int = 1, micro_batches: int = 1) -> None:
        self.whole, self.steps_per_epoch, self.micro_batches = whole, steps_per_epoch, micro_batches

    def batch(self, context: StepContext) -> GraphInputs:  # noqa: ARG002 - the same in every step
        """What the step, or the micro-batch of it, of ``context`` trains on: a function of it alone."""
        return self.whole


@final
class Parts(Source):
    """Every step sees some parts, joined; in a round of steps each part is seen once, in random order.

    ``joined`` makes what a step sees of the numbers of its parts.
    """

    def __init__(
        self,
        whole: GraphInputs,
        joined: Callable[[list[int]], GraphInputs],
        config: TrainingConfig,
        rounds: int = 1,
    ) -> None:
        self._steps = config.parts // config.parts_per_step  # of a round
        super().__init__(whole, rounds * self._steps, config.micro_batches)
        self._joined, self._count = joined, config.parts_per_step // config.micro_batches

    def batch(self, context: StepContext) -> GraphInputs:
        """The parts of the step, or of the micro-batch of it."""
        round_, step = divmod(context.step, self._steps)
        order = numpy_generator(context.seed, "parts", context.epoch, round_).permutation(
            self._steps * self.micro_batches * self._count
        )
        first = (step * self.micro_batches + (context.micro_batch or 0)) * self._count
        return self._joined(sorted(order[first : first + self._count].tolist()))
