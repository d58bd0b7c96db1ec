"""``nodejepa demo``, ``datasets`` and ``methods``: what there is to choose from; shared options."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from nodejepa.cli.screen import say, stderr, stdout

Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
DataRoot = Annotated[
    Path | None,
    typer.Option(
        "--data-root",
        help="Folder of the data files (default: NODEJEPA_DATA, else the user's cache directory).",
    ),
]


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
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "--settings", metavar="NAME=VALUE", help="Change a setting, e.g. masking.hops=2; repeatable."
    ),
]


def datasets(data_root: DataRoot = None) -> None:
    """List the named graphs and whether their files are here."""
    from nodejepa.data.catalogue import CATALOGUE
    from nodejepa.data.catalogue import data_root as resolve

    table = Table("name", "what it is", "here", show_lines=True)
    for entry in CATALOGUE.values():
        counts = f"{entry.nodes:,} nodes, {entry.edges:,} edges, {entry.features:,} features"
        task = f"{entry.classes} classes, split {entry.default_split}"
        about = Text.assemble(entry.summary, (f"\n{counts}\n{task}\n{entry.source}", "dim"))
        here = ("yes" if entry.files else "built in") if entry.is_present(data_root) else "no"
        table.add_row(entry.name, about, here)
    stdout.print(table)
    say(f"Data root: {resolve(data_root)}", to=stderr)


def methods() -> None:
    """List the methods, their presets and where they come from."""
    from nodejepa.methods import METHODS

    table = Table("name", "what it is", "trained", "presets", "citation")
    for entry in METHODS.values():
        trained = "yes" if entry.trained else "no"
        presets = Text("\n".join(filter(None, (", ".join(entry.presets), entry.about_presets))))
        table.add_row(entry.name, Text(entry.summary), trained, presets, Text(entry.citation))
    stdout.print(table)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the embeddings and the report.")] = Path("demo"),
) -> None:
    """Embed the built-in graph `digits`, score it with few labels, write embeddings and a report."""
    stderr.print("Embedding 1,797 handwritten digits with six methods, probing them: about a minute")
    from nodejepa.demo import SHOTS, accuracy, run_demo

    found = run_demo(out)
    table = Table(title="digits: test accuracy (%), mean ± std over draws of the labels")
    table.add_column("method")
    for shots in SHOTS:
        table.add_column(f"{shots} labels per class", justify="right")
    for row in found.rows:
        table.add_row(row.title, *(accuracy(row.few_shot[shots]) for shots in SHOTS))
    stdout.print(table)
    stdout.print(Text(found.comparison))
    for path in found.files:
        say(f"graph       {path}")
    for row in found.rows:
        say(f"embeddings  {row.path}")
    say(f"report      {found.report}")
