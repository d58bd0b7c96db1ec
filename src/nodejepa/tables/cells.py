"""What the cells of a column mean: numbers, truth values, moments in time, vectors, words, or classes.

Columns of text files arrive as text and are interpreted from all of their cells; typed columns keep their
type. Numbers come out as float64 ``[rows, width]`` with NaN where a cell is empty, words as Arrow strings.
Labels become numbers of classes and never enter the features.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError

Kind: TypeAlias = Literal["numeric", "boolean", "time", "vector", "words", "empty"]
Numbers: TypeAlias = npt.NDArray[np.float64]

MISSING = ("", "?", "#N/A", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "na", "nan", "null")
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
_WITH_COMMAS = r"^[+-]?[\d.,]*\d([eE][+-]?\d+)?$"
_THOUSANDS = r"^-?(0|[1-9]\d{0,2}(\.\d{3})*)$"
_VECTOR = r"^\[\s*([+-]?[.\d][-+.\deE]*|nan)([,\s]+([+-]?[.\d][-+.\deE]*|nan))*\s*\]$"
_MOSTLY = 0.9  # from this share of numbers on, a cell that is none is taken for a mistake
_LEAVE_OUT = "Leave the column out with drop=COLUMN, or store numbers, words, dates or lists of numbers."
_SHOWN: dict[Kind, str] = {
    "numeric": "numbers",
    "boolean": "truth values",
    "time": "moments in time",
    "vector": "lists of numbers",
    "words": "text",
    "empty": "nothing",
}


class ColumnContent(NamedTuple):
    """A column and what it holds: ``numbers`` for every kind but words, which have ``words``."""

    kind: Kind
    numbers: Numbers
    words: pa.ChunkedArray | None = None


_NONE = np.zeros((0, 0))


def interpret(values: pa.ChunkedArray, typed: bool, where: str, *, whole: bool = True) -> ColumnContent:
    """What a column holds, decided from all of it; or, if not ``whole``, what some of its rows look like."""
    if not typed:
        return _interpret_text(untyped_words(values), where, whole)
    values = undecorated(values)
    kind, types = values.type, pa.types
    if values.null_count == len(values):
        return ColumnContent("empty", _NONE)
    if types.is_boolean(kind):
        return ColumnContent("boolean", _column(values.cast(pa.int8())))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return ColumnContent("numeric", _column(values))
    if types.is_temporal(kind):
        return ColumnContent("time", _seconds(values, where))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        if types.is_string(kind.value_type) or types.is_large_string(kind.value_type):
            words = pc.binary_join(values.cast(pa.list_(pa.string())), "|").cast(pa.large_string())
            return ColumnContent("words", _NONE, words)  # tags, see FeatureColumn
        rows = _vectors(values, where)
        return ColumnContent("vector", rows) if rows.shape[1] else ColumnContent("empty", _NONE)
    if types.is_string(kind) or types.is_large_string(kind):
        return ColumnContent("words", _NONE, values.cast(pa.large_string()))
    raise GraphError(f"{kind} values cannot become features", where=where, fix=_LEAVE_OUT)


def expect(kind: Kind, values: pa.ChunkedArray, typed: bool, where: str) -> ColumnContent:
    """The column as the kind it must be, or an error that says what it is instead."""
    if not typed and kind == "words":
        return ColumnContent("words", _NONE, untyped_words(values))
    content = interpret(values, typed, where)
    if content.kind == "empty" or (content.kind == kind):
        return content
    raise GraphError(
        f"the column holds {_SHOWN[content.kind]} where {_SHOWN[kind]} are expected",
        where=where,
        fix="Store it as in the table the features were fitted on.",
    )


def untyped_words(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells of a text file without the spaces around them; what says "missing" is missing."""
    words = pc.utf8_trim(values.cast(pa.large_string()), " \t")
    empty = pc.is_in(words, value_set=pa.array(MISSING, type=pa.large_string()))
    return pc.if_else(empty, pa.scalar(None, type=pa.large_string()), words)


