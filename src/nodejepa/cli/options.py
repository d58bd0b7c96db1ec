"""Options that several commands have, and those that say how a user's files are read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperOption

from nodejepa.errors import TrainingError

if TYPE_CHECKING:
    from nodejepa.tables import ReadingOptions
    from nodejepa.training.distributed import ProcessGroup

# Panels of a command's help: what few need stands below what most need
file_option = partial(typer.Option, rich_help_panel="Reading the files")
training_option = partial(typer.Option, rich_help_panel="Training")
output_option = partial(typer.Option, rich_help_panel="Output")
machine_option = partial(typer.Option, rich_help_panel="Machine")

Device = Annotated[str, machine_option(help="auto, cpu or cuda.")]
Seed = Annotated[int, training_option(help="Of everything random.", min=0)]
Preset = Annotated[str, training_option(help="Settings to start from.")]
CheckpointEpochs = Annotated[int, training_option(help="Epochs between checkpoints.", min=1)]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what was stopped.")]
AsJSON = Annotated[bool, output_option("--json", help="Print JSON and nothing else on stdout.")]
MemoryLimit = Annotated[
    float | None, machine_option(help="Memory this may take (default: what is free).", metavar="GB")
]
DataRoot = Annotated[
    Path | None,
    machine_option(help="Folder of the data files (default: NODEJEPA_DATA, else the user's cache)."),
]
Workers = Annotated[
    int,
    machine_option(
        help="Processes of one thread each; they share columns (linear-jepa) or training.micro_batches.",
        min=1,
    ),
]
AsWorker = Annotated[bool, typer.Option("--as-worker", hidden=True)]


class Command(TyperCommand):
    """Its help is readable in 80 columns: a flag has no type, everything else a short name."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for option in self.params:
            if isinstance(option, TyperOption) and option.metavar is None:
                option.metavar = "" if option.is_flag else "VALUE"


def folder_path(text: str | Path) -> Path:
    """A path that was written out: ``Path("")`` would silently be the current folder."""
    if not str(text):
        raise typer.BadParameter('The path is empty; "." is the current folder.')
    return Path(text)


def _dataset_names(incomplete: str) -> list[str]:
    from nodejepa.data.catalogue import CATALOGUE

    return [name for name in CATALOGUE if name.startswith(incomplete)]


def _method_names(incomplete: str) -> list[str]:
    from nodejepa.methods import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


_DATASET = typer.Argument(
    metavar="DATASET",
    help="A name that `nodejepa datasets` lists, or a folder that `nodejepa prepare` wrote.",
    autocompletion=_dataset_names,
)
DatasetName = Annotated[str, _DATASET]
DatasetNameIfAny = Annotated[str | None, _DATASET]
MethodName = Annotated[
    str, typer.Option(help="A name that `nodejepa methods` lists.", autocompletion=_method_names)
]
Use = Annotated[
    Literal["auto", "columns", "structure", "both"] | None,
    typer.Option(
        help="What embeddings are made of: columns of the nodes, structure of the graph, both; auto "
        "(default): validation labels choose, or a rule. Only a model of columns serves other graphs.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "--settings", metavar="NAME=VALUE", help="Change a setting, e.g. masking.hops=2; repeatable."
    ),
]
EdgeFile = Annotated[
    Path,
    typer.Option(help="Edges, a row each: parquet, CSV or TSV (also .gz).", metavar="FILE"),
]
NodeFile = Annotated[
    list[Path] | None,
    typer.Option(
        help="Nodes, a row each (repeatable); without it only the structure describes them.", metavar="FILE"
    ),
]
_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


