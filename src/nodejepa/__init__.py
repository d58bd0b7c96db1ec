"""Node embeddings of a graph, learned without labels, and an honest score of what they are worth.

    Graph -> structure -> masking -> encoder -> predictor -> objective -> trainer
          -> embeddings -> probe -> study

Data flows left to right and imports only point left. What is listed here is the public API; it is loaded on
first use, so that ``import nodejepa`` costs next to nothing.

>>> import nodejepa
>>> nodejepa.load_dataset("digits").graph
Graph(nodes=1797, edges=24678, features=64)
"""

from __future__ import annotations

import importlib
import os
from importlib.metadata import version
from typing import TYPE_CHECKING

# Every step allocates and frees matrices of many megabytes. In huge pages the kernel hands them out with a
# small fraction of the page faults; no bit of a result changes. PyTorch reads this at its first allocation.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

if TYPE_CHECKING:
    from nodejepa.data import Dataset, Split, load_dataset, make_split
    from nodejepa.diagnostics import Diagnostics, diagnose
    from nodejepa.errors import (
        CheckpointError,
        ConfigError,
        DataError,
        EvaluationError,
        GraphError,
        NodeJEPAError,
        TrainingError,
    )
    from nodejepa.evaluation import (
        ProbeResult,
        fewshot_probe,
        likely_links,
        linear_probe,
        score_links,
        score_pairs,
        split_links,
    )
    from nodejepa.graph import Graph
    from nodejepa.methods import METHODS, LinearJEPA, NodeJEPA, PatchJEPA, load_method, make_method
    from nodejepa.neighbours import Neighbours, nearest_neighbours
    from nodejepa.pipeline import NodeEmbedder
    from nodejepa.structure import descriptors
    from nodejepa.tables import (
        FeatureSchema,
        LoadedGraph,
        StoredGraph,
        as_graph,
        embeddings_frame,
        from_networkx,
        from_pyg,
        load_graph,
        read_embeddings,
        read_graph,
        to_networkx,
        to_pyg,
        write_embeddings,
    )
    from nodejepa.workflow import apply_run, choose_features, compare, embed_graph, inspect_graph

__version__ = version("nodejepa")

__all__ = [
    "METHODS",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Dataset",
    "Diagnostics",
    "EvaluationError",
    "FeatureSchema",
    "Graph",
    "GraphError",
    "LinearJEPA",
    "LoadedGraph",
    "Neighbours",
    "NodeEmbedder",
    "NodeJEPA",
    "NodeJEPAError",
    "PatchJEPA",
    "ProbeResult",
    "Split",
    "StoredGraph",
    "TrainingError",
    "__version__",
    "apply_run",
    "as_graph",
    "choose_features",
    "compare",
    "descriptors",
    "diagnose",
    "embed_graph",
    "embeddings_frame",
    "fewshot_probe",
    "from_networkx",
    "from_pyg",
    "inspect_graph",
    "likely_links",
    "linear_probe",
    "load_dataset",
    "load_graph",
    "load_method",
    "make_method",
    "make_split",
    "nearest_neighbours",
    "read_embeddings",
    "read_graph",
    "score_links",
    "score_pairs",
    "split_links",
    "to_networkx",
    "to_pyg",
    "write_embeddings",
]

_HOMES = {
    "data": "Dataset Split load_dataset make_split",
    "diagnostics": "Diagnostics diagnose",
    "errors": "CheckpointError ConfigError DataError EvaluationError GraphError NodeJEPAError TrainingError",
    "evaluation": "ProbeResult fewshot_probe likely_links linear_probe score_links score_pairs split_links",
    "graph": "Graph",
    "tables": "FeatureSchema LoadedGraph StoredGraph as_graph embeddings_frame "
    "from_networkx from_pyg load_graph read_embeddings read_graph to_networkx to_pyg write_embeddings",
    "methods": "METHODS LinearJEPA NodeJEPA PatchJEPA load_method make_method",
    "neighbours": "Neighbours nearest_neighbours",
    "pipeline": "NodeEmbedder",
    "workflow": "apply_run choose_features compare embed_graph inspect_graph",
    "structure": "descriptors",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'nodejepa' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"nodejepa.{_HOME[name]}"), name)
    globals()[name] = value  # the next look-up is an ordinary one
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
