"""A small graph in the place of ``digits``, where its size would only take time."""

from dataclasses import replace

from nodejepa.data import Dataset, load_dataset
from nodejepa.data.catalogue import CATALOGUE, DatasetEntry


def small_digits() -> Dataset:
    """180 nodes in three classes."""
    return replace(load_dataset("synthetic:nodes=180,edges=720,features=16,classes=3,seed=1"), name="digits")


def small_entry() -> DatasetEntry:
    """For the catalogue."""
    small = small_digits()
    counts = {"nodes": 180, "edges": small.graph.num_edges, "features": 16, "classes": 3}
    return replace(CATALOGUE["digits"], **counts, load=lambda _: small)
