"""``nodejepa pretrain --workers``: the command in several processes, and what it is inside of one."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodejepa.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from nodejepa.methods import Estimator

Workers = Annotated[
    int, typer.Option(help="Processes that share each step's training.units; one thread each.", min=1)
]
AllReduce = Annotated[
    bool, typer.Option("--all-reduce", help="Let workers add up in any order: less is sent, last bits vary.")
]
Wait = Annotated[float, typer.Option(help="Seconds that workers wait for each other at the start.", min=1)]
Ray = Annotated[bool, typer.Option("--ray", help="Let Ray Train start the workers (extra: ray).")]
AsWorker = Annotated[bool, typer.Option("--as-worker", hidden=True)]


@contextmanager
def joined(estimator: Estimator, *, all_reduce: bool, wait: float) -> Iterator[bool]:
    """As one of a group while the block lasts; yields whether this one leads it."""
    import torch.distributed as dist

    from nodejepa.training.processes import join

    _require_units(estimator)
    by_others = dist.is_initialized()
    estimator.team = team = join(ordered=not all_reduce, wait_seconds=wait)
    yield team.leads
    if not by_others:  # nor after an error: others may be waiting, and must see this one end
        dist.destroy_process_group()


def start_workers(
    estimator: Estimator,
    dataset: str,
    out: Path,
    workers: int,
    *,
    resume: bool,
    options: dict[str, Any],
    data_root: Path | None,
    ray: bool = False,
) -> None:
    """Run the command in ``workers`` processes; what is wrong with it is said before, and once."""
    from nodejepa.data import load_dataset
    from nodejepa.owngraph.stored_plan import require_room
    from nodejepa.store import StoredGraph
    from nodejepa.training.run import Run

    units = _require_units(estimator)
    if units < workers:
        raise ConfigError(
            f"{workers} workers are to share training.units={units}",
            where="--workers",
            fix=f"Cut a step into {workers} units or more, e.g. --set parts={8 * workers} "
            f"--set parts_per_step={2 * workers} --set units={workers}.",
        )
    Run(out).refuse_begun(resume=resume)
    graph = StoredGraph(dataset) if StoredGraph.is_at(dataset) else load_dataset(dataset, data_root).graph
    if isinstance(graph, StoredGraph):
        limit = options["memory-limit"]
        require_room(estimator, graph, limit, processes=workers, started=0 if ray else workers)
    estimator.prepare(graph)  # once: the workers find it on disk
    arguments = [dataset, "--out", str(out.resolve())]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one is not False:
                arguments += [f"--{name}"] if one is True else [f"--{name}", str(one)]
    if (_launch_with_ray(arguments, workers, out.resolve()) if ray else _launch(arguments, workers)) != 0:
        raise TrainingError(
            f"one of {workers} workers failed, and starting it again did not help",
            where=str(out),
            fix="See what it said above. What was trained is kept: go on with --resume.",
        )


def _launch(arguments: Sequence[str], workers: int, *, restarts: int = 3) -> int:
    """Run ``python -m nodejepa.worker`` in several processes of this machine; torchrun's exit code."""
    environment = {"OMP_NUM_THREADS": "1", "LOGLEVEL": "ERROR"} | os.environ  # cores are shared by processes
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={workers}"]
    command = [sys.executable, *torchrun, f"--max-restarts={restarts}", "-m", "nodejepa.worker", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


def _launch_with_ray(arguments: Sequence[str], workers: int, out: Path, *, restarts: int = 3) -> int:
    """Let Ray Train call :func:`nodejepa.worker.work` in several processes of its cluster; 0 if all is well.

    Ray notes what it did in a folder that all its machines must see, and so must they ``out``.
    """
    import torch

    try:
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError:
        raise TrainingError("Ray Train is not installed", fix="pip install 'nodejepa[ray]'.") from None

    def loop() -> None:
        work = importlib.import_module("nodejepa.worker").work  # which imports this one
        try:
            work(arguments)
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"the worker left with exit code {ended.code}") from None

    trainer = TorchTrainer(
        loop,
        torch_config=TorchConfig(backend="nccl" if torch.cuda.is_available() else "gloo"),
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


def _require_units(estimator: Estimator) -> int:
    config = getattr(estimator.config, "training", None)
    if config is None:
        raise ConfigError(
            f"{estimator.name} is not trained in steps, so workers have nothing to share",
            where="--workers",
            fix="Leave it out.",
        )
    return int(config.units)
