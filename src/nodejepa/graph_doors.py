"""Doors of :class:`nodejepa.Graph` to what others hold graphs in: people look for them on the class.

``nodejepa.io`` does the work and knows ``Graph``; here it is named only, and loaded when a door is opened.
"""

from __future__ import annotations

import importlib
from typing import Any, Self


class Doors:
    """``Graph.from_networkx``, ``Graph.from_pyg`` and ``Graph.from_pandas``."""

    @classmethod
    def from_networkx(cls, nx_graph: Any, features: Any = None, **options: Any) -> Self:
        """A graph from NetworkX; see :func:`nodejepa.from_networkx`."""
        return cls._through("from_networkx", nx_graph, features, **options)

    @classmethod
    def from_pyg(cls, data: Any, **options: Any) -> Self:
        """A graph from a PyG ``Data``; see :func:`nodejepa.from_pyg`."""
        return cls._through("from_pyg", data, **options)

    @classmethod
    def from_pandas(cls, edges: Any, nodes: Any = None, **options: Any) -> Self:
        """A graph from data frames of edges and nodes; see :func:`nodejepa.load_graph`."""
        return cls._through("load_graph", edges, nodes, **options)

    @classmethod
    def _through(cls, name: str, *given: Any, **options: Any) -> Self:
        graph: Self = getattr(importlib.import_module("nodejepa.io"), name)(*given, **options)
        return graph
