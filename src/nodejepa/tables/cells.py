"""What the cells of a column mean: numbers, truth values, moments in time, vectors or words.

Columns of text files arrive as text and are interpreted from all of their cells; typed columns keep their
type. Numbers come out as float64 ``[rows, width]`` with NaN where a cell is empty, words as Arrow strings.
"""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError

Kind: TypeAlias = Literal["numeric", "boolean", "time", "vector", "words", "empty"]
Numbers: TypeAlias = npt.NDArray[np.float64]

MISSING = ("", "?", "#N/A", "-nan", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
_COMMA_NUMBER = r"^[+-]?\d+(,\d+)?([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?\d{1,3}(,\d{3})*$"
_GROUPED = r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?$"
_VECTOR = r"^\[\s*([+-]?[.\d][-+.\deE]*|nan)([,\s]+([+-]?[.\d][-+.\deE]*|nan))*\s*\]$"
_MOSTLY = 0.9  # from this share of numbers on, a cell that is none is taken for a mistake


class ColumnContent(NamedTuple):
    """A column and what it holds: ``numbers`` for every kind but words, which have ``words``.

    ``guess`` says how the numbers were understood where they could be understood in another way.
    """

    kind: Kind
    numbers: Numbers
    words: pa.ChunkedArray | None = None
    guess: str = ""


_NONE = np.zeros((0, 0))


def interpret(values: pa.ChunkedArray, typed: bool, where: str, *, whole: bool = True) -> ColumnContent:
    """What a column holds, decided from all of it; or, if not ``whole``, what some of its rows look like."""
    if not typed:
        return _interpret_text(untyped_words(values), where, whole)
    values = undecorated(values)
    kind = values.type
    if pa.types.is_null(kind) or values.null_count == len(values):
        return ColumnContent("empty", _NONE)
    if pa.types.is_boolean(kind):
        return ColumnContent("boolean", _column(values.cast(pa.int8())))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return ColumnContent("numeric", _column(values))
    if pa.types.is_decimal(kind):
        return ColumnContent("numeric", _column(values.cast(pa.float64())))
    if pa.types.is_temporal(kind):
        return ColumnContent("time", _moments(values, where))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        if pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type):
            words = pc.binary_join(values.cast(pa.list_(pa.string())), "|").cast(pa.large_string())
            return ColumnContent("words", _NONE, words)  # tags, see FeatureColumn
        rows = _vectors(values, where)
        return ColumnContent("vector", rows) if rows.shape[1] else ColumnContent("empty", _NONE)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return ColumnContent("words", _NONE, values.cast(pa.large_string()))
    raise GraphError(
        f"{kind} values cannot become features",
        where=where,
        fix="Leave the column out with drop=COLUMN, or store numbers, words, dates or lists of numbers.",
    )


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


_SHOWN: dict[Kind, str] = {
    "numeric": "numbers",
    "boolean": "truth values",
    "time": "moments in time",
    "vector": "lists of numbers",
    "words": "text",
    "empty": "nothing",
}


def untyped_words(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells of a text file without the spaces around them; what says "missing" is missing."""
    words = pc.utf8_trim(values.cast(pa.large_string()), " \t")
    empty = pc.is_in(words, value_set=pa.array(MISSING, type=pa.large_string()))
    return pc.if_else(empty, pa.scalar(None, type=pa.large_string()), words)


def _interpret_text(words: pa.ChunkedArray, where: str, whole: bool) -> ColumnContent:
    if words.null_count == len(words):
        return ColumnContent("empty", _NONE)
    try:
        return ColumnContent("numeric", _column(words.cast(pa.float64())))
    except pa.ArrowInvalid:
        pass
    lower = pc.utf8_lower(words)
    truth = pa.array(["true", "false", None], type=pa.large_string())
    if pc.all(pc.is_in(lower, value_set=truth)).as_py():
        return ColumnContent("boolean", _column(pc.equal(lower, "true").cast(pa.int8())))
    strays = Strays()
    strays.look(words)
    if strays.count == 0:
        return ColumnContent("numeric", _column(pc.utf8_ltrim(words, "+").cast(pa.float64())))
    if whole:
        strays.refuse(where)
    if pc.all(pc.match_substring_regex(words, _COMMA_NUMBER)).as_py():
        return _decimal_commas(words, where)
    if pc.all(pc.match_substring_regex(words, _GROUPED)).as_py():
        raise GraphError(
            f"numbers have commas between thousands, such as {_first_with_comma(words)!r}",
            where=where,
            fix="Write numbers without them.",
        )
    if pc.all(pc.match_substring_regex(words, _VECTOR)).as_py():
        try:
            return ColumnContent("vector", _vectors(_parsed_lists(words), where))
        except pa.ArrowInvalid:
            pass
    for zone in (None, "UTC"):
        try:
            return ColumnContent("time", _moments(words.cast(pa.timestamp("us", tz=zone)), where))
        except pa.ArrowInvalid:
            continue
    return ColumnContent("words", _NONE, words)


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


def _parsed_lists(words: pa.ChunkedArray) -> pa.ChunkedArray:
    """``[0.1, 0.2]`` and ``[0.1 0.2]`` as lists of numbers."""
    inner = pc.utf8_trim(words.combine_chunks(), "[] \t\r\n")
    return pa.chunked_array([pc.split_pattern_regex(inner, r"[,\s]+").cast(pa.large_list(pa.float64()))])


def _decimal_commas(words: pa.ChunkedArray, where: str) -> ColumnContent:
    """``3,14`` as spreadsheets of half the world write it; ``3,140`` alone could be either."""
    if pc.all(pc.match_substring_regex(words, _THOUSANDS)).as_py():
        raise GraphError(
            f"nobody can tell whether the comma in {_first_with_comma(words)!r} is a decimal one or marks "
            "thousands",
            where=where,
            fix="Write numbers with a decimal point and nothing between thousands.",
        )
    points = pc.utf8_ltrim(pc.replace_substring(words, ",", "."), "+")
    return ColumnContent(
        "numeric", _column(points.cast(pa.float64())), guess="commas are taken for decimal points (guessed)"
    )


def _first_with_comma(words: pa.ChunkedArray) -> str:
    return str(words[int(pc.index(pc.match_substring(words, ","), True).as_py())].as_py())


def undecorated(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without extension types and dictionaries, which only say how values are stored."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], type=kind.storage_type)
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
    return values


def _column(values: pa.ChunkedArray) -> Numbers:
    numbers = values.cast(pa.float64(), safe=False).to_numpy()  # missing becomes NaN
    return np.array(numbers, dtype=np.float64).reshape(-1, 1)


def _moments(values: pa.ChunkedArray, where: str) -> Numbers:
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
    raise GraphError(
        f"{kind} values cannot become numbers",
        where=where,
        fix="Store seconds, or leave it out with drop=COLUMN.",
    )


def _vectors(values: pa.ChunkedArray, where: str) -> Numbers:
    """Lists of one length as rows; a missing list is a row of NaN."""
    inner: Any = values.type.value_type
    if not (pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_boolean(inner)):
        fix = "Leave the column out with drop=COLUMN."
        raise GraphError(f"lists of {inner} cannot become features", where=where, fix=fix)
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
