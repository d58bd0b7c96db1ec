"""A column of labels -> class numbers and the names of the classes. Labels never enter the features."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError
from nodejepa.tables.cells import interpret, undecorated, untyped_words

_MOST_CLASSES = 1000
_MOST_VALUES = 1 << 16  # different ones that are counted before the column is given up


class LabelColumn:
    """What was seen of a column of labels so far, all at once or some rows after the other."""

    def __init__(self, typed: bool, where: str) -> None:
        self.typed, self.where = typed, where
        self._known: pa.ChunkedArray | None = None  # different values, in order of first appearance
        self._counts: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def look(self, values: pa.ChunkedArray) -> npt.NDArray[np.int32]:
        """Take in more rows; which of the values seen so far each has, -1 where it is missing."""
        words = undecorated(values if self.typed else untyped_words(values))
        if pa.types.is_nested(words.type):
            raise _several(f"the column holds {words.type} values", self.where)
        if words.null_count == len(words):
            return np.full(len(words), -1, dtype=np.int32)
        before = [] if self._known is None else self._known.chunks
        self._known = pa.chunked_array(
            [pa.chunked_array([*before, *words.drop_null().chunks], words.type).unique()]
        )
        if len(self._known) > _MOST_VALUES:
            raise self._no_classes(f"more than {_MOST_VALUES:,} different values")
        found = pc.index_in(words, value_set=self._known.combine_chunks(), skip_nulls=True)
        codes: npt.NDArray[np.int32] = pc.fill_null(found, -1).to_numpy().astype(np.int32)
        counts = np.bincount(codes[codes >= 0], minlength=len(self._known))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        return codes

    def classes(self) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
        """The class of every value in the order of :meth:`look` (-1: it says "missing"), and their names."""
        none = GraphError("no node has a label", where=self.where, fix="Name another column.")
        if self._known is None:
            raise none
        content = interpret(self._known, True, self.where)
        if content.kind == "time":
            raise GraphError(
                "these values are no classes", where=self.where, fix="Labels are words or whole numbers."
            )
        if content.words is not None:
            names = content.words.to_pylist()
            _refuse_several(Counter(dict(zip(names, self._counts.tolist(), strict=True))), self.where)
        else:
            shown = self._known.to_pylist()
            names = [
                None if np.isnan(number) else _number_name(value, content.kind == "boolean")
                for value, number in zip(shown, content.numbers[:, 0].tolist(), strict=True)
            ]
        there = {name for name in names if name is not None}
        if not there:
            raise none
        ordered = sorted(there, key=int if all(map(_is_whole, there)) else str)
        present = sum(c for c, name in zip(self._counts.tolist(), names, strict=True) if name is not None)
        if len(ordered) > min(_MOST_CLASSES, max(50, present // 2)):
            raise self._no_classes(f"{len(ordered)} different values for {present} nodes")
        position = {name: i for i, name in enumerate(ordered)}
        return np.array([position.get(name, -1) for name in names], dtype=np.int64), tuple(ordered)

    def _no_classes(self, what: str) -> GraphError:
        fix = "Name a column with a few different values, or group the values."
        return GraphError(f"{what} are no classes", where=self.where, fix=fix)


def read_labels(
    batches: Iterable[pa.ChunkedArray], typed: bool, where: str, added: int = 0
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Class of every row (-1 where the label is missing), and the classes' names, sorted.

    Whole numbers are sorted by size, everything else as text. ``added`` nodes without a row come last.
    """
    column = LabelColumn(typed, where)
    codes = np.concatenate([*map(column.look, batches), np.full(added, -1, dtype=np.int32)])
    classes, names = column.classes()
    return np.append(classes, -1)[codes], names  # a missing one is the last


def _refuse_several(counts: Counter[str], where: str) -> None:
    """Refuse ``a;b``: as one class it would be a class of its own, beside ``a`` and ``b``."""
    for separator in (";", "|", ","):
        joined = [name for name in counts if separator in name.strip(separator)]
        parts = [{part.strip(" []()'\"") for part in name.split(separator)} for name in joined]
        alone = {name.strip(" []()'\"") for name in counts if name not in joined}
        uses = Counter(part for each in parts for part in each)
        again = [part for part, times in uses.items() if part in alone or (separator != "," and times > 1)]
        # a comma stands within names, too ("Boston, MA"): there most parts must be classes of their own
        if again and (separator != "," or 2 * len(again) > len(uses)):
            many = sum(counts[name] for name in joined)
            raise _several(f"{many} nodes have several labels, such as {joined[0][:100]!r}", where)


def _several(what: str, where: str) -> GraphError:
    return GraphError(
        f"{what}, and a score needs one class a node",
        where=where,
        fix="Keep the main label of each node in a column of its own, or score one label at a time with a "
        "column of true and false; drop=COLUMN instead of labels=COLUMN embeds without a score.",
    )


def _number_name(value: Any, boolean: bool) -> str:
    if boolean:
        return str(bool(value)).lower()
    return f"{int(value)}" if float(value).is_integer() else f"{value}"


def _is_whole(name: str) -> bool:
    return name.removeprefix("-").isdecimal() and len(name) < 20
