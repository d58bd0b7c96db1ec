"""ogbn-arxiv (Hu et al. 2020) from OGB's own raw CSV files, with its official split by year.

The ``ogb`` package keeps processed graphs as pickles; the raw files underneath are plain gzipped CSV without
headers, and those are read here. Citations lose their direction.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from nodejepa.data.dataset import Dataset
from nodejepa.data.download import RemoteArchive, ensure_archive
from nodejepa.data.splits import Split
from nodejepa.errors import DataError
from nodejepa.graph import Graph

_FOLDER = "ogbn_arxiv"
_MEMBERS = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "split/time/train.csv.gz",
    "split/time/valid.csv.gz",
    "split/time/test.csv.gz",
)
ARXIV_ARCHIVE = RemoteArchive(
    url="https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",
    members={f"arxiv/{member}": f"{_FOLDER}/{member}" for member in _MEMBERS},
    # release v1 of May 2020, 83,058,288 bytes, as recorded by several public repositories that fetched it
    sha256="49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276",
)


def load_arxiv(root: Path) -> Dataset:
    """ogbn-arxiv from below ``root``, downloaded if it is not there."""
    ensure_archive(root, ARXIV_ARCHIVE)
    return read_ogb(root / _FOLDER, "arxiv")


def read_ogb(folder: Path, name: str) -> Dataset:
    """Read a node-classification graph in OGB's raw layout: ``raw/*.csv.gz`` and ``split/time/*.csv.gz``."""
    raw, time = folder / "raw", folder / "split" / "time"
    edges = _numbers(raw / "edge.csv.gz", np.int64, 2)
    features = _numbers(raw / "node-feat.csv.gz", np.float32)
    labels = _numbers(raw / "node-label.csv.gz", np.int64, 1)[:, 0]
    names = ("train", "valid", "test")
    parts = {part: _numbers(time / f"{part}.csv.gz", np.int64, 1)[:, 0] for part in names}
    for part, members in parts.items():
        if members.max(initial=0) >= labels.size:
            raise _damaged(time / f"{part}.csv.gz", f"node {members.max()} does not exist")
    graph = Graph.from_edges(edges[:, 0], edges[:, 1], features=features)
    split = Split("official", 0, train=parts["train"], val=parts["valid"], test=parts["test"])
    return Dataset(name, graph, labels, None, split, "official")


def _numbers(path: Path, kind: type[Any], columns: int | None = None) -> npt.NDArray[Any]:
    try:
        table = csv.read_csv(path, read_options=csv.ReadOptions(autogenerate_column_names=True))
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, str(error)) from error
    if columns not in (None, table.num_columns):
        raise _damaged(path, f"{table.num_columns} columns instead of {columns}")
    out, whole = np.empty((table.num_rows, table.num_columns), dtype=kind), kind is np.int64
    for column, values in enumerate(table.columns):
        numeric = pa.types.is_integer(values.type) or (pa.types.is_floating(values.type) and not whole)
        if not numeric or values.null_count:
            wanted = "whole numbers" if whole else "numbers"
            raise _damaged(path, f"column {column} does not hold {wanted} throughout")
        out[:, column] = values.to_numpy()
    return out


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(
        f"the file cannot be used: {reason}",
        where=str(path),
        fix="It is damaged or in another layout: delete it to have it downloaded again, or replace it.",
    )
