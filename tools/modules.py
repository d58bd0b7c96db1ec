"""How many files of the package does one job go through? ``python -m tools.modules`` counts and names them.

A file counts if one of its functions runs while the job does: what an import runs is left out. The jobs are
those of the house's budget: two CSV files to a parquet file, the same with scores and a report, and
``NodeJEPA.fit``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import nodejepa
from nodejepa.data import load_dataset
from nodejepa.demo import write_as_csv
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.workflow import embed_graph

PACKAGE = Path(nodejepa.__file__).parent
_FUNCTION = 0x01  # a flag of code: bodies of modules and of classes do not have it


def modules_of(job: Callable[[], object]) -> list[str]:
    """Files of the package in which a function ran, in the order of their first calls."""
    found: dict[str, None] = {}
    looked_at: set[CodeType] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in looked_at or not code.co_filename.startswith(str(PACKAGE)):
            return
        if not _importing(frame):
            looked_at.add(code)
            found.setdefault(Path(code.co_filename).relative_to(PACKAGE).as_posix())

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        job()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


def _importing(frame: FrameType | None) -> bool:
    """Whether a frame is the body of a module or of a class, or was called from one of the package."""
    while frame is not None and frame.f_code is not modules_of.__code__:
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)) and not code.co_flags & _FUNCTION:
            return True
        frame = frame.f_back
    return False


def main() -> None:
    """Print every job."""
    dataset = load_dataset("digits")
    with tempfile.TemporaryDirectory() as name:
        folder, os.environ["NODEJEPA_CACHE"] = Path(name), name  # nothing was computed before
        edges, nodes = write_as_csv(dataset, folder)
        settings: Any = {"epochs": 2, "encoder.hidden": 16}
        alone: Any = {"drop": "label", "score": False, "report": False}
        for title, job in (
            ("CSV to parquet", lambda: embed_graph(edges, nodes, out=folder / "y.parquet", **alone)),
            (
                "CSV to parquet, scores and report",
                lambda: embed_graph(edges, nodes, out=folder / "z.parquet", labels="label"),
            ),
            ("NodeJEPA.fit", lambda: NodeJEPA(**settings).fit(dataset.graph)),
        ):
            found = modules_of(job)
            sys.stdout.write(f"{title}: {len(found)} files\n" + "".join(f"  {path}\n" for path in found))


if __name__ == "__main__":
    main()
