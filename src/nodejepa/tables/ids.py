"""Node ids of any kind -> positions 0 .. N - 1, batch by batch.

Ids are never array indices, so a billion-sized one costs no more than a small one, and never floats, so
64-bit ones stay exact. Ids that came as text become whole numbers only if every one of them is written so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError
from nodejepa.tables.cells import undecorated
from nodejepa.tables.options import ReadReport
from nodejepa.tables.table import InputTable

WHOLE_FLOAT = r"^(0|-?[1-9][0-9]{0,19})(\.0+)?$"
ZEROS = r"\.0+$"
_WHOLE = r"^(0|-?[1-9][0-9]{0,19})$"
_EXACT_FLOAT = 2.0**53
Place = npt.NDArray[np.int32]


@dataclass(frozen=True)
class IdColumn:
    """Ids of one column; ``typed`` if the file gave it a type; ``prefix`` keeps them apart from others.

    ``before`` rows of the file come before them.
    """

    values: pa.ChunkedArray
    typed: bool
    where: str
    prefix: str = ""
    before: int = 0


@dataclass(frozen=True)
class IdSource:
    """A column of a table that holds ids, and what they are told apart by."""

    table: InputTable
    name: str
    prefix: str = ""

    @property
    def where(self) -> str:
        """For errors."""
        return f"{self.table.where}, column {self.name!r}" if self.name else self.table.where

    def column(self, values: pa.ChunkedArray, before: int = 0) -> IdColumn:
        """Some rows of it."""
        return IdColumn(values, self.table.typed, self.where, self.prefix, before)

    @property
    def kind(self) -> pa.DataType:
        """int64, or text where one of its ids may be no such number."""
        kind = self.table.kind_of(self.name)
        if self.prefix or kind == pa.uint64():
            return pa.string()
        return plain_ids(self.column(pa.chunked_array([], type=kind))).type


class IdReader:
    """Reads columns of ids batch by batch, all of them as int64 or all as text."""

    def __init__(self, sources: Sequence[IdSource], report: ReadReport) -> None:
        kinds = [source.kind for source in sources]
        self.whole = all(kind == pa.int64() for kind in kinds)
        self.untyped = not all(source.table.typed for source in sources)
        self.prefixes = list(dict.fromkeys(source.prefix for source in sources if source.prefix))
        self.declared_text = any(
            source.table.typed and not source.prefix and source.table.kind_of(source.name) != pa.uint64()
            for source, kind in zip(sources, kinds, strict=True)
            if kind == pa.string()
        )
        numbers = any(kind == pa.int64() for kind in kinds)
        if self.declared_text and numbers:
            report.note("ids are text in one file and numbers in another: numbers are compared as text.")
        self.report = report

    def batches(
        self, source: IdSource, more: str | None, label: str
    ) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray | None, int]]:
        """Ids, the values of another column beside them, and how many rows came before."""
        before = 0
        for batch in source.table.batches([source.name, *([more] if more else [])], label):
            values = plain_ids(source.column(batch[source.name], before))
            values = values if self.whole else as_text(values)
            if source.prefix:
                values = pc.binary_join_element_wise(source.prefix, values, "")
            yield values, batch[more] if more else None, before
            before += batch.num_rows

    def settled(self, distinct: pa.Array) -> tuple[Any, Place | None]:
        """The ids in their final form, NumPy's or Arrow's, and where each of ``distinct`` is among them.

        Spaces around cells of a text file belong to its layout, and 5.0 is 5 where both are there.
        """
        if self.whole:
            self.report.id_kind = "integer"
            return distinct.to_numpy(), None
        place: Place | None = None
        if self.untyped or self.prefixes:
            merged = self._merged(distinct)
            if merged is not distinct:
                encoded = merged.dictionary_encode()
                distinct, place = encoded.dictionary, encoded.indices.to_numpy()
        numbers = None if self.declared_text else whole_numbers(distinct)
        self.report.id_kind = "text" if numbers is None else "integer"
        return distinct if numbers is None else numbers, place

    def _merged(self, distinct: pa.Array) -> pa.Array:
        broken = pc.sum(pc.match_substring(distinct, "\n")).as_py() or 0
        if broken and self.untyped:
            self.report.note(
                f"{broken} ids hold a line break; check the quotes of the file if that is not meant."
            )
        if self.prefixes:
            return self._merged_sides(distinct)
        trimmed = pc.utf8_trim(distinct, " \t")
        changed = pc.sum(pc.not_equal(trimmed, distinct)).as_py() or 0
        if changed:
            self.report.note(f"spaces around {changed} ids were removed.")
            distinct = trimmed
        dotted = pc.sum(pc.match_substring(distinct, ".")).as_py() or 0
        if dotted in (0, len(distinct)) or not _all_match(distinct, WHOLE_FLOAT):
            return distinct
        self.report.note(f"{dotted} ids are written as 5.0 is: they are taken for whole numbers.")
        return pc.replace_substring_regex(distinct, ZEROS, "")

    def _merged_sides(self, distinct: pa.Array) -> pa.Array:
        """The same for each of two kinds of nodes, whose ids begin with the name of their column."""
        for prefix in sorted(self.prefixes, key=len, reverse=True):
            own = pc.starts_with(distinct, prefix)
            text = pc.utf8_slice_codeunits(distinct.filter(own), len(prefix))
            text = pc.utf8_trim(text, " \t") if self.untyped else text
            if _all_match(text, WHOLE_FLOAT):
                text = pc.replace_substring_regex(text, ZEROS, "")
            joined = pc.binary_join_element_wise(prefix, text.cast(pa.string()), "").cast(distinct.type)
            distinct = pc.replace_with_mask(distinct, own, joined)
        return distinct


def _all_match(text: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def plain_ids(column: IdColumn) -> pa.ChunkedArray:
    """int64, uint64 or string values without missing ones."""
    values = undecorated(column.values)
    kind = values.type
    if values.null_count or (pa.types.is_null(kind) and len(values)):
        _refuse_missing(column, int(pc.index(pc.is_null(values), True).as_py()), values.null_count)
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_integer(kind):
        huge = kind == pa.uint64() and (pc.max(values).as_py() or 0) >= 2**63
        return values if huge else values.cast(pa.int64())
    if pa.types.is_floating(kind):
        return _from_floats(values, column)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return pa.chunked_array([_uuid_text(chunk) for chunk in values.chunks], type=pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return _text(values, column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            return _text(values.cast(pa.large_string()), column)
        except pa.ArrowInvalid:
            raise GraphError("ids are bytes that are not UTF-8 text", where=column.where) from None
    raise GraphError(
        f"{kind} values cannot be ids", where=column.where, fix="Use text, whole numbers or UUIDs."
    )


def _text(values: pa.ChunkedArray, column: IdColumn) -> pa.ChunkedArray:
    if not column.typed:
        empty = pc.equal(values, "")
        if pc.any(empty).as_py():
            _refuse_missing(column, int(pc.index(empty, True).as_py()), int(pc.sum(empty).as_py()))
    return as_text(values)


def as_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The ids as they are written."""
    return values if values.type == pa.string() else values.cast(pa.string())


