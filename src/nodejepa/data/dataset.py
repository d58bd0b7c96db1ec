"""``Dataset``: a graph together with the task that judges its embeddings; ``digits`` is embedded."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split, make_split
from nodejepa.errors import DataError
from nodejepa.graph import Graph

_NEIGHBOURS = 10


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named graph, one label a node (-1: unknown) and, where its authors drew one, their split.

    Only evaluation reads ``labels``; methods are given ``graph``, which has none.
    """

    name: str
    graph: Graph
    labels: npt.NDArray[np.int64]
    class_names: tuple[str, ...] | None = None
    official_split: Split | None = None
    default_split: str = "20-30"

    def __post_init__(self) -> None:
        if self.labels.shape != (self.graph.num_nodes,) or self.labels.dtype.kind not in "iu":
            raise DataError(
                f"{self.labels.dtype} labels of shape {self.labels.shape} for {self.graph.num_nodes} nodes",
                where=self.name,
                fix="One whole number a node is expected.",
            )
        labels = self.labels.astype(np.int64)
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)

    @property
    def num_classes(self) -> int:
        """Classes are numbered from 0; this is one more than the largest label."""
        return int(self.labels.max(initial=-1)) + 1

    def split(self, name: str | None = None, *, seed: int = 42) -> Split:
        """The split called ``name`` (the dataset's default if not given); see :func:`make_split`."""
        return make_split(name or self.default_split, self.labels, seed, self.official_split)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.graph}, classes={self.num_classes})"


def load_digits_graph() -> Dataset:
    """1,797 images of 8 x 8 pixels (0..1) and the symmetric k-nearest-neighbour graph between them.

    i and j are joined if either is among the other's ten nearest by Euclidean distance. Pixels are
    whole numbers from 0 to 16, so squared distances are exact (and below 2**15), and of equally distant
    images the earlier one counts as nearer: the graph is the same on every machine.
    """
    from sklearn.datasets import load_digits  # takes a second to import: only who asks pays

    images, labels = load_digits(return_X_y=True)
    lengths = np.sum(images * images, axis=1)
    squared_distances = (lengths[:, None] + lengths[None, :] - 2 * images @ images.T).astype(np.int16)
    np.fill_diagonal(squared_distances, np.iinfo(np.int16).max)
    nearest = np.argsort(squared_distances, axis=1, kind="stable")[:, :_NEIGHBOURS]
    source = np.repeat(np.arange(len(images)), _NEIGHBOURS)
    graph = Graph.from_edges(source, nearest.ravel(), features=images / 16)
    return Dataset("digits", graph, labels, class_names=tuple("0123456789"))
