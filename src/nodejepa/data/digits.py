"""The embedded graph: scikit-learn's handwritten digits, each image tied to those that look most like it."""

from __future__ import annotations

import numpy as np

from nodejepa.data.dataset import Dataset
from nodejepa.graph import Graph


def load_digits_graph(neighbours: int = 10) -> Dataset:
    """1,797 images of 8 x 8 pixels (0..1) and the symmetric k-nearest-neighbour graph between them.

    i and j are joined if either is among the other's ``neighbours`` nearest by Euclidean distance. Pixels are
    whole numbers from 0 to 16, so squared distances are exact, and of equally distant images the earlier one
    counts as nearer: the graph is the same on every machine.
    """
    from sklearn.datasets import load_digits  # takes a second to import: only who asks pays

    images, labels = load_digits(return_X_y=True)
    pixels = images.astype(np.int64)
    lengths = np.sum(pixels * pixels, axis=1)
    squared_distances = lengths[:, None] + lengths[None, :] - 2 * pixels @ pixels.T
    np.fill_diagonal(squared_distances, np.iinfo(np.int64).max)
    nearest = np.argsort(squared_distances, axis=1, kind="stable")[:, :neighbours]
    source = np.repeat(np.arange(len(pixels)), neighbours)
    graph = Graph.from_edges(source, nearest.ravel(), features=images / 16)
    return Dataset("digits", graph, labels, class_names=tuple("0123456789"))
