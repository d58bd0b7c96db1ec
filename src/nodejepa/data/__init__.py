"""Named graphs and their tasks: labels and splits live here, never in a :class:`~nodejepa.graph.Graph`."""

from nodejepa.data.catalogue import CATALOGUE, load_dataset
from nodejepa.data.dataset import Dataset
from nodejepa.data.splits import Split, make_split, per_class_split

__all__ = [
    "CATALOGUE",
    "Dataset",
    "Split",
    "load_dataset",
    "make_split",
    "per_class_split",
]
