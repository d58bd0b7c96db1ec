"""What the predictor is told about where a node sits: one row of numbers a node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nodejepa.errors import Advice, ConfigError, Setting, did_you_mean
from nodejepa.graph import Graph, RowGraph
from nodejepa.graph_checks import FloatArray
from nodejepa.memory import Room
from nodejepa.structure.cache import cached
from nodejepa.structure.clustering import local_clustering
from nodejepa.structure.laplacian import adjacency_coordinates, signed_log, spectral_coordinates
from nodejepa.structure.pagerank import pagerank

_SPECTRAL_BYTES = 800  # a node: vectors that the eigensolver holds
ADJACENCY_BYTES = 13_000  # likewise, of 128 coordinates where eigenvalues are repeated; 6,500 elsewhere
DESCRIPTORS = ("pagerank", "degree", "clustering", "spectral")


def descriptors(
    graph: RowGraph,
    names: Sequence[str] = DESCRIPTORS,
    spectral_dim: int = 8,
    *,
    cache: bool = True,
) -> FloatArray:
    """Structural descriptors of every node, ``[N, k]``, ready to be a network's input.

    ===========  ===============  ==========================================================
    name         columns          value
    ===========  ===============  ==========================================================
    pagerank     1                log(1 + N PageRank), standardised over the nodes
    degree       1                log(1 + weighted out-degree), standardised
    clustering   1                local clustering coefficient, standardised
    spectral     ``spectral_dim`` sign(v) log(1 + abs(v)) of the spectral coordinates v
    ===========  ===============  ==========================================================

    Standardised means mean 0 and variance 1; a column that is the same everywhere becomes 0. Columns come in
    the order of the table, whatever the order of ``names``; no names give ``[N, 0]``.

    Args:
        graph: the nodes to describe.
        names: which of the four to include.
        spectral_dim: how many spectral coordinates.
        cache: keep what is slow to compute on disk, by the graph's ``structure_hash``.
    """
    for name in names:
        check_name(name)
    size = graph.num_nodes
    columns: list[npt.NDArray[np.floating]] = [np.zeros((size, 0))]
    if "pagerank" in names:
        columns.append(standardize(np.log1p(size * node_pagerank(graph, cache=cache))))
    if "degree" in names:
        columns.append(standardize(np.log1p(graph.degrees.astype(np.float64))))
    if "clustering" in names:
        columns.append(standardize(node_clustering(graph, cache=cache)))
    if "spectral" in names:
        columns.append(signed_log(node_spectral(graph, spectral_dim, cache=cache)))
    return np.column_stack(columns).astype(np.float32)


def node_pagerank(graph: RowGraph, *, cache: bool = True) -> npt.NDArray[np.float64]:
    """:func:`pagerank` with its default settings, kept on disk."""
    shape = (graph.num_nodes,)
    return cached(graph, "pagerank", lambda: pagerank(graph), shape=shape, dtype=np.float64, keep=cache)


def node_clustering(graph: RowGraph, *, cache: bool = True) -> npt.NDArray[np.float64]:
    """:func:`local_clustering`, kept on disk."""
    shape = (graph.num_nodes,)
    return cached(
        graph, "clustering", lambda: local_clustering(graph), shape=shape, dtype=np.float64, keep=cache
    )


def node_spectral(graph: RowGraph, dim: int, *, cache: bool = True) -> npt.NDArray[np.float64]:
    """:func:`spectral_coordinates`, kept on disk."""

    def compute() -> npt.NDArray[np.float64]:
        if not isinstance(graph, Graph):  # early: on disk it would end after hours
            Room.of().require(
                _SPECTRAL_BYTES * graph.num_nodes,
                f"computing spectral coordinates of {graph.num_nodes:,} nodes",
                "spectral",
                "Leave them out: structural (of the features) and predictor.descriptors (of a training) may "
                "be pagerank,degree,clustering.",
            )
        return spectral_coordinates(graph, dim)

    shape = (graph.num_nodes, dim)
    return cached(graph, f"spectral-{dim}", compute, shape=shape, dtype=np.float64, keep=cache)


def node_adjacency(graph: Graph, dim: int, room: Room, *, cache: bool = True) -> npt.NDArray[np.float64]:
    """:func:`adjacency_coordinates`, kept on disk; refused where there is no ``room`` to compute them in."""

    def compute() -> npt.NDArray[np.float64]:
        room.require(
            ADJACENCY_BYTES * graph.num_nodes,
            f"computing coordinates of the adjacency of {graph.num_nodes:,} nodes",
            "adjacency",
            Advice(
                "Leave them out: ",
                Setting("structural", "all"),
                " where files are read, graph.with_features(nodejepa.descriptors(graph)) in Python.",
            ),
        )
        return adjacency_coordinates(graph, dim)

    shape = (graph.num_nodes, dim)
    return cached(graph, f"adjacency-{dim}", compute, shape=shape, dtype=np.float64, keep=cache)


def standardize(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Columns with mean 0 and variance 1; what does not vary becomes 0."""
    centred = values - values.mean(axis=0)
    deviation = np.sqrt(np.mean(centred**2, axis=0))
    varies = deviation > 1e-9 * (1 + np.abs(values).max(axis=0, initial=0.0))
    return np.where(varies, centred / np.where(varies, deviation, 1.0), 0.0)


def check_name(name: str) -> None:
    """Refuse what is not a descriptor."""
    if name not in DESCRIPTORS:
        raise ConfigError(
            f"descriptor {name!r} is unknown",
            where="descriptors",
            fix=f"{did_you_mean(name, DESCRIPTORS)}Choose from {', '.join(DESCRIPTORS)}.",
        )
