"""``Dataset``: a graph together with the task that judges its embeddings."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split, make_split
from nodejepa.errors import DataError
from nodejepa.graph import Graph


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named graph, one label per node (-1: unknown) and, where its authors drew one, their split.

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
                fix="One whole number per node is expected.",
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
