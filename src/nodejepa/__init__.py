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
    from nodejepa.data import Dataset as Dataset
    from nodejepa.data import Split as Split
    from nodejepa.data import load_dataset as load_dataset
    from nodejepa.data import make_split as make_split
    from nodejepa.diagnostics import Diagnostics as Diagnostics
    from nodejepa.diagnostics import diagnose as diagnose
    from nodejepa.errors import CheckpointError as CheckpointError
    from nodejepa.errors import ConfigError as ConfigError
    from nodejepa.errors import DataError as DataError
    from nodejepa.errors import EvaluationError as EvaluationError
    from nodejepa.errors import GraphError as GraphError
    from nodejepa.errors import NodeJEPAError as NodeJEPAError
    from nodejepa.errors import TrainingError as TrainingError
    from nodejepa.evaluation import ProbeResult as ProbeResult
    from nodejepa.evaluation import likely_links as likely_links
    from nodejepa.evaluation import linear_probe as linear_probe
    from nodejepa.evaluation import score_links as score_links
    from nodejepa.evaluation import score_pairs as score_pairs
    from nodejepa.evaluation import split_links as split_links
    from nodejepa.graph import Graph as Graph
    from nodejepa.methods import METHODS as METHODS
    from nodejepa.methods import LinearJEPA as LinearJEPA
    from nodejepa.methods import NodeJEPA as NodeJEPA
    from nodejepa.methods import PatchJEPA as PatchJEPA
    from nodejepa.methods import load_method as load_method
    from nodejepa.methods import make_method as make_method
    from nodejepa.neighbours import Neighbours as Neighbours
    from nodejepa.neighbours import nearest_neighbours as nearest_neighbours
    from nodejepa.pipeline import NodeEmbedder as NodeEmbedder
    from nodejepa.structure import descriptors as descriptors
    from nodejepa.tables import FeatureSchema as FeatureSchema
    from nodejepa.tables import LoadedGraph as LoadedGraph
    from nodejepa.tables import StoredGraph as StoredGraph
    from nodejepa.tables import as_graph as as_graph
    from nodejepa.tables import embeddings_frame as embeddings_frame
    from nodejepa.tables import from_networkx as from_networkx
    from nodejepa.tables import from_pyg as from_pyg
    from nodejepa.tables import load_graph as load_graph
    from nodejepa.tables import read_embeddings as read_embeddings
    from nodejepa.tables import read_graph as read_graph
    from nodejepa.tables import write_embeddings as write_embeddings
    from nodejepa.workflow import apply_run as apply_run
    from nodejepa.workflow import choose_features as choose_features
    from nodejepa.workflow import compare as compare
    from nodejepa.workflow import embed_graph as embed_graph
    from nodejepa.workflow import inspect_graph as inspect_graph

__version__ = version("nodejepa")

_HOMES = {
    "data": "Dataset Split load_dataset make_split",
    "diagnostics": "Diagnostics diagnose",
    "errors": "CheckpointError ConfigError DataError EvaluationError GraphError NodeJEPAError TrainingError",
    "evaluation": "ProbeResult likely_links linear_probe score_links score_pairs split_links",
    "graph": "Graph",
    "tables": "FeatureSchema LoadedGraph StoredGraph as_graph embeddings_frame "
    "from_networkx from_pyg load_graph read_embeddings read_graph write_embeddings",
    "methods": "METHODS LinearJEPA NodeJEPA PatchJEPA load_method make_method",
    "neighbours": "Neighbours nearest_neighbours",
    "pipeline": "NodeEmbedder",
    "workflow": "apply_run choose_features compare embed_graph inspect_graph",
    "structure": "descriptors",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'nodejepa' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"nodejepa.{_HOME[name]}"), name)
    globals()[name] = value  # the next look-up is an ordinary one
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
