"""Units of a step that share a process, in turns: each runs until it needs a sum over all of them.

A loss asks its group for sums in the middle of its work. Units are therefore coroutines, and because a loss
is plain Python and knows nothing of it, threads of which exactly one runs at any time. Who runs when follows
from the numbers of the units alone, and so does every bit.
"""

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar, final

import torch
from torch import Tensor

from nodejepa.training.group import Group

T = TypeVar("T")
_STOP = object()


class _Stopped(BaseException):
    """Ends a unit that waits for others which will never answer."""


def in_turns(
    work: Sequence[Callable[[Group], T]], units: int, total: Callable[[list[Tensor]], Tensor]
) -> list[T]:
    """What the units of this process return, in their order; all ask for the same sums in the same order.

    ``units`` is how many there are in all processes, ``total`` the sum over all of them, wherever they run,
    from the tensors of those that run here.
    """
    turns = [_Turn(function, units) for function in work]
    try:
        said = [turn.resume(None) for turn in turns]
        while not all(turn.ended for turn in turns):
            if any(turn.ended for turn in turns):
                raise RuntimeError("units of one step asked for different sums")
            answer = total(said)
            said = [turn.resume(answer) for turn in turns]
        return [turn.result for turn in turns]
    finally:
        for turn in turns:
            turn.stop()


@final
class _Turn(Group, Generic[T]):
    """One unit: the coroutine, and the group that its loss asks."""

    def __init__(self, work: Callable[[Group], T], units: int) -> None:
        self.units, self.ended, self._work = units, False, work
        self.result: Any = None
        self._error: BaseException | None = None
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._questions: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def resume(self, answer: Tensor | None) -> Tensor:
        """Let it go on with what it asked for, until it asks again or ends; what it asks to have summed."""
        self._answers.put(answer)
        question: Tensor = self._questions.get()
        if self._error is not None:
            raise self._error
        return question

    def stop(self) -> None:
        """End it, wherever it waits."""
        self._answers.put(_STOP)
        self._thread.join()

    def _run(self) -> None:
        try:
            if self._answers.get() is not _STOP:
                self.result = self._work(self)
        except _Stopped:
            pass
        except BaseException as error:  # whatever it is, it is raised where the unit was resumed
            self._error = error
        self.ended = True
        self._questions.put(None)

    def _ask(self, x: Tensor) -> Tensor:
        self._questions.put(x)
        answer: Any = self._answers.get()
        if answer is _STOP:
            raise _Stopped
        total: Tensor = answer
        return total

    def rows(self, h: Tensor) -> int:
        """Of all units."""
        return int(self._ask(torch.tensor(len(h), device=h.device)).item())

    def sum(self, x: Tensor) -> Tensor:
        """Of all units; the gradient is that of the own share."""
        total: Tensor = _Total.apply(x, self._ask(x.detach()))  # type: ignore[no-untyped-call]
        return total

    def mean(self, h: Tensor) -> Tensor:
        """Of all units."""
        return self.sum(h.sum(dim=0)) / self.rows(h)

    def average(self, term: Tensor, rows: int) -> Tensor:
        """Weighed by rows; in double precision, which costs nothing for two numbers."""
        share = torch.stack([term.double() * rows, term.new_tensor(rows, dtype=torch.float64)])
        found = self.sum(share)
        return (found[0] / found[1]).to(term.dtype)


class _Total(torch.autograd.Function):
    """The sum over all units as a function of one unit's share."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, total: Tensor) -> Tensor:  # noqa: ARG004
        return total.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return grads[0], None
