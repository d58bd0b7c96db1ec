"""The demo: the built-in digits as a user's files, and a comparison of methods on them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow import csv

from nodejepa.data import Dataset, load_dataset
from nodejepa.files import atomic_path
from nodejepa.tables import ReadingOptions
from nodejepa.workflow import Comparison, MethodRow, compare_files

DEMO_METHODS = ("linear-jepa", "nodejepa", "patchjepa", "raw", "sgc", "random-gcn")
_EPOCHS = 30  # of the paper's 300, so that the demo stays short


def run_demo(
    out: str | Path,
    *,
    methods: Sequence[str] = DEMO_METHODS,
    epochs: int = _EPOCHS,
    seed: int = 42,
    announce: Callable[[MethodRow], None] | None = None,
) -> Comparison:
    """Write ``digits`` as ``edges.csv`` and ``nodes.csv`` into ``out`` and compare methods on it there."""
    folder = Path(out)
    edges, nodes = write_as_csv(load_dataset("digits"), folder)
    return compare_files(
        edges,
        nodes,
        ReadingOptions(labels="label"),
        out=folder,
        methods=methods,
        epochs=epochs,
        seed=seed,
        force=True,
        announce=announce,
        notes=[f"The paper's methods are trained for {epochs} of its 300 epochs, so that the demo is short."],
    )


def write_as_csv(dataset: Dataset, folder: Path) -> tuple[Path, Path]:
    """A labelled graph as people have theirs, two tables with text ids: ``edges.csv`` and ``nodes.csv``."""
    graph = dataset.graph
    names = np.array([f"{dataset.name}-{i:04d}" for i in range(graph.num_nodes)])
    upper = sp.triu(graph.adjacency, k=1).tocoo()
    features = np.asarray(graph.features)
    edges = pa.table({"source": names[upper.row], "target": names[upper.col]})
    nodes = pa.table(
        {"id": names, "label": dataset.labels}
        | {f"feature_{j}": features[:, j] for j in range(features.shape[1])}
    )
    paths = folder / "edges.csv", folder / "nodes.csv"
    for path, table in zip(paths, (edges, nodes), strict=True):
        with atomic_path(path) as temporary:
            csv.write_csv(table, temporary, csv.WriteOptions(quoting_style="none"))
    return paths
