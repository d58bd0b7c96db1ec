"""Several processes that train together: PyTorch's process group, as torchrun starts it."""

import os
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, final

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from nodejepa.errors import RESUME, Advice, Setting, TrainingError
from nodejepa.training.team import Team, in_order

T = TypeVar("T")
_POLL_SECONDS = 0.02


@final
class Processes(Team):
    """The processes of a group that :func:`join` has joined.

    ``ordered`` sums are taken in the order of the units, so that no bit depends on the number of processes;
    else the order is left to the library, which sends less.
    """

    def __init__(self, rank: int, size: int, *, ordered: bool = True) -> None:
        super().__init__(rank, size)
        self._ordered = ordered

    def sum(self, mine: list[Tensor], units: int) -> Tensor:
        """In the order of the units, or as the library adds."""
        if not self._ordered:
            total = in_order(mine).clone()
            _together(lambda: dist.all_reduce(total))
            return total
        most = -(-units // self.size)  # processes may have one unit more or less: all send as many
        padded = torch.stack([*mine, *[torch.zeros_like(mine[0])] * (most - len(mine))])
        gathered = [torch.empty_like(padded) for _ in range(self.size)]
        _together(lambda: dist.all_gather(gathered, padded))
        counts = [len(Processes(rank, self.size).mine(units)) for rank in range(self.size)]
        return in_order([sent[i] for sent, count in zip(gathered, counts, strict=True) for i in range(count)])

    def share(self, content: bytes) -> bytes:
        """The leader's bytes: a length, then what is so long."""
        device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
        size = torch.tensor(len(content), device=device)
        _together(lambda: dist.broadcast(size, src=0))
        held = torch.empty(int(size), dtype=torch.uint8, device=device)
        if self.leads and content:
            held.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        _together(lambda: dist.broadcast(held, src=0))
        return held.cpu().numpy().tobytes()


def join(*, ordered: bool = True, wait_seconds: float = 300.0, step_seconds: float = 1800.0) -> Processes:
    """Join the processes that torchrun (or Ray Train, which has joined them already) started with this one.

    The others may take ``wait_seconds`` to come, and ``step_seconds`` for a step or a look at all nodes.
    """
    if not dist.is_initialized():
        device = None
        if torch.cuda.is_available():
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(device)
        try:
            wait = timedelta(seconds=wait_seconds)
            store, rank, size = next(rendezvous("env://", timeout=wait))
            prefix = agree(store, rank, size, wait_seconds)
            dist.init_process_group(
                "gloo" if device is None else "nccl",
                store=PrefixStore(prefix, store),
                rank=rank,
                world_size=size,
                timeout=timedelta(seconds=step_seconds),
            )
        except (RuntimeError, ValueError) as error:
            raise TrainingError(
                f"the processes do not find each other: {_first_line(error)}",
                where="torchrun",
                fix="Start as many as were announced, with the same rendezvous endpoint and id.",
            ) from None
    return Processes(dist.get_rank(), dist.get_world_size(), ordered=ordered)


def agree(store: Any, rank: int, size: int, wait_seconds: float) -> str:
    """A prefix of the store's keys that all processes of this attempt, and of no earlier one, have.

    The store outlives the processes: torchrun starts them again beside keys of those that were killed, and
    who takes an old address for a new one waits for ever. Counts of restarts differ between machines. So the
    leader names the attempt by a word that never was before; the others answer with such words of their
    own, under the name they read, and go on when this very answer was confirmed, which nobody but the
    leader of today can do. Who has read an old name will read again.
    """
    until = time.monotonic() + wait_seconds
    if rank == 0:
        name = uuid.uuid4().hex
        store.set("nodejepa/attempt", name)
        missing = set(range(1, size))
        while missing:
            for other in sorted(missing):
                if store.check([f"{name}/{other}"]):
                    answer = store.get(f"{name}/{other}").decode()
                    store.set(f"{name}/{answer}", "welcome")
                    missing.discard(other)
            _pause(until, f"{len(missing)} of {size} processes did not come within {wait_seconds:g} s")
        return f"nodejepa/{name}"
    name, answer = "", uuid.uuid4().hex
    while not (name and store.check([f"{name}/{answer}"])):
        if store.check(["nodejepa/attempt"]):
            name = store.get("nodejepa/attempt").decode()
            store.set(f"{name}/{rank}", answer)
        _pause(until, f"the first of {size} processes did not come within {wait_seconds:g} s")
    return f"nodejepa/{name}"


def _pause(until: float, what: str) -> None:
    if time.monotonic() > until:
        raise TrainingError(
            what,
            where="torchrun",
            fix=Advice.saying(
                "Start all of them, and look at what the missing ones said. To wait longer, set {}.",
                Setting("wait"),
            ),
        )
    time.sleep(_POLL_SECONDS)


def _together(exchange: Callable[[], object]) -> None:
    try:
        exchange()
    except RuntimeError as error:
        raise TrainingError(
            f"another process is gone or does not answer: {_first_line(error)}",
            where="process group",
            fix=Advice.saying(
                "torchrun starts all again where restarts are left; else go on with {}.", RESUME
            ),
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200]