def _refuse_missing(column: IdColumn, row: int, count: int) -> None:
    raise GraphError(
        f"row {column.before + row + 1} has no id ({count} such)",
        where=column.where,
        fix="Give every row an id or remove the row; rows are counted from 1 below the header.",
    )


def _from_floats(values: pa.ChunkedArray, column: IdColumn) -> pa.ChunkedArray:
    """Whole floats as numbers: data frames turn ids into floats where one is missing."""
    floats = values.to_numpy().astype(np.float64)
    bad = np.flatnonzero(~(np.abs(floats) < _EXACT_FLOAT) | (np.floor(floats) != floats))
    if bad.size:
        if np.isnan(floats[bad[0]]):
            _refuse_missing(column, int(bad[0]), int(np.isnan(floats).sum()))
        raise GraphError(
            f"row {column.before + bad[0] + 1} is {floats[bad[0]]:.17g}, stored as a floating-point number "
            f"({bad.size} such)",
            where=column.where,
            fix="Store ids as text or 64-bit whole numbers: floats cannot hold every id.",
        )
    return pa.chunked_array([pa.array(floats.astype(np.int64))])


def _uuid_text(chunk: pa.Array) -> pa.Array:
    """UUIDs stored as 16 bytes in the form people write them."""
    digits = pa.array([raw.hex() for raw in chunk.to_pylist()], type=pa.string())
    parts = [pc.utf8_slice_codeunits(digits, low, high) for low, high in pairwise((0, 8, 12, 16, 20, 32))]
    return pc.binary_join_element_wise(*parts, "-")


def whole_numbers(distinct: pa.Array) -> npt.NDArray[Any] | None:
    """Text that spells whole numbers, all of it, as these numbers; else None."""
    if not len(distinct) or not _all_match(distinct, _WHOLE):
        return None
    for kind in (pa.int64(), pa.uint64()):
        try:
            return distinct.cast(kind).to_numpy(zero_copy_only=False).copy()  # type: ignore[no-any-return]
        except pa.ArrowInvalid:
            continue
    return None
