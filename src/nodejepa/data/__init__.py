"""Named graphs and their tasks: labels and splits live here, never in a :class:`~nodejepa.graph.Graph`."""

from nodejepa.data.splits import Split, make_split, per_class_split, random_split

__all__ = ["Split", "make_split", "per_class_split", "random_split"]
