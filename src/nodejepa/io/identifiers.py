"""Node ids of any kind -> positions 0 .. N - 1, by one pass of Arrow's hash table over all columns.

Ids are never array indices, so a billion-sized one costs no more than a small one, and never floats, so
64-bit ones stay exact. Ids that came as text become whole numbers only if every one of them is written so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError
from nodejepa.graph_checks import id_array
from nodejepa.io.column_content import undecorated
from nodejepa.io.reading_options import ReadReport

_WHOLE = r"^(0|-?[1-9][0-9]{0,19})$"
WHOLE_FLOAT = r"^(0|-?[1-9][0-9]{0,19})(\.0+)?$"
ZEROS = r"\.0+$"
_EXACT_FLOAT = 2.0**53


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


def number_ids(
    columns: Sequence[IdColumn], report: ReadReport
) -> tuple[npt.NDArray[Any], list[npt.NDArray[np.int32]]]:
    """Distinct ids in order of first appearance, and each column as positions among them."""
    plain = [prefixed(plain_ids(column), column) for column in columns]
    kinds = [values.type for values in plain]
    if all(kind == pa.int64() for kind in kinds) or all(kind == pa.uint64() for kind in kinds):
        distinct, codes = _encode(plain)
        report.id_kind = "integer"
        return distinct.to_numpy(zero_copy_only=False).copy(), _split(codes, plain)
    declared_text = any(
        c.typed and not c.prefix and kind == pa.string() for c, kind in zip(columns, kinds, strict=True)
    )
    if declared_text and not all(kind == pa.string() for kind in kinds):
        report.note("ids are text in one file and numbers in another: numbers are compared as text.")
    distinct, codes = _encode([as_text(v) for v in plain])
    if not all(column.typed for column in columns):
        distinct, codes = merged_ids(*_trim(distinct, codes, report), report)
    numbers = None if declared_text else whole_numbers(distinct)
    report.id_kind = "text" if numbers is None else "integer"
    ids = id_array(distinct.to_pylist()) if numbers is None else numbers
    return ids, _split(codes, plain)


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


def prefixed(values: pa.ChunkedArray, column: IdColumn) -> pa.ChunkedArray:
    """The ids with the column's prefix, if it has one, as text."""
    if not column.prefix:
        return values
    text = as_text(values) if column.typed else pc.utf8_trim(as_text(values), " \t")
    if pc.all(pc.match_substring_regex(text, WHOLE_FLOAT)).as_py():
        text = pc.replace_substring_regex(text, ZEROS, "")
    return pc.binary_join_element_wise(column.prefix, text, "")


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


def _encode(columns: list[pa.ChunkedArray]) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    chunks = [chunk for column in columns for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, type=columns[0].type).dictionary_encode()
    if not encoded.num_chunks:
        return pa.array([], type=columns[0].type), np.zeros(0, dtype=np.int32)
    # every chunk shares one dictionary, but only the last is sure to hold all of it
    dictionary = max((chunk.dictionary for chunk in encoded.chunks), key=len)
    return dictionary, np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])


def _split(codes: npt.NDArray[np.int32], columns: list[pa.ChunkedArray]) -> list[npt.NDArray[np.int32]]:
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _trim(
    distinct: pa.Array, codes: npt.NDArray[np.int32], report: ReadReport
) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """Spaces around the cells of a text file belong to its layout, not to the ids."""
    broken = pc.sum(pc.match_substring(distinct, "\n")).as_py() or 0
    if broken:
        report.note(f"{broken} ids hold a line break; check the quotes of the file if that is not meant.")
    trimmed = pc.utf8_trim(distinct, " \t")
    changed = pc.sum(pc.not_equal(trimmed, distinct)).as_py() or 0
    if not changed:
        return distinct, codes
    report.note(f"spaces around {changed} ids were removed.")
    merged = trimmed.dictionary_encode()
    return merged.dictionary, merged.indices.to_numpy()[codes]


def merged_ids(
    distinct: pa.Array, codes: npt.NDArray[np.int32], report: ReadReport
) -> tuple[pa.Array, npt.NDArray[np.int32]]:
    """``5.0`` is ``5`` where both are there: data frames write ids so where one is missing."""
    dotted = pc.sum(pc.match_substring(distinct, ".")).as_py() or 0
    if dotted in (0, len(distinct)) or not pc.all(pc.match_substring_regex(distinct, WHOLE_FLOAT)).as_py():
        return distinct, codes
    report.note(f"{dotted} ids are written as 5.0 is: they are taken for whole numbers.")
    merged = pc.replace_substring_regex(distinct, ZEROS, "").dictionary_encode()
    return merged.dictionary, merged.indices.to_numpy()[codes]


def whole_numbers(distinct: pa.Array) -> npt.NDArray[Any] | None:
    """Text that spells whole numbers, all of it, as these numbers; else None."""
    if not len(distinct) or not pc.all(pc.match_substring_regex(distinct, _WHOLE)).as_py():
        return None
    for kind in (pa.int64(), pa.uint64()):
        try:
            return distinct.cast(kind).to_numpy(zero_copy_only=False).copy()  # type: ignore[no-any-return]
        except pa.ArrowInvalid:
            continue
    return None