def _options(
    source: Annotated[str | None, typer.Option(help="Column of an edge's start.", metavar="COLUMN")] = None,
    target: Annotated[str | None, typer.Option(help="Column of an edge's end.", metavar="COLUMN")] = None,
    weight: Annotated[str | None, file_option(help="Column of edge weights.", metavar="COLUMN")] = None,
    no_weight: Annotated[
        bool, file_option("--no-weight", help="Read no edge weights, also where a column is named weight.")
    ] = False,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="Column of the node table that edges refer to.", metavar="COLUMN"),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Column of classes: scored, never trained on.", metavar="COLUMN"),
    ] = None,
    drop: Annotated[
        list[str] | None,
        file_option(
            "--drop", "--ignore", help="Column of the node table to leave out; repeatable.", metavar="COLUMN"
        ),
    ] = None,
    directed: Annotated[bool, file_option("--directed", help="Keep the direction of edges.")] = False,
    text: Annotated[
        str,
        file_option(help="Free text: refuse, hash, ignore, or sentence-transformers:MODEL.", metavar="HOW"),
    ] = "refuse",
    text_columns: Annotated[
        int | None,
        file_option(help="With --text hash: features of a column (default: 512).", metavar="N", min=1),
    ] = None,
    scale: Annotated[
        Literal["auto", "standardise", "none"],
        file_option(
            help="Numbers: to mean 0 and standard deviation 1 (standardise), as they are (none), or the "
            "first but for columns of 0 and 1 and lists (auto).",
            metavar="HOW",
        ),
    ] = "auto",
    bipartite: Annotated[
        bool | None,
        file_option(
            "--bipartite/--one-id-space",
            help="The two columns of the edges have ids of their own, as users and items do (a node is "
            "then COLUMN:ID), or name the same nodes.",
        ),
    ] = None,
    structural: Annotated[
        str | None,
        file_option(
            help="Structural features, separated by commas: pagerank, degree, clustering, spectral (these "
            "four: all), adjacency (of this graph only); or none. Without it: all five where there are no "
            "other features, all four on disk and beyond 250,000 nodes.",
            metavar="NAMES",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        file_option(
            "--header/--no-header",
            help="The first row of text files names the columns, or not (else guessed).",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        file_option(help="Between columns of text files: one character, tab or space (else guessed)."),
    ] = None,
) -> None:
    """What may be said; :func:`_reading` takes it."""


def _reading(given: dict[str, Any]) -> ReadingOptions:
    """The options as the reader wants them; a delimiter that is hard to type has a name."""
    from nodejepa.tables import ReadingOptions

    if given.pop("no_weight", False):
        if given["weight"] is not None:
            raise typer.BadParameter("Give --weight or --no-weight, not both.")
        given["weight"] = False
    if given.get("structural") is not None:
        names = tuple(name.strip() for name in given["structural"].split(","))
        given["structural"] = () if names == ("none",) else names
    given["delimiter"] = _DELIMITERS.get(given["delimiter"], given["delimiter"])
    given["drop"] = tuple(given.get("drop") or ())
    return ReadingOptions(**{name: value for name, value in given.items() if value is not None})


def reads_files(
    *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of reading (all, ``only`` some, or ``without`` some) for its ``reading``."""
    known = inspect.signature(_options, eval_str=True).parameters
    options = [one for name, one in known.items() if name not in without and (not only or name in only)]

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)

        def with_options(**given: Any) -> None:
            files = given.get("nodes") or None
            given["nodes"] = files[0] if files and len(files) == 1 else files
            command(reading=_reading({option.name: given.pop(option.name) for option in options}), **given)

        merged = [
            parameter.replace(kind=parameter.KEYWORD_ONLY)
            for name, one in own.parameters.items()
            for parameter in (options if name == "reading" else (one,))
        ]
        with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
        with_options.__signature__ = own.replace(parameters=merged)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in merged}
        return with_options

    return give


def given_again(context: typer.Context, *without: str) -> list[str]:
    """The command and what it was given, for the processes that it starts; files by their whole paths."""
    from nodejepa.tables import is_store

    again = [str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in without or source is None or source.name == "DEFAULT":
            continue
        value, argument = context.params[name], parameter.param_type_name == "argument"
        if isinstance(value, bool):
            again.append((parameter.opts if value else parameter.secondary_opts)[0])
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            is_path = isinstance(one, Path) or (argument and is_store(one))
            text = str(Path(one).resolve() if is_path else one)
            again += [text] if argument else [parameter.opts[0], text]
    return again


def start_workers(context: typer.Context, out: Path, workers: int, *without: str, ray: bool = False) -> None:
    """Run the command in several processes; what is wrong with it was said before, and once."""
    from nodejepa.training.distributed import launch, launch_with_ray

    again = given_again(context, "workers", *without)
    code = launch_with_ray(again, workers, out.resolve()) if ray else launch(again, workers)
    if code != 0:
        resumed = "" if context.info_name == "embed" else " with --resume"
        raise TrainingError(
            f"one of {workers} workers failed, and starting it again did not help",
            where=str(out),
            fix=f"See what it said above. The same command{resumed} goes on with what is missing.",
        )


@contextmanager
def joined(as_worker: bool) -> Iterator[ProcessGroup]:
    """The group that this process is one of, while the block lasts; alone if it is no worker."""
    from nodejepa.training.distributed import SINGLE, join

    if not as_worker:
        yield SINGLE
        return
    import torch.distributed as dist

    by_others = dist.is_initialized()
    yield join()
    if not by_others:  # nor after an error: others may be waiting, and must see this one end
        dist.destroy_process_group()
