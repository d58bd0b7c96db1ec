"""Which column of a node table names the nodes: the one whose values are those at the ends of the edges."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError
from nodejepa.tables.cells import undecorated
from nodejepa.tables.ids import WHOLE_FLOAT, ZEROS, IdColumn, as_text, plain_ids
from nodejepa.tables.names import IDS, frame_indexes, plain
from nodejepa.tables.options import ReadingOptions, ReadReport
from nodejepa.tables.table import InputTable, Tables

Ends: TypeAlias = Mapping[str, IdColumn]  # the columns of the edges' ends, by their names


def guess_id_column(
    table: InputTable, reading: ReadingOptions, report: ReadReport, ends: Callable[[], Ends] | None
) -> str | None:
    """The column that names the nodes, by its values; by its name where no column has ids of the edges.

    Args:
        table: of nodes.
        reading: columns that are left out do not name the nodes.
        report: the guess is noted there.
        ends: reads ids of the edges; none where rows are matched by position, where only a telling name
            counts.
    """
    names = {plain(name): name for name in reversed(table.names) if name not in reading.drop}
    named = next((names[name] for name in IDS if name in names), None)
    if ends is None and named is None:
        return None
    column = named
    if ends is not None:
        possible = _without_repetition(table, [n for n in table.names if n not in reading.drop], named)
        column = _by_values(table, possible, reading, ends(), named) if possible != [named] else named
        column = column or named or next(iter(frame_indexes(table.names)), table.names[0])
    report.note(f"node ids are column {column!r} of the nodes (guessed).")
    return column


def first_ends(tables: Tables, reading: ReadingOptions) -> Callable[[], Ends] | None:
    """Reads ids of the edges, those of the first batch; none where edges are a matrix."""
    edges, names = tables.edges, (tables.source, tables.target)
    if not isinstance(edges, InputTable):
        return None

    def read() -> dict[str, IdColumn]:
        first = next(iter(edges.batches(names, "Looking for ids")), None)
        prefixes = [f"{name}:" if reading.bipartite else "" for name in names]
        return {
            name: IdColumn(first[name], edges.typed, edges.where, prefix)
            for name, prefix in zip(names, prefixes, strict=True)
            if first is not None
        }

    return read


def _by_values(
    table: InputTable, columns: list[str], reading: ReadingOptions, ends: Ends, named: str | None
) -> str | None:
    """The column whose values are most of the edges' ids; an error where two are equally good."""
    telling = {named, *ends}
    indexes = frame_indexes(table.names)
    found, total = _found(table, columns, reading, ends)
    best = max((count for name, count in found.items() if name not in indexes), default=0)
    if named is not None and not found.get(named) and best < total:
        return None  # its ids are written in another way, which is said where none of them is found
    if not best:
        return next((name for name in indexes if found.get(name)), None)
    tied = [name for name, count in found.items() if count == best and name not in indexes]
    chosen = next((name for name in tied if name in telling), tied[0])
    rivals = [name for name in tied if name != chosen and (name in telling or chosen not in telling)]
    if chosen not in telling:  # only its values speak for it
        if 2 * best < total and not indexes:
            return None
        rivals += [name for name in indexes if found.get(name, 0) > best]
        rivals += [name for name in found if name in telling and found[name] and best < total]
    for rival in rivals:
        if not _same(table, chosen, rival):
            raise GraphError(
                f"columns {chosen!r} and {rival!r} both hold ids of the edges ({best:,} and {found[rival]:,} "
                f"of {total:,}), and only one of them names the nodes",
                where=table.where,
                fix=f'Say id_column="{chosen}" or id_column="{rival}".',
            )
    return chosen


def _without_repetition(table: InputTable, names: list[str], named: str | None) -> list[str]:
    """Columns whose first rows may be ids: each value once, none missing, no fractions."""
    first = next(iter(table.batches(names, "Looking for ids")), None) if len(names) > 1 else None
    if first is None:
        return names
    kept = []
    for name in names:
        values = undecorated(first[name])
        keys = None if name != named and _is_float(values, table.typed) else _keys(values, table.typed)
        if keys is not None and len(keys.unique()) == len(keys):
            kept.append(name)
    return kept


def _found(
    table: InputTable, names: list[str], reading: ReadingOptions, ends: Ends
) -> tuple[dict[str, int], int]:
    """How many different ids of the edges each column without repetition has, and how many there are."""
    wanted: dict[str, pa.Array] = {}
    for name in names:
        # two kinds of nodes: the table may describe those of the end that is called as its column
        own = bool(reading.bipartite) and name in ends
        keys = [
            _keys(end.values, end.typed, "" if own else end.prefix, distinct=True)
            for end in ([ends[name]] if own else ends.values())
        ]
        chunks = [chunk for key in keys if key is not None for chunk in key.chunks]
        wanted[name] = pa.chunked_array(chunks, type=pa.string()).unique()
    seen: dict[str, npt.NDArray[np.bool_]] = {name: np.zeros(len(ids), bool) for name, ids in wanted.items()}
    for batch in table.batches(names, "Looking for ids") if names else ():
        for name in list(seen):
            keys_here = _keys(undecorated(batch[name]), table.typed)
            if keys_here is None or len(keys_here.unique()) < len(keys_here):
                del seen[name]
            else:
                hits = pc.is_in(wanted[name], value_set=keys_here.combine_chunks())
                seen[name] |= hits.to_numpy(zero_copy_only=False)
    return {name: int(hits.sum()) for name, hits in seen.items()}, max(map(len, wanted.values()), default=0)


def _same(table: InputTable, first: str, second: str) -> bool:
    """Whether two columns hold the same ids in the same order: either will do."""
    for batch in table.batches([first, second], "Looking for ids"):
        one, other = (_keys(undecorated(batch[name]), table.typed) for name in (first, second))
        if one is None or other is None or not one.equals(other):
            return False
    return True


def _is_float(values: pa.ChunkedArray, typed: bool) -> bool:
    """Whether a column holds numbers that are stored or written as fractions."""
    if typed:
        return bool(pa.types.is_floating(values.type))
    try:
        values.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return bool(pc.any(pc.match_substring_regex(values, r"[.eE]")).as_py())


def _keys(
    values: pa.ChunkedArray, typed: bool, prefix: str = "", *, distinct: bool = False
) -> pa.ChunkedArray | None:
    """Ids as text, so that those of other types can be compared; none if they cannot be ids."""
    try:
        values = plain_ids(IdColumn(values, typed, ""))
    except GraphError:
        return None
    text = as_text(pa.chunked_array([values.unique()]) if distinct else values)
    if not typed:
        text = pc.utf8_trim(text, " \t")
        if pc.all(pc.match_substring_regex(text, WHOLE_FLOAT)).as_py():
            text = pc.replace_substring_regex(text, ZEROS, "")
    return pc.binary_join_element_wise(prefix, text, "") if prefix else text
