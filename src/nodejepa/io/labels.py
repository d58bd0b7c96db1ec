"""A column of labels -> class numbers and the names of the classes. Labels never enter the features."""

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.column_content import interpret, untyped_words

_MOST_CLASSES = 1000


def read_labels(
    values: pa.ChunkedArray, typed: bool, where: str
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Class of every row (-1 where the label is missing), and the classes' names, sorted.

    Whole numbers are sorted by size, everything else as text.
    """
    words = values if typed else untyped_words(values)
    if pa.types.is_nested(words.type):
        raise _several(f"the column holds {words.type} values", where)
    content = interpret(words, True, where)
    if content.kind == "time":
        raise GraphError("these values are no classes", where=where, fix="Labels are words or whole numbers.")
    if content.kind == "empty":
        raise GraphError("no node has a label", where=where, fix="Name another column.")
    if content.words is not None:
        names = np.array(
            [word if word is not None else None for word in content.words.to_pylist()], dtype=object
        )
        present = np.array([name is not None for name in names], dtype=bool)
        _refuse_several(names[present].tolist(), where)
    else:
        numbers = content.numbers[:, 0]
        present = ~np.isnan(numbers)
        names = np.full(len(numbers), None, dtype=object)
        names[present] = _number_names(values, present, content.kind == "boolean")
    if not present.any():
        raise GraphError("no node has a label", where=where, fix="Name another column.")
    distinct: set[str] = set(names[present].tolist())
    whole = all(name.removeprefix("-").isdecimal() and len(name) < 20 for name in distinct)
    classes = sorted(distinct, key=int if whole else str)
    if len(classes) > min(_MOST_CLASSES, max(50, present.sum() // 2)):
        raise GraphError(
            f"{len(classes)} different values for {present.sum()} nodes are no classes",
            where=where,
            fix="Name a column with a few different values, or group the values.",
        )
    position = {name: i for i, name in enumerate(classes)}
    codes = np.array([position.get(name, -1) for name in names.tolist()], dtype=np.int64)
    return codes, tuple(classes)


def _refuse_several(names: list[str], where: str) -> None:
    """Refuse ``a;b``: as one class it would be a class of its own, beside ``a`` and ``b``."""
    counts = Counter(names)
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
        fix=Advice(
            "Keep the main label of each node in a column of its own, or score one label at a time with a "
            "column of true and false; ",
            Setting("drop", ""),
            " instead of ",
            Setting("labels", ""),
            " embeds without a score.",
        ),
    )


def _number_names(values: pa.ChunkedArray, present: npt.NDArray[np.bool_], boolean: bool) -> list[str]:
    rows = [value for value, there in zip(values.to_pylist(), present.tolist(), strict=True) if there]
    if boolean:
        return [str(bool(value)).lower() for value in rows]
    return [f"{int(v)}" if float(v).is_integer() else f"{v}" for v in rows]
