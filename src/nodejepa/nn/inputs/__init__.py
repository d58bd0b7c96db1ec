"""What a network reads of a graph: the whole of it, parts of it, views of either; all behind one type."""

from nodejepa.nn.inputs.base import GraphInputs
from nodejepa.nn.inputs.in_memory import Part, WholeGraph
from nodejepa.nn.inputs.stored import StoredInputs
from nodejepa.nn.inputs.stretches import Renumbered, RowsPart, Stretches

__all__ = ["GraphInputs", "Part", "Renumbered", "RowsPart", "StoredInputs", "Stretches", "WholeGraph"]
