"""Options that several commands have, and those that say how a user's files are read."""

from __future__ import annotations

import inspect
import re
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

Device = Annotated[str, machine_option(help="Device: auto, cpu or cuda.")]
Seed = Annotated[int, training_option(help="Random seed.", min=0)]
Preset = Annotated[str, training_option(help="Named set of settings; `nodejepa methods` lists them.")]
CheckpointEpochs = Annotated[int, training_option(help="Epochs between checkpoints.", min=1)]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output files.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")]
AsJSON = Annotated[bool, output_option("--json", help="Print the result as JSON on stdout.")]
MemoryLimit = Annotated[
    float | None, machine_option(help="Most memory to use, in GB (default: the free memory).", metavar="GB")
]
DataRoot = Annotated[
    Path | None,
    machine_option(help="Folder of the named graphs (default: NODEJEPA_DATA, or your cache directory)."),
]
Workers = Annotated[
    int,
    machine_option(
        help="Number of processes with one thread each. They share the columns of the embeddings "
        "(linear-jepa) or the micro-batches of a step (training.micro_batches).",
        min=1,
    ),
]
AsWorker = Annotated[bool, typer.Option("--as-worker", hidden=True)]


class Command(TyperCommand):
    """Its help is readable in 80 columns: a flag has no type, everything else a short name.

    What stands under "Examples:" in the docstring comes below the options, a command a paragraph.
    """

    def __init__(self, *given: Any, help: str, **named: Any) -> None:
        about, heading, examples = help.partition("Examples:")
        _, *each = re.split(r"\n\s+(?=nodejepa )", examples)
        below = "\n\n".join([heading, *(" ".join(example.split()) for example in each)])
        super().__init__(*given, **named | {"help": about, "epilog": below})
        for option in self.params:
            if isinstance(option, TyperOption) and option.metavar is None:
                option.metavar = "" if option.is_flag else "VALUE"

    def get_help_option(self, ctx: Any) -> Any:
        """``--help`` is a flag, too."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.metavar = ""
        return option


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
    help="A graph that `nodejepa datasets` lists, or a graph store that `nodejepa prepare` wrote.",
    autocompletion=_dataset_names,
)
DatasetName = Annotated[str, _DATASET]
DatasetNameIfAny = Annotated[str | None, _DATASET]
MethodName = Annotated[
    str, typer.Option(help="Method; `nodejepa methods` lists them.", autocompletion=_method_names)
]
Use = Annotated[
    Literal["auto", "columns", "structure", "both"] | None,
    typer.Option(
        help="Input features: columns of the node table, structure of the graph, or both. auto (default) "
        "chooses one by validation labels or a rule. Only models of columns can embed other graphs.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "--settings",
        metavar="NAME=VALUE",
        help="Change a setting, such as masking.hops=2. Repeatable.",
    ),
]
EdgeFile = Annotated[
    Path,
    typer.Option(help="Table of edges (parquet, CSV, TSV; also .gz).", metavar="FILE"),
]
NodeFile = Annotated[
    list[Path] | None,
    typer.Option(
        help="Table of nodes with ids and features. Repeatable. Default: structural features only.",
        metavar="FILE",
    ),
]
_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


def _options(
    source: Annotated[str | None, typer.Option(help="Edge column of source ids.", metavar="COLUMN")] = None,
    target: Annotated[str | None, typer.Option(help="Edge column of target ids.", metavar="COLUMN")] = None,
    weight: Annotated[str | None, file_option(help="Edge column of weights.", metavar="COLUMN")] = None,
    no_weight: Annotated[bool, file_option("--no-weight", help="Ignore a column named weight.")] = False,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="Node column of ids.", metavar="COLUMN"),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Node column of classes. No method is trained on them.", metavar="COLUMN"),
    ] = None,
    drop: Annotated[
        list[str] | None,
        file_option("--drop", "--ignore", help="Node column to leave out. Repeatable.", metavar="COLUMN"),
    ] = None,
    directed: Annotated[bool, file_option("--directed", help="Edges are directed.")] = False,
    text: Annotated[
        str,
        file_option(help="Free text: refuse, hash, ignore, or sentence-transformers:MODEL.", metavar="HOW"),
    ] = "refuse",
    text_columns: Annotated[
        int | None,
        file_option(help="Features per text column with --text hash (default: 512).", metavar="N", min=1),
    ] = None,
    scale: Annotated[
        Literal["auto", "standardise", "none"],
        file_option(
            help="How columns of numbers are scaled: standardise or none. auto standardises all but lists "
            "and columns of 0 and 1.",
            metavar="HOW",
        ),
    ] = "auto",
    bipartite: Annotated[
        bool | None,
        file_option(
            "--bipartite/--one-id-space",
            help="--bipartite: source and target ids name different kinds of nodes, such as users and items. "
            "Nodes are then called COLUMN:ID. --one-id-space: they name the same nodes.",
        ),
    ] = None,
    structural: Annotated[
        str | None,
        file_option(
            help="Structural features, separated by commas: pagerank, degree, clustering, spectral, "
            "adjacency. all means the first four. none means no structural features. Graphs without other "
            "features get all five by default. Graphs on disk or with more than 250,000 nodes get the first "
            "four.",
            metavar="NAMES",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        file_option(
            "--header/--no-header",
            help="The first row of a CSV or TSV file has column names, or not (default: guessed).",
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        file_option(help="Delimiter of CSV and TSV files: one character, tab or space (default: guessed)."),
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
