"""``nodejepa pretrain --workers``: the command in several processes, and what it is inside of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodejepa.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from nodejepa.methods import Estimator

Workers = Annotated[
    int, typer.Option(help="Processes that share each step's training.micro_batches; one thread each.", min=1)
]
Wait = Annotated[float, typer.Option(help="Seconds that workers wait for each other at the start.", min=1)]
Ray = Annotated[bool, typer.Option("--ray", help="Let Ray Train start the workers (extra: ray).")]
AsWorker = Annotated[bool, typer.Option("--as-worker", hidden=True)]


@contextmanager
def joined(estimator: Estimator, *, wait: float) -> Iterator[bool]:
    """As one of a group while the block lasts; yields whether this one leads it."""
    import torch.distributed as dist

    from nodejepa.training.distributed import join

    _require_steps(estimator)
    by_others = dist.is_initialized()
    estimator.process_group = join(wait_seconds=wait)
    yield estimator.process_group.leads
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
    from nodejepa.tables import StoredGraph
    from nodejepa.training.distributed import launch, launch_with_ray
    from nodejepa.training.run import Run
    from nodejepa.workflow.stored_plan import require_room

    micro_batches = _require_steps(estimator)
    if micro_batches < workers:
        raise ConfigError(
            f"{workers} workers are to share training.micro_batches={micro_batches}",
            where="--workers",
            fix=f"Cut a step into {workers} or more, e.g. --set parts={8 * workers} "
            f"--set parts_per_step={2 * workers} --set micro_batches={workers}.",
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
    if (launch_with_ray(arguments, workers, out.resolve()) if ray else launch(arguments, workers)) != 0:
        raise TrainingError(
            f"one of {workers} workers failed, and starting it again did not help",
            where=str(out),
            fix="See what it said above. What was trained is kept: go on with --resume.",
        )


def _require_steps(estimator: Estimator) -> int:
    config = getattr(estimator.config, "training", None)
    if config is None:
        raise ConfigError(
            f"{estimator.name} is not trained in steps, so workers have nothing to share",
            where="--workers",
            fix="Leave it out.",
        )
    return int(config.micro_batches)
