"""The named graphs, where they come from and what they must count to."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nodejepa.config import override, parse_assignments
from nodejepa.data.dataset import Dataset
from nodejepa.data.readers import (
    ARXIV_FILES,
    CORA_FILES,
    GNN_BENCHMARK_PATHS,
    development_path,
    load_arxiv,
    load_cora,
    load_development,
    load_digits_graph,
    load_gnn_benchmark,
)
from nodejepa.data.synthetic import ARXIV_LIKE, SyntheticSpec, make_synthetic
from nodejepa.errors import DataError, nearest
from nodejepa.files import cache_root

_HU = "Hu et al. 2020, Open Graph Benchmark (ODC-BY)"
_YANG = "Yang et al. 2016, Revisiting Semi-Supervised Learning with Graph Embeddings (kimiyoung/planetoid)"
_ALPAYDIN = "Alpaydin & Kaynak 1998, as carried by scikit-learn"
_GRAPH_DATA = "EdisonLeeeee/GraphData (MIT)"
_YANDEX = "Platonov et al. 2023 (yandex-research/heterophilous-graphs)"
_PGL = "Yang et al. 2016, as carried by pgl 2.2.6 (Apache-2.0)"
_SHCHUR = "Shchur et al. 2018, Pitfalls of Graph Neural Network Evaluation (shchur/gnn-benchmark, MIT)"


@dataclass(frozen=True)
class DatasetEntry:
    """One line of the catalogue; counts are what every load is checked against."""

    name: str
    summary: str
    source: str
    nodes: int
    edges: int
    features: int
    classes: int
    default_split: str
    load: Callable[[Path], Dataset]
    files: tuple[str, ...] = ()

    def is_present(self, root: str | Path | None = None) -> bool:
        """Whether it can be loaded without a download."""
        folder = data_root(root)
        return all((folder / file).is_file() for file in self.files)


def data_root(root: str | Path | None = None) -> Path:
    """``root`` if given, else ``NODEJEPA_DATA``, else ``datasets`` in the cache directory."""
    chosen = root or os.environ.get("NODEJEPA_DATA")
    return Path(chosen).expanduser() if chosen else cache_root() / "datasets"


def load_dataset(name: str, root: str | Path | None = None) -> Dataset:
    """The graph called ``name``, with its labels; counts are checked.

    Args:
        name: a name in :data:`CATALOGUE`. The synthetic ones take settings, as in
            ``"synthetic:nodes=1000000,edges=20000000,features=16"``.
        root: folder of the data files; see :func:`data_root`.

    >>> load_dataset("digits")
    Dataset('digits', Graph(nodes=1797, edges=24678, features=64), classes=10)
    """
    head, colon, settings = str(name).partition(":")
    if head not in CATALOGUE:
        near = nearest(head, CATALOGUE)
        hint = f"Did you mean {near!r}? " if near else ""
        raise DataError(f"no graph is called {head!r}", fix=f"{hint}Known are {', '.join(CATALOGUE)}.")
    entry = CATALOGUE[head]
    if colon:
        if head not in SYNTHETIC:
            raise DataError(
                f"{head!r} takes no settings", fix=f"Only {' and '.join(SYNTHETIC)} do; use just {head!r}."
            )
        entry = _synthetic_entry(
            name, entry.summary, override(SYNTHETIC[head], parse_assignments(settings.split(",")))
        )
    dataset = entry.load(data_root(root))
    check_counts(dataset, entry)
    return dataset


def check_counts(dataset: Dataset, entry: DatasetEntry) -> None:
    """Refuse a dataset that is not what its catalogue entry says."""
    graph = dataset.graph
    found = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": dataset.num_classes,
    }
    wrong = [
        f"{n} {what} instead of {getattr(entry, what)}"
        for what, n in found.items()
        if n != getattr(entry, what)
    ]
    if wrong:
        files = ", ".join(entry.files)
        raise DataError(
            f"the graph has {' and '.join(wrong)}",
            where=entry.name,
            fix=f"Its files are damaged or of another version: delete or replace {files}." if files else "",
        )


def _synthetic_entry(name: str, summary: str, spec: SyntheticSpec) -> DatasetEntry:
    return DatasetEntry(
        name,
        summary,
        "generated: degree-corrected stochastic block model (Karrer & Newman 2011)",
        spec.nodes,
        spec.edges,
        spec.features,
        spec.classes,
        "20-30",
        lambda _root: make_synthetic(spec, name),
    )


# loader, files and split of those that are no npz files
_OTHERS: dict[str, tuple[Callable[[Path], Dataset], tuple[str, ...], str]] = {
    "arxiv": (load_arxiv, tuple(file.path for file in ARXIV_FILES), "official"),
    "cora": (load_cora, tuple(file.path for file in CORA_FILES), "official"),
    "digits": (lambda _root: load_digits_graph(), (), "20-30"),
}


def _entry(
    name: str, summary: str, nodes: int, edges: int, features: int, classes: int, source: str
) -> DatasetEntry:
    published = name in GNN_BENCHMARK_PATHS
    path = GNN_BENCHMARK_PATHS[name] if published else development_path(name)
    reader = partial(load_gnn_benchmark if published else load_development, name)
    load, files, split = _OTHERS.get(name, (reader, (path,), "20-30"))
    return DatasetEntry(name, summary, source, nodes, edges, features, classes, split, load, files)


SYNTHETIC = {"synthetic": SyntheticSpec(), "synthetic-arxiv": ARXIV_LIKE}

_ENTRIES = (
    _entry("computers", "Amazon: computers often bought together", 13_752, 491_722, 767, 10, _SHCHUR),
    _entry("photo", "Amazon: photo equipment often bought together", 7_650, 238_162, 745, 8, _SHCHUR),
    _entry("cs", "Coauthor: computer scientists who wrote together", 18_333, 163_788, 6_805, 15, _SHCHUR),
    _entry("physics", "Coauthor: physicists who wrote together", 34_493, 495_924, 8_415, 5, _SHCHUR),
    _entry("arxiv", "ogbn-arxiv: papers that cite each other", 169_343, 2_315_598, 128, 40, _HU),
    _entry("cora", "Cora: machine learning papers that cite each other", 2_708, 10_556, 1_433, 7, _YANG),
    _entry("acm", "papers by the same author", 3_025, 26_256, 1_870, 3, _GRAPH_DATA),
    _entry("actor", "actors on the same page; unlike their neighbours", 7_600, 53_318, 932, 5, _YANDEX),
    _entry("blogcatalog", "bloggers who follow each other", 5_196, 343_486, 8_189, 6, _GRAPH_DATA),
    _entry("chameleon_filtered", "pages on chameleons", 890, 17_708, 2_325, 5, _YANDEX),
    _entry("citeseer", "papers that cite each other", 3_327, 9_104, 3_703, 6, _PGL),
    _entry("dblp", "papers that cite each other", 17_716, 105_734, 1_639, 4, _GRAPH_DATA),
    _entry("facebook_pagepage", "pages that like each other", 22_470, 341_646, 4_714, 4, _GRAPH_DATA),
    _entry("minesweeper", "a grid with mines", 10_000, 78_804, 7, 2, _YANDEX),
    _entry("pubmed", "papers on diabetes that cite each other", 19_717, 88_648, 500, 3, _PGL),
    _entry("tolokers", "workers on the same task", 11_758, 1_038_000, 10, 2, _YANDEX),
    _entry("digits", "handwritten digits that look alike; no download", 1_797, 24_678, 64, 10, _ALPAYDIN),
    _synthetic_entry("synthetic", "communities, hubs, noisy features; any size", SYNTHETIC["synthetic"]),
    _synthetic_entry(
        "synthetic-arxiv", "synthetic graph of ogbn-arxiv's size and hubs", SYNTHETIC["synthetic-arxiv"]
    ),
)
CATALOGUE: dict[str, DatasetEntry] = {entry.name: entry for entry in _ENTRIES}