def undecorated(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without extension types, dictionaries and views, which only say how values are stored."""
    kind, chunks = values.type, values.chunks
    if isinstance(kind, pa.BaseExtensionType):
        return undecorated(pa.chunked_array([chunk.storage for chunk in chunks], type=kind.storage_type))
    if pa.types.is_dictionary(kind):
        plain = [chunk.dictionary_decode() for chunk in chunks]
        return undecorated(pa.chunked_array(plain, type=kind.value_type))
    return values.cast(pa.large_string()) if str(values.type) == "string_view" else values


def _interpret_text(words: pa.ChunkedArray, where: str, whole: bool) -> ColumnContent:
    if words.null_count == len(words):
        return ColumnContent("empty", _NONE)
    try:
        return ColumnContent("numeric", _column(words))
    except pa.ArrowInvalid:
        pass
    lower = pc.utf8_lower(words)
    truth = pa.array(["true", "false", None], type=pa.large_string())
    if pc.all(pc.is_in(lower, value_set=truth)).as_py():
        return ColumnContent("boolean", _column(pc.equal(lower, "true").cast(pa.int8())))
    strays = Strays()
    strays.look(words)
    if strays.count == 0:
        return ColumnContent("numeric", _column(pc.utf8_ltrim(words, "+")))
    if whole:
        strays.refuse(where)
    for marked, shape in (",", _WITH_COMMAS), (r"\.\d+\.", _THOUSANDS):
        place = pc.index(pc.match_substring_regex(words, marked), True).as_py()
        if place >= 0 and all_match(words, shape):
            what = "commas" if marked == "," else "dots"
            raise GraphError(
                f"numbers have {what}, such as {words[place].as_py()!r}: decimal ones, or between thousands",
                where=where,
                fix="Write numbers with a decimal point and nothing between thousands, and tags as a|b.",
            )
    if pc.all(pc.match_substring_regex(words, _VECTOR)).as_py():
        try:
            inner = pc.utf8_trim(words.combine_chunks(), "[] \t\r\n")
            lists = pc.split_pattern_regex(inner, r"[,\s]+").cast(pa.large_list(pa.float64()))
            return ColumnContent("vector", _vectors(pa.chunked_array([lists]), where))
        except pa.ArrowInvalid:
            pass
    for zone in (None, "UTC"):
        try:
            return ColumnContent("time", _seconds(words.cast(pa.timestamp("us", tz=zone)), where))
        except pa.ArrowInvalid:
            continue
    return ColumnContent("words", _NONE, words)


def dot_between_thousands(words: pa.ChunkedArray) -> str | None:
    """A number such as 5.765 of a column of text where the dot may stand between thousands, else None.

    There each dot has exactly three digits behind it, and what has no dot is below 1,000, but not small.
    """
    words = words.drop_null()
    dotted = words.filter(pc.match_substring(words, "."))
    bare = words.filter(pc.invert(pc.match_substring(words, ".")))
    if not len(dotted) or not len(bare) or not all_match(words, _THOUSANDS):
        return None
    largest, smallest = pc.max(bare.cast(pa.int64())).as_py(), pc.min(dotted.cast(pa.float64())).as_py()
    return str(dotted[0].as_py()) if largest > smallest else None


def all_match(words: pa.Array | pa.ChunkedArray, pattern: str) -> bool:
    """Whether every text matches; missing ones do."""
    return bool(pc.all(pc.match_substring_regex(words, pattern)).as_py())


class Strays:
    """Cells of a text column that are no numbers: a few of them among numbers are mistakes."""

    def __init__(self) -> None:
        self.rows = self.present = self.count = 0
        self.first: tuple[int, str] | None = None

    def look(self, words: pa.ChunkedArray) -> None:
        """Count some more rows."""
        numeric = pc.fill_null(pc.match_substring_regex(words, _NUMBER), True)
        bad = len(words) - int(pc.sum(numeric).as_py() or 0)
        if bad and self.first is None:
            row = int(pc.index(numeric, False).as_py())
            self.first = self.rows + row + 1, words[row].as_py()[:60]
        self.rows, self.count = self.rows + len(words), self.count + bad
        self.present += len(words) - words.null_count

    def refuse(self, where: str) -> None:
        """Refuse a column of numbers but for a few cells, by the first of them."""
        if self.first is not None and self.count <= (1 - _MOSTLY) * self.present:
            row, shown = self.first
            raise GraphError(
                f"row {row} is {shown!r} in a column of numbers ({self.count} such)",
                where=where,
                fix="Correct or empty the cell, or say drop=COLUMN to leave it out; rows are counted from 1.",
            )


def _column(values: pa.ChunkedArray) -> Numbers:
    numbers = values.cast(pa.float64(), safe=False).to_numpy()  # missing becomes NaN
    return np.array(numbers, dtype=np.float64).reshape(-1, 1)


def _seconds(values: pa.ChunkedArray, where: str) -> Numbers:
    """Seconds, since 1970 for dates."""
    kind = values.type
    try:
        if pa.types.is_date(kind):
            return _column(values.cast(pa.date32()).cast(pa.int32())) * 86400.0
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind):
            ticks = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
            bits = pa.int32() if pa.types.is_time32(kind) else pa.int64()
            return _column(values.cast(bits)) / ticks
    except pa.ArrowInvalid:
        pass
    raise GraphError(f"{kind} values cannot become numbers", where=where, fix=_LEAVE_OUT)


def _vectors(values: pa.ChunkedArray, where: str) -> Numbers:
    """Lists of one length as rows; a missing list is a row of NaN."""
    inner: Any = values.type.value_type
    if not (pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_boolean(inner)):
        raise GraphError(f"lists of {inner} cannot become features", where=where, fix=_LEAVE_OUT)
    lengths = pc.list_value_length(values)
    width = pc.max(lengths).as_py() or 0
    odd = pc.fill_null(pc.not_equal(lengths, width), False)
    if pc.any(odd).as_py():
        row = int(pc.index(odd, True).as_py())
        raise GraphError(
            f"row {row + 1} is a list of {lengths[row].as_py()} numbers, others have {width}",
            where=where,
            fix="Give lists of one length; rows are counted from 1.",
        )
    if pa.types.is_boolean(inner):
        values = values.cast(pa.list_(pa.int8()))
    present = np.asarray(pc.is_valid(values).to_numpy(), dtype=bool)
    rows = np.full((len(values), width), np.nan)
    flat = pc.list_flatten(values.drop_null()).cast(pa.float64(), safe=False)
    rows[present] = flat.to_numpy().reshape(present.sum(), width)
    return rows


# ---------------------------------------------------------------- labels


_MOST_CLASSES = 1000
_NO_CLASS = {*map(str.lower, MISSING), "-1", "-1.0", "-", ".", "unknown", "missing", "unlabeled"}
_MOST_VALUES = 1 << 16  # different ones in a few rows after which the column is given up


def read_labels(
    batches: Iterable[pa.ChunkedArray], typed: bool, where: str, added: int = 0
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Class of every row (-1 where the label is missing), and the classes' names, sorted.

    Whole numbers are sorted by size, everything else as text. ``added`` nodes without a row come last.
    """
    parts: list[pa.Array] = []
    for values in batches:
        words = undecorated(values) if typed else untyped_words(values)
        if pa.types.is_nested(words.type):
            raise _several(f"the column holds {words.type} values", where)
        parts += words.dictionary_encode().chunks
        if parts and len(parts[-1].dictionary) > _MOST_VALUES:
            raise _no_classes(f"more than {_MOST_VALUES:,} different values", where)
    if all(part.null_count == len(part) for part in parts):
        raise GraphError("no node has a label", where=where, fix="Name another column.")
    labels = pa.chunked_array(parts).unify_dictionaries()
    known = labels.chunk(0).dictionary
    codes = np.concatenate(
        [*(pc.fill_null(part.indices, -1).to_numpy() for part in labels.chunks), np.full(added, -1, np.int32)]
    )
    classes, names = _classes(known, np.bincount(codes[codes >= 0], minlength=len(known)), where)
    return np.append(classes, -1)[codes], names  # a missing one is the last


def _classes(
    known: pa.Array, counts: npt.NDArray[np.int64], where: str
) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """The class of every different value (-1: it says "missing"), and the names of the classes."""
    content = interpret(pa.chunked_array([known]), True, where)
    if content.kind == "time":
        raise GraphError("these values are no classes", where=where, fix="Labels are words or whole numbers.")
    names: list[str | None]
    if content.words is not None:
        names = content.words.to_pylist()
        _refuse_several(Counter(dict(zip(names, counts.tolist(), strict=True))), where)
    else:
        shown = zip(known.to_pylist(), content.numbers[:, 0].tolist(), strict=True)
        names = [None if np.isnan(number) else _number_name(value) for value, number in shown]
    there = {name for name in names if name is not None}
    if not there:
        raise GraphError("no node has a label", where=where, fix="Name another column.")
    ordered = sorted(there, key=int if all(map(_is_whole, there)) else str)
    present = sum(c for c, name in zip(counts.tolist(), names, strict=True) if name is not None)
    if len(ordered) > min(_MOST_CLASSES, max(50, present // 2)):
        raise _no_classes(f"{len(ordered)} different values for {present} nodes", where)
    position = {name: i for i, name in enumerate(ordered)}
    places = [-1 if name is None else position[name] for name in names]
    return np.array(places, dtype=np.int64), tuple(ordered)


def doubtful_classes(names: Sequence[str], counts: Sequence[int]) -> list[str]:
    """Warnings of classes that say "missing", and of classes that differ in nothing but their spelling."""
    said, first = [], dict[str, str]()
    for name, count in zip(names, counts, strict=True):
        bare = name.strip().lower()
        if bare in _NO_CLASS:
            said.append(
                f"{name!r} is taken for a class ({count:,} nodes). If it means that the label is missing, "
                "leave these cells empty (null in a typed table)."
            )
        bare = re.sub(r"^\+?0*(?=\d)|(?<=\d)\.0*$", "", bare)
        if bare in first:
            said.append(f"{first[bare]!r} and {name!r} are taken for two classes: spell one class one way.")
        first.setdefault(bare, name)
    return said


def _refuse_several(counts: Counter[Any], where: str) -> None:
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


def _no_classes(what: str, where: str) -> GraphError:
    fix = "Name a column with a few different values, or group the values."
    return GraphError(f"{what} are no classes", where=where, fix=fix)


def _number_name(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{int(value)}" if float(value).is_integer() else f"{value}"


def _is_whole(name: str) -> bool:
    return name.removeprefix("-").isdecimal() and len(name) < 20
