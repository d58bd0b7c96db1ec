"""Processes that train together: the process group, statistics over the nodes of all, starting workers.

A step is cut into micro-batches, and every process takes some of them. A loss asks its :class:`Reduction` for
sums over all of them; gradients are summed by the :class:`ProcessGroup`. The same number of processes gives
the same bits, another number the same but for rounding. One process is a group of its own, which returns
everything as it is.
"""

from __future__ import annotations

import importlib
import mmap
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, final

import safetensors.torch
import torch
import torch.distributed as dist
from torch import Tensor, nn

from nodejepa.errors import TrainingError
from nodejepa.files import nameless

T = TypeVar("T")


# ------------------------------------------------------------------ statistics of a loss


@final
class Reduction:
    """Sums and means over the rows of all micro-batches of a step, for the loss of one of them.

    All get the same values. The gradient of a sum is that of the own rows: gradients are added afterwards.

    Args:
        count: how many micro-batches there are; one has all rows, and everything is what it is.
        total: the sum of a tensor over all of them.
    """

    def __init__(self, count: int = 1, total: Callable[[Tensor], Tensor] = torch.clone) -> None:
        self.count, self._total = count, total

    def rows(self, h: Tensor) -> int:
        """Rows of ``h`` ``[n, ...]`` in all micro-batches."""
        return len(h) if self.count == 1 else int(self._total(torch.tensor(len(h), device=h.device)))

    def sum(self, x: Tensor) -> Tensor:
        """The sum of all micro-batches' ``x``."""
        if self.count == 1:
            return x
        total: Tensor = _Total.apply(x, self._total(x.detach()))  # type: ignore[no-untyped-call]
        return total

    def mean(self, h: Tensor) -> Tensor:
        """The mean of all rows ``h`` ``[n, ...]``."""
        return h.mean(dim=0) if self.count == 1 else self.sum(h.sum(dim=0)) / self.rows(h)

    def average(self, term: Tensor, rows: int) -> Tensor:
        """The mean over all rows of what has the mean ``term`` (one number) over ``rows`` here."""
        if self.count == 1:
            return term
        # in double precision, which costs nothing for two numbers
        share = torch.stack([term.double() * rows, term.new_tensor(rows, dtype=torch.float64)])
        found = self.sum(share)
        return (found[0] / found[1]).to(term.dtype)


ALONE = Reduction()


