"""Checks of what users hand to a method, the same for all of them."""

import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from nodejepa.config import NonNegativeInt, setting_of_type
from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph, RowGraph

C = TypeVar("C")


def check_seed(seed: Any) -> int:
    """A seed as a plain ``int`` (JSON knows no NumPy integers), 0 or more."""
    return int(setting_of_type(NonNegativeInt, seed, "seed"))


def check_config(config: Any, kind: type[C], method: str) -> C:
    """``config`` itself if it is the method's own kind of settings."""
    if isinstance(config, kind):
        return config
    raise ConfigError(
        f"config is of type {type(config).__name__}",
        where=method,
        fix=f"Give a {kind.__name__}, or name a preset and single settings: "
        f"make_method({method!r}, preset=..., settings={{...}}).",
    )


def dataset_key(name: Any) -> str | None:
    """The name under which presets know a data set: ``Photo`` is ``photo``; any name may be given."""
    if name is None or isinstance(name, str):
        return name.lower() if name else None
    raise ConfigError(f"dataset is a {type(name).__name__}", fix="Give the data set's name, or leave it out.")


def check_folder(folder: Any) -> Path:
    """A folder's path; no path and the empty one (which would mean the current folder) are refused."""
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise ConfigError(f"{folder!r} is no folder", fix='Give its path; "." is the current one.')
    return Path(folder)


def pick_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r} is unknown", fix="Use auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("there is no CUDA device on this machine", fix="Use device cpu or auto.")
    return torch.device(name)


def check_columns(graph: RowGraph, in_dim: int) -> None:
    """Refuse a graph whose number of feature columns is not the one an encoder was made for."""
    if graph.num_features != in_dim:
        raise GraphError(
            f"the graph has {graph.num_features} feature columns, the encoder expects {in_dim}",
            where="features",
            fix="Give the same columns in the same order.",
        )


def as_row_graph(source: Any, X: Any = None) -> RowGraph:
    """A graph, in memory or on disk; foreign objects are read by :func:`nodejepa.tables.as_graph`.

    ``X`` are features in the place of its own; one-dimensional ones are the labels that pipelines pass, and
    unused.
    """
    graph: RowGraph = source
    if not hasattr(type(source), "in_rows"):
        from nodejepa.tables import as_graph

        graph = as_graph(source)
    if X is None or np.ndim(X) == 1:
        return graph
    if isinstance(graph, Graph):
        return graph.with_features(X)
    raise GraphError(
        "a graph on disk has its features beside it", where="features", fix="Leave X out, or prepare it anew."
    )


def with_features(graph: RowGraph, *, comparable: bool = False) -> RowGraph:
    """The graph; one in memory that has no features is described by its structure.

    ``comparable``: by descriptors alone, which mean the same on every graph.
    """
    if graph.num_features or not isinstance(graph, Graph):
        return graph
    from nodejepa.tables import graph_with_features

    return graph_with_features(graph, comparable=comparable)
