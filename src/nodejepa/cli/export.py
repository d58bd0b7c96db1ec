"""``nodejepa export``: embeddings in the formats that other tools read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from nodejepa.cli.screen import stderr, stdout

EXPORT_EXAMPLES = (
    "Examples:\n\n"
    "nodejepa export z.parquet --to projector --out projector && tensorboard --logdir projector\n\n"
    "nodejepa export z.parquet --to parquet --out vectors.parquet   (LanceDB, Milvus)\n\n"
    "nodejepa export z.parquet --to jsonl --out vectors.jsonl   (Qdrant, Weaviate, OpenSearch)\n\n"
    "nodejepa export z.parquet --to fvecs --out z.fvecs   (FAISS; ids go to z.fvecs.ids.jsonl)"
)


class Format(StrEnum):
    """What :data:`nodejepa.io.EXPORT_FORMATS` offers, without the cost of importing it."""

    projector = "projector"
    parquet = "parquet"
    jsonl = "jsonl"
    csv = "csv"
    fvecs = "fvecs"
    npy = "npy"


def export(
    embeddings: Annotated[
        Path, typer.Argument(metavar="FILE", help="Embeddings: .parquet (with ids) or .npy (row numbers).")
    ],
    to: Annotated[Format, typer.Option("--to", help="The format.")],
    out: Annotated[Path, typer.Option(help="The file; for the projector, the folder.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace --out, also where it holds something else.")
    ] = False,
) -> None:
    """Write embeddings for TensorBoard's projector, a vector store, FAISS or a spreadsheet."""
    from nodejepa.io import export_embeddings, read_columns, read_embeddings
    from nodejepa.io.export import EXPORT_FORMATS, check_target
    from nodejepa.io.files_in import refuse_other_kind, refuse_replacing
    from nodejepa.owngraph.outputs import refuse_losing

    check_target(out, to.value)  # before the work
    refuse_replacing(out, embeddings)
    kind = EXPORT_FORMATS[to.value]
    refuse_other_kind(out, kind.begins, kind.columns, force=force)
    refuse_losing(out, force=force, manifest_only=True)
    stored = read_embeddings(embeddings)
    exported = export_embeddings(
        out, stored.ids, stored.matrix, to=to.value, columns=read_columns(embeddings)
    )
    nodes, width = stored.matrix.shape
    stdout.print(Text(f"{nodes:,} nodes x {width}"))
    for path in exported.files:
        stdout.print(Text(f"-> {path}"), soft_wrap=True)
    for note in exported.notes:
        stderr.print(Text(f"Note: {note}."), soft_wrap=True)