class _Total(torch.autograd.Function):
    """The sum over all micro-batches as a function of one of them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, total: Tensor) -> Tensor:  # noqa: ARG004
        return total.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return grads[0], None


def reduced(work: Sequence[Callable[[Reduction], T]], count: int, group: ProcessGroup) -> list[T]:
    """What this process's micro-batches return, each with a reduction over all ``count`` of all processes.

    Where every process has one, it waits for the others at each sum. Several in one process run one after
    another and cannot wait. They run again with the totals of the time before, until these no longer change:
    once more than their sums depend on each other.
    """
    if count == group.size:
        return [one(Reduction(count, group.all_reduce)) for one in work]
    totals: list[Tensor] = []
    passes = 0
    while True:
        results: list[T] = []  # those of the pass before are given up first
        asked: list[list[Tensor]] = []
        for one in work:
            result, sums = _with_totals(one, count, totals)
            results.append(result)
            asked.append(sums)
        before, totals = totals, [group.all_reduce(sum(x[1:], x[0])) for x in zip(*asked, strict=True)]
        passes += 1
        # every pass mends one total or more, also where a device repeats no bits
        if passes > len(totals) or (before and all(map(_same, before, totals))):
            return results


def _with_totals(
    work: Callable[[Reduction], T], count: int, totals: Sequence[Tensor]
) -> tuple[T, list[Tensor]]:
    """The result with ``totals`` for its sums, its own where there are none yet, and its own sums."""
    asked: list[Tensor] = []

    def total(x: Tensor) -> Tensor:
        asked.append(x)
        return totals[len(asked) - 1] if totals else x

    return work(Reduction(count, total)), asked


def _same(one: Tensor, two: Tensor) -> bool:
    return torch.allclose(one, two, rtol=0, atol=0, equal_nan=True)


# ------------------------------------------------------------------ the process group


@final
class Team:
    """Processes of one machine that make arrays together: each makes some rows, and all read all of them.

    Args:
        place: of this process among them.
        size: how many they are.
        first: the rank of the first of them.
        group: what torch.distributed calls them; none where a process is alone.
    """

    def __init__(self, place: int = 0, size: int = 1, first: int = 0, group: Any = None) -> None:
        self.place, self.size, self.first, self._group = place, size, first, group

    def share(self, parts: Sequence[T]) -> Sequence[T]:
        """This process's of some parts, which follow one another."""
        return parts[self.place * len(parts) // self.size : (self.place + 1) * len(parts) // self.size]

    def wait(self) -> None:
        """Until all of them are here."""
        if self.size > 1:
            _together(lambda: dist.barrier(self._group))

    def memory(self, size: int, folder: Path | None = None) -> mmap.mmap:
        """So many bytes that all of them see, without a name: in a file in ``folder``, else in memory."""
        if self.place:
            return self._opened(size, torch.zeros(2, dtype=torch.int64))
        with nameless(size, folder) as file:
            return self._opened(size, torch.tensor([os.getpid(), file]))

    def _opened(self, size: int, place: Tensor) -> mmap.mmap:
        """The file that the first one has open as ``place``, a process and a number, until all have it."""
        if self.size > 1:
            _together(lambda: dist.broadcast(place, self.first, self._group))
        process, number = place.tolist()
        try:
            if self.place == 0:
                return mmap.mmap(number, size)
            with open(f"/proc/{process}/fd/{number}", "r+b") as file:
                return mmap.mmap(file.fileno(), size)
        finally:
            self.wait()


@final
class ProcessGroup:
    """Processes 0 .. ``size`` - 1, of which the first reads, writes and shows; :func:`join` makes one.

    ``local`` of them are on this machine. They share its memory, also as a ``team`` where that is possible.
    """

    def __init__(self, rank: int = 0, size: int = 1, local: int = 1, team: Team | None = None) -> None:
        self.rank, self.size, self.local, self.team = rank, size, local, team or Team()

    @property
    def leads(self) -> bool:
        """Whether this is the first process."""
        return self.rank == 0

    def share(self, count: int, team: Team | None = None) -> range:
        """Which of ``count`` things are this process's, or its ``team``'s: a range, as even as can be."""
        each = 1 if team is None else team.size
        at, of = self.rank // each, self.size // each
        return range(at * count // of, (at + 1) * count // of)

    def least(self, number: int) -> int:
        """The smallest of all processes' numbers."""
        if self.size == 1:
            return number
        found = torch.tensor(number)
        _together(lambda: dist.all_reduce(found, dist.ReduceOp.MIN))
        return int(found)

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum of all processes' ``x``."""
        if self.size == 1:
            return x
        total = x.clone()
        _together(lambda: dist.all_reduce(total))
        return total

    def broadcast(self, content: bytes) -> bytes:
        """The first process's bytes: a length, then what is so long."""
        if self.size == 1:
            return content
        size = torch.tensor(len(content))
        _together(lambda: dist.broadcast(size, src=0))
        held = torch.empty(int(size), dtype=torch.uint8)
        if self.leads and content:
            held.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        _together(lambda: dist.broadcast(held, src=0))
        return held.numpy().tobytes()

    def first(self, make: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """Tensors that the first process makes, on the CPU; the others wait for them."""
        if self.size == 1:
            return make()
        made = {name: x.cpu().contiguous() for name, x in make().items()} if self.leads else {}
        return safetensors.torch.load(self.broadcast(safetensors.torch.save(made) if self.leads else b""))

    def send(self, x: Tensor) -> None:
        """Give ``x`` to the first process, which must :meth:`receive` it."""
        _together(lambda: dist.send(x.cpu().contiguous(), dst=0))

    def receive(self, rank: int, *shape: int) -> Tensor:
        """What process ``rank`` sends to this one: float32 of a known shape."""
        held = torch.empty(shape)
        _together(lambda: dist.recv(held, src=rank))
        return held

    def decide(self, choice: bool) -> bool:
        """What the first process chooses."""
        return self.broadcast(b"yes" if choice else b"") != b""

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give ``parameters`` the sum of all processes' gradients."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        total = self.all_reduce(torch.cat([gradient.flatten() for gradient in gradients]))
        parts = torch.split(total, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))


SINGLE = ProcessGroup()


def join(*, wait_seconds: float = 300.0, step_seconds: float = 1800.0) -> ProcessGroup:
    """Join the processes that torchrun (or Ray Train, which has joined them already) started with this one.

    The others may take ``wait_seconds`` to come, and ``step_seconds`` for a step or a look at all nodes.
    """
    if not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        try:
            dist.init_process_group(
                _backends(),
                store=_open_store(timedelta(seconds=wait_seconds)),
                rank=int(os.environ["RANK"]),
                world_size=int(os.environ["WORLD_SIZE"]),
                timeout=timedelta(seconds=step_seconds),
            )
        except (RuntimeError, ValueError, KeyError) as error:
            raise TrainingError(
                f"the processes do not find each other: {_first_line(error)}",
                where="torchrun",
                fix="Start as many as were announced, with the same rendezvous endpoint and id, and look at "
                "what the missing ones said.",
            ) from None
    rank, size, local = dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return ProcessGroup(rank, size, local, _team(ProcessGroup(rank, size, local)))


def _team(group: ProcessGroup) -> Team:
    """The processes of this machine; nobody else where machines differ in number, or share no memory."""
    local, place = group.local, int(os.environ.get("LOCAL_RANK", "0"))
    able = hasattr(os, "memfd_create") and group.rank % local == place
    if group.least(local) != -group.least(-local) or local == 1 or not group.least(able):
        return Team()
    firsts = range(0, group.size, local)  # every process makes the groups of all
    made = {first: dist.new_group([*range(first, first + local)], backend="gloo") for first in firsts}
    team = Team(place, local, group.rank - place, made[group.rank - place])
    try:
        team.memory(1).close()
    except OSError:  # processes must not look at each other here
        able = False
    return team if group.least(able) else Team()


def _backends() -> str:
    """What moves tensors: also those on the CPU where there is CUDA."""
    return "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"


def _open_store(wait: timedelta) -> Any:
    """Where processes find each other's addresses; the first one serves it, and it ends with that one.

    torchrun's own store outlives killed processes, whose addresses those that are started again would find.
    It stays where it is; this one takes the next port.
    """
    beside = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    port = int(os.environ["MASTER_PORT"]) + beside
    size, first = int(os.environ["WORLD_SIZE"]), os.environ["RANK"] == "0"
    return dist.TCPStore(os.environ["MASTER_ADDR"], port, size, first, timeout=wait)  # type: ignore[attr-defined]


def _together(exchange: Callable[[], object]) -> None:
    try:
        exchange()
    except RuntimeError as error:
        raise TrainingError(
            f"another process is gone or does not answer: {_first_line(error)}",
            where="process group",
            fix="torchrun starts all again where restarts are left; else go on with resume=True.",
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200]


# ------------------------------------------------------------------ starting workers


def launch(arguments: Sequence[str], workers: int, *, restarts: int = 3) -> int:
    """Run ``python -m nodejepa.worker`` in several processes of this machine; 0 if all is well.

    This process is torchrun's agent: to start torchrun would take another import of PyTorch.
    """
    os.environ |= {"OMP_NUM_THREADS": "1", "LOGLEVEL": "ERROR"} | os.environ  # processes share the cores
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    options = ["--standalone", f"--nproc-per-node={workers}", f"--max-restarts={restarts}"]
    asked = parse_args([*options, "-m", "nodejepa.worker", *arguments])  # type: ignore[no-untyped-call]
    try:
        run(asked)  # type: ignore[no-untyped-call]
    except ChildFailedError:  # a worker has said what is wrong
        return 1
    except SignalException as stopped:
        if stopped.sigval == signal.SIGINT:
            raise KeyboardInterrupt from None
        return 1
    return 0


def _require_processors(
    free: Callable[[], Mapping[str, float]], workers: int, *, seconds: float = 60.0
) -> None:
    """Wait until a cluster has a processor for each worker; an error says what is missing."""
    wanted = {"CPU": workers} | ({"GPU": workers} if torch.cuda.is_available() else {})
    until = time.monotonic() + seconds
    while True:
        there = free()
        missing = [f"{there.get(k, 0):g} of {n} {k}s" for k, n in wanted.items() if there.get(k, 0) < n]
        if not missing:
            return
        if time.monotonic() >= until:
            raise TrainingError(
                f"Ray's cluster has only {' and '.join(missing)} free for {workers} workers",
                where="Ray",
                fix="Start fewer workers, or add machines with `ray start`; `ray status` shows all.",
            )
        time.sleep(1)


def launch_with_ray(arguments: Sequence[str], workers: int, out: Path, *, restarts: int = 3) -> int:
    """Let Ray Train call :func:`nodejepa.worker.work` in several processes of its cluster; 0 if all is well.

    Ray notes what it did in a folder that all its machines must see, and so must they ``out``. Its workers
    are nice to all others and have a minute to start, which is too short beside other work: both are changed
    unless the environment says something else. Ray would wait for processors without end, and without a word.
    """
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "600")
    try:
        import ray
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError:
        raise TrainingError("Ray Train is not installed", fix="pip install 'nodejepa[ray]'.") from None

    ray.init(ignore_reinit_error=True)
    _require_processors(lambda: ray.available_resources(), workers)

    def loop() -> None:
        work = importlib.import_module("nodejepa.worker").work  # which imports this one
        try:
            work(arguments)
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"the worker left with exit code {ended.code}") from None

    trainer = TorchTrainer(
        loop,
        torch_config=TorchConfig(backend=_backends()),
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=torch.cuda.is_available()),
        run_config=RunConfig(
            storage_path=str(out / "ray"), failure_config=FailureConfig(max_failures=restarts)
        ),
    )
    try:
        trainer.fit()
    except TrainingFailedError:  # Ray has shown what the workers said
        return 1
    return 0
