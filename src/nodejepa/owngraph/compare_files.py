"""``compare`` on a user's files: read, compared, and every model left so that it can be applied."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodejepa.io import ReadingOptions
from nodejepa.io.files_in import refuse_replacing
from nodejepa.owngraph.compare import EMBEDDINGS, PAGE, RESULT, Comparison, compare
from nodejepa.owngraph.inspect import Inspection, inspect_graph
from nodejepa.owngraph.places import input_files
from nodejepa.owngraph.recommend import DEFAULT
from nodejepa.owngraph.run_schema import RunSchema
from nodejepa.owngraph.trainable import make_trainable


def compare_files(
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    out: str | os.PathLike[str],
    memory_limit: float | None = None,
    inspected: Callable[[Inspection], None] | None = None,
    **arguments: Any,
) -> Comparison:
    """Read a graph from files and :func:`compare` methods on it.

    Args:
        edges: as in :func:`nodejepa.read_graph`.
        nodes: likewise.
        reading: likewise.
        out: folder of everything that is written.
        memory_limit: gigabytes the process may take; what is available if not given.
        inspected: called with the data report before the first method begins.
        arguments: of :func:`compare`.
    """
    folder, reading = Path(out), reading or ReadingOptions()
    for name in (EMBEDDINGS, PAGE, RESULT):
        refuse_replacing(folder / name, *input_files(edges, nodes))
    default = make_trainable(DEFAULT)
    found = inspect_graph(edges, nodes, reading, estimator=default, memory_limit=memory_limit)
    if inspected is not None:
        inspected(found)
    found.require_usable()
    loaded, notes = found.loaded, found.warnings()
    if loaded.schema.structural:
        notes.append(
            "Structural features saw the links that were then held out: links are scored too kindly."
        )
    made = compare(
        loaded.graph,
        loaded.labels,
        class_names=loaded.class_names,
        out=folder,
        memory_limit=memory_limit,
        columns=loaded.sides,
        notes=notes,
        **arguments,
    )
    for row in made.rows:
        if row.problem is None:
            RunSchema.of(loaded, reading).save(folder / "runs" / row.method)
    return made
