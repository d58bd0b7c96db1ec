"""Node ids of any kind, batch by batch, and the column of a node table that holds them.

Ids are never array indices, so a billion-sized one costs no more than a small one, and never floats, so
64-bit ones stay exact. Ids that came as text become whole numbers only if every one of them is written so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nodejepa.errors import GraphError
from nodejepa.tables.cells import all_match, interpret, undecorated
from nodejepa.tables.options import (
    IDS,
    ReadingOptions,
    ReadReport,
    are_partners,
    first_names,
    frame_indexes,
    name_two_ends,
    names_ids,
    plain,
    same_kind,
    share_a_noun,
    speaks_of_nodes,
    unnamed,
    words_of,
)
from nodejepa.tables.table import InputTable, Tables, stacked

_WHOLE_FLOAT = r"^(0|-?[1-9][0-9]{0,19})(\.0+)?$"
_ZEROS = r"\.0+$"
_WHOLE = r"^(0|-?[1-9][0-9]{0,19})$"
_FRACTION = r"^\s*[+-]?\d*\.\d+([eE][+-]?\d+)?\s*$"
_FEW_WORDS = 0.02  # share of ids that are no numbers up to which they are taken for mistakes
_ROWS_TOLD_BY = 10_000  # that tell which columns may be ends
_NO_ENDS = """
time timestamp date day week month year hour since created updated rating count amount value score strength
volume price quantity type kind label duration distance length
"""
_RECORDS = "transaction order purchase payment review rating comment message tweet event visit trip call"
_IDS = ("ids", "year")  # what may be an end: years may be ids
# share of ids of two columns from which on they may be of the same nodes; numbers are shared by chance
_SHARED_WORDS, _SHARED, _MOSTLY = 0.01, 0.1, 0.3
_REPEATED = 0.9  # distinct values a row up to which two columns can be seen to go together
_EXACT_FLOAT = 2.0**53
Place = npt.NDArray[np.int32]
Ends: TypeAlias = Mapping[str, tuple[pa.ChunkedArray, str]]  # by column: ids of the edges' ends, their prefix


@dataclass(frozen=True)
class IdSource:
    """A column of a table that holds ids; ``prefix`` keeps them apart from others."""

    table: InputTable
    name: str
    prefix: str = ""

    @property
    def kind(self) -> pa.DataType:
        """int64, or text where one of its ids may be no such number."""
        kind = self.table.kinds[self.name]
        if self.prefix or kind == pa.uint64():
            return pa.string()  # those of uint64 beyond int64 are text
        return plain_ids(pa.chunked_array([], type=kind), self.table.typed, self.table.place(self.name)).type


class IdReader:
    """Reads columns of ids batch by batch, all of them as int64 or all as text."""

    def __init__(self, sources: Sequence[IdSource], report: ReadReport) -> None:
        kinds = [source.kind for source in sources]
        self.whole = all(kind == pa.int64() for kind in kinds)
        self.untyped = not all(source.table.typed for source in sources)
        self.prefixes = list(dict.fromkeys(source.prefix for source in sources if source.prefix))
        self.declared_text = any(
            source.table.typed and not source.prefix and source.table.kinds[source.name] != pa.uint64()
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
        before, table = 0, source.table
        for batch in table.batches([source.name, *([more] if more else [])], label):
            values = plain_ids(batch[source.name], table.typed, table.place(source.name), before)
            values = values if self.whole else values.cast(pa.string())
            if source.prefix:
                values = pc.binary_join_element_wise(source.prefix, values, "")
            yield values, batch[more] if more else None, before
            before += batch.num_rows

    def settled(self, distinct: pa.Array) -> tuple[Any, Place | None]:
        """The ids in their final form, NumPy's or Arrow's, and where each of ``distinct`` is among them."""
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
        if numbers is None:
            self._warn_of_few_words(distinct)
        return distinct if numbers is None else numbers, place

    def _warn_of_few_words(self, distinct: pa.Array) -> None:
        """A few ids that are no numbers among many that are: a footer, or a mistake."""
        odd = distinct.filter(pc.invert(pc.match_substring_regex(distinct, _WHOLE)))
        if 0 < len(odd) <= _FEW_WORDS * len(distinct):
            shown = first_names([text[:40] for text in odd[:6].to_pylist()], 5)
            self.report.warnings.append(
                f"ids are numbers but for {len(odd):,} of {len(distinct):,}: {shown}. All become text. "
                "Remove rows that are no edges or nodes, such as totals."
            )

    def _merged(self, distinct: pa.Array) -> pa.Array:
        """Ids as they are compared; of two kinds of nodes those of each, which begin with its prefix."""
        if not self.prefixes:
            return self._tidied(distinct)
        for prefix in sorted(self.prefixes, key=len, reverse=True):
            own = pc.starts_with(distinct, prefix)
            text = self._tidied(pc.utf8_slice_codeunits(distinct.filter(own), len(prefix)))
            joined = pc.binary_join_element_wise(prefix, text.cast(pa.string()), "").cast(distinct.type)
            distinct = pc.replace_with_mask(distinct, own, joined)
        return distinct

    def _tidied(self, distinct: pa.Array) -> pa.Array:
        """Spaces around cells of a text file belong to its layout, and 5.0 is 5 where both are there."""
        if self.untyped:
            trimmed = pc.utf8_trim(distinct, " \t")
            changed = pc.sum(pc.not_equal(trimmed, distinct)).as_py() or 0
            if changed:
                self.report.note(f"spaces around {changed} ids were removed.")
                distinct = trimmed
        dotted = pc.sum(pc.match_substring(distinct, ".")).as_py() or 0
        alone = dotted == len(distinct) and not self.prefixes
        if not dotted or alone or not all_match(distinct, _WHOLE_FLOAT):
            return distinct
        self.report.note(f"{dotted} ids are written as 5.0 is: they are taken for whole numbers.")
        return pc.replace_substring_regex(distinct, _ZEROS, "")


def plain_ids(values: pa.ChunkedArray, typed: bool, where: str, before: int = 0) -> pa.ChunkedArray:
    """int64 or string values without missing ones; ``before`` rows of the file come before them."""
    values = undecorated(values)
    kind = values.type
    _refuse_missing(pc.is_null(values), where, before)
    if pa.types.is_uint64(kind):
        small = (pc.max(values).as_py() or 0) < 2**63
        return values.cast(pa.int64() if small else pa.string())
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_floating(kind):
        return _from_floats(values, where, before)
    if pa.types.is_null(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        text = values.cast(pa.string())
        if not typed:
            _refuse_missing(pc.equal(text, ""), where, before)
        return text
    raise GraphError(f"{kind} values cannot be ids", where=where, fix="Use text or whole numbers.")


def _refuse_missing(missing: pa.ChunkedArray, where: str, before: int) -> None:
    if pc.any(missing).as_py():
        row, count = pc.index(missing, True).as_py(), pc.sum(missing).as_py()
        raise GraphError(
            f"row {before + row + 1} has no id ({count} such)",
            where=where,
            fix="Give every row an id or remove the row; rows are counted from 1 below the header.",
        )


def _from_floats(values: pa.ChunkedArray, where: str, before: int) -> pa.ChunkedArray:
    """Whole floats as numbers: data frames turn ids into floats where one is missing."""
    floats = values.to_numpy().astype(np.float64)
    _refuse_missing(pa.chunked_array([pa.array(np.isnan(floats))]), where, before)
    bad = np.flatnonzero(~(np.abs(floats) < _EXACT_FLOAT) | (np.floor(floats) != floats))
    if bad.size:
        raise GraphError(
            f"row {before + bad[0] + 1} is {floats[bad[0]]:.17g}, stored as a floating-point number "
            f"({bad.size} such)",
            where=where,
            fix="Store ids as text or 64-bit whole numbers: floats cannot hold every id.",
        )
    return pa.chunked_array([pa.array(floats.astype(np.int64))])


def whole_numbers(distinct: pa.Array) -> npt.NDArray[Any] | None:
    """Text that spells whole numbers of 64 bits, all of it, as these numbers; else None."""
    if not len(distinct) or not all_match(distinct, _WHOLE):
        return None
    try:
        return distinct.cast(pa.int64()).to_numpy(zero_copy_only=False).copy()  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        return None


# ---------------------------------------------------------------- the column that names the nodes


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
        sides = ends()
        column = _by_values(table, possible, reading, sides, named) if possible != [named] else named
        nameless = column and words_of(column) <= {"column"}
        if column and column != named and not speaks_of_nodes(column) and len(table.names) > 1:
            telling = any(same_kind(column, side) for side in (*sides, *frame_indexes(table.names)))
            if not (telling or nameless) and _counts(table, column):
                report.warnings.append(
                    f"nodes are matched with edges by the numbers of column {column!r}, whose name does not "
                    f'speak of ids. If they are ids, say id_column="{column}", else name the right column.'
                )
        column = column or named or next(iter(frame_indexes(table.names)), table.names[0])
        if column not in (named, *possible, *frame_indexes(table.names)):
            raise GraphError(
                "no column names the nodes",
                where=table.where,
                fix="Give it a column of the ids that the edges have, each once, or say id_column=COLUMN. "
                "Or are edges and nodes swapped?",
            )
    report.note(f"node ids are column {column!r} of the nodes (guessed).")
    return column


def _counts(table: InputTable, column: str) -> bool:
    """Whether a column of ids begins with numbers: others hold the same ones by chance."""
    first = next(iter(table.batches([column], "Looking for ids")), None)
    ids = None if first is None else comparable_ids(first[column], table.typed)
    return ids is not None and all_match(ids, _WHOLE_FLOAT)


def first_ids(table: InputTable, columns: Sequence[str], apart: bool | None = None) -> Callable[[], Ends]:
    """Reads the ids in some columns, those of the first batch; those of each are kept ``apart``."""

    def read() -> Ends:
        first = next(iter(table.batches(columns, "Looking for ids")), None)
        if first is None:
            return {}
        keys = {name: comparable_ids(first[name], table.typed, distinct=True) for name in columns}
        return {n: (ids, f"{n}:" if apart else "") for n, ids in keys.items() if ids is not None}

    return read


def likely_ends(
    edges: InputTable, parts: Sequence[InputTable], reading: ReadingOptions, columns: list[str]
) -> list[str]:
    """Columns that may be the ends of edges, the likeliest two first; an error where others are as likely.

    Names tell, else the ids of the node tables (``parts``), else what is in the first rows.
    """
    first = next(iter(edges.batches(columns, "Looking for ids")), None)
    if first is None:
        return columns
    kinds = {name: _kind_of_end(first[name].slice(0, _ROWS_TOLD_BY), edges.typed) for name in columns}
    possible = [n for n in columns if kinds[n] in _IDS and not words_of(n) & set(_NO_ENDS.split())]
    twins = _twins(first.slice(0, _ROWS_TOLD_BY), possible)
    columns = sorted(columns, key=twins.__contains__)
    possible = [name for name in possible if name not in twins]
    if pair := columns[:2] if are_partners(*columns[:2]) else []:  # ends; or places, or years from and to
        no_ids = ("other", "time", "year" if plain(pair[0]).startswith(("from", "start")) else "")
        if len(set(possible) - set(pair)) < 2 or any(kinds[name] not in no_ids for name in pair):
            return columns
    timeless = [name for name in columns if kinds[name] != "time"]
    columns = timeless if len(timeless) > 1 else columns
    rivals = [name for name in possible if name not in columns[:2]]
    if columns[:2] != pair:
        rivals = _rivals(edges, first, columns, rivals)
        if not rivals or "other" in map(kinds.get, columns[:2]):
            return columns
    ends, alone = first_ids(edges, columns)(), replace(reading, bipartite=False)
    matching = set()
    for part in parts:
        own = [name for name in part.names if name not in reading.drop]
        own = [name for name in own if name == reading.id_column or plain(name) in IDS] or own
        for name, keys in ends.items():
            found, total = _found(part, own, alone, {name: keys})
            if 2 * max(found.values(), default=0) > total:
                matching.add(name)
    if len(matching) == 2:
        return sorted(columns, key=lambda name: name not in matching)
    shown = first_names([*columns[:2], *rivals])
    raise GraphError(
        f"{shown} may all be ends of the edges, and nothing tells which two are",
        where=edges.where,
        fix="Say which columns are the ends, with source=COLUMN and target=COLUMN.",
    )


def _rivals(edges: InputTable, first: pa.Table, columns: list[str], rivals: list[str]) -> list[str]:
    """Those of the ``rivals`` that may be ends no less than the first two columns."""
    one, two = columns[:2]
    named = not {unnamed(i + 1) for i in range(len(edges.names))} & set(columns)
    named = named and all(map(words_of, columns))
    first = first.slice(0, _ROWS_TOLD_BY) if named else first  # lists may be sorted by their first column
    found = {name: comparable_ids(first[name], edges.typed, distinct=True) for name in (one, two, *rivals)}
    ids = {name: found_here for name, found_here in found.items() if found_here is not None}
    rivals, rows = [name for name in rivals if name in ids], first.num_rows
    if one not in ids or two not in ids:
        return []
    if not named:
        return [name for name in rivals if _fits_better(ids[one], ids[two], ids[name], rows)]
    for record in (one, two):  # may number the edges, if others are ends by their names or values
        for a, b in combinations([name for name in ids if name != record], 2):
            words = not all_match(ids[a], _WHOLE_FLOAT)
            alike = share_a_noun(a, b) or _shared(ids[a], ids[b]) > (_SHARED_WORDS if words else _MOSTLY)
            alike |= bool(words_of(record) & set(_RECORDS.split())) and name_two_ends(a, b)
            repeated = min(len(ids[a]), len(ids[b])) < rows
            if alike and repeated and len(ids[record]) == rows and not share_a_noun(record, a):
                return rivals
    fewest = min(len(ids[one]), len(ids[two])) / 4  # kinds of edges are fewer than nodes
    return [] if name_two_ends(one, two) else [name for name in rivals if len(ids[name]) >= fewest]


def _twins(first: pa.Table, columns: list[str]) -> set[str]:
    """Columns that name again what one before them names: ``customer_name`` after ``customer_id``."""
    counts = {name: pc.count_distinct(first[name]).as_py() for name in columns}
    found: set[str] = set()
    for one, two in combinations(columns, 2):
        nameless = all(words_of(name) <= {"column"} for name in (one, two))
        if counts[one] != counts[two] or counts[one] > _REPEATED * first.num_rows or one in found:
            continue
        if nameless or share_a_noun(one, two):
            pairs = first.select([one, two]).group_by([one, two]).aggregate([]).num_rows
            found |= {two} if pairs == counts[one] else set()
    return found


def _fits_better(one: pa.ChunkedArray, two: pa.ChunkedArray, third: pa.ChunkedArray, rows: int) -> bool:
    """Whether the third column may be the other end, and the second tell what relates both, by their ids.

    Weights and ratings share numbers with ids by chance, words do not.
    """
    here, there, few = _shared(one, two), _shared(one, third), len(two) < len(third)
    if all_match(third, _WHOLE_FLOAT):
        return few and there > max(4 * here, _SHARED)
    neither = max(here, there) <= _SHARED_WORDS and not all_match(two, _WHOLE_FLOAT)
    pair = here <= _SHARED_WORDS and _shared(two, third) > _MOSTLY  # the first only says whose edge it is
    return there > max(4 * here, _SHARED_WORDS) or pair or (neither and few and len(third) < rows)


def _shared(one: pa.ChunkedArray, other: pa.ChunkedArray) -> float:
    """Share of the ids of two columns that are in both."""
    both = pc.sum(pc.is_in(one, value_set=other.combine_chunks())).as_py() or 0
    return float(both / max(1, len(one) + len(other) - both))


def _kind_of_end(values: pa.ChunkedArray, typed: bool) -> str:
    """What a column of edges may be by its first rows: ``ids``, a ``year``, a ``time``, or ``other``."""
    values = undecorated(values)
    typed = typed and not pa.types.is_string(values.type) and not pa.types.is_large_string(values.type)
    try:
        content = interpret(values, typed, "", whole=False)
    except GraphError:
        return "other"
    if content.kind == "numeric":
        whole = (content.numbers >= 0) & (content.numbers == np.floor(content.numbers))
        if not whole.all():
            return "other"
        return "year" if ((content.numbers >= 1900) & (content.numbers <= 2100)).all() else "ids"
    return {"words": "ids", "time": "time"}.get(content.kind, "other")


def refuse_row_as_header(table: InputTable, names: Sequence[str], ends: Callable[[], Ends]) -> None:
    """Refuse a text file without header whose first row was taken for one: it holds ids of nodes."""
    if table.typed:
        return
    keys = [keys for keys, _ in ends().values()]
    if keys and all(any(pc.index(column, name).as_py() >= 0 for column in keys) for name in names):
        raise GraphError(
            f"the first row is taken for the header, but {', '.join(map(repr, names))} also occur as nodes",
            where=table.where,
            fix="Write a row of names above it, or say header=False if no file has one, True if each has.",
        )


def with_own_ids(parts: Sequence[InputTable], tables: Tables, reading: ReadingOptions) -> InputTable | None:
    """Several tables of nodes whose ids are in columns of different names, as one; None if they are not.

    Customers have ``customer_id`` and products ``product_id``: the column of the ids of all is named after
    these, and holds the side of each where two kinds of nodes are kept apart.
    """
    ends = None if tables.edges is None else first_ids(tables.edges, (tables.source, tables.target))
    together = replace(reading, bipartite=False)
    keys = [guess_id_column(part, together, ReadReport(), ends) for part in parts]
    if None in keys or len(set(keys)) == 1:
        return None
    name = " or ".join(dict.fromkeys(map(str, keys)))
    whole = all(
        part.typed and pa.types.is_integer(part.kinds[str(key)])
        for part, key in zip(parts, keys, strict=True)
    )
    kind = pa.int64() if whole and not reading.bipartite else pa.string()
    renamed = []
    for part, key in zip(parts, map(str, keys), strict=True):
        prefix = f"{_side_of(key, part, tables)}:" if reading.bipartite else ""
        kinds = {name: kind} | {column: of for column, of in part.kinds.items() if column != key}
        renamed.append(replace(part, kinds=kinds, batches=_renamed(part, key, name, prefix, kind)))
    return stacked(renamed)


def _side_of(key: str, part: InputTable, tables: Tables) -> str:
    sides = [end for end in (tables.source, tables.target) if same_kind(key, end)]
    if len(sides) != 1:
        raise GraphError(
            f"nodes of column {key!r} are of neither {tables.source!r} nor {tables.target!r}",
            where=part.where,
            fix="Call the column of the ids of each kind as the edges do.",
        )
    return sides[0]


def _renamed(part: InputTable, key: str, name: str, prefix: str, kind: pa.DataType) -> Any:
    """Reads batches of a table whose ids, in the column ``key``, are to be called ``name``."""

    def batches(columns: Sequence[str], label: str) -> Iterator[pa.Table]:
        before = 0
        for batch in part.batches([key if column == name else column for column in columns], label):
            out = dict(zip(columns, batch.columns, strict=True))
            if name in out:
                ids = plain_ids(out[name], part.typed, part.place(key), before)
                text = ids.cast(pa.string())
                out[name] = (pc.binary_join_element_wise(prefix, text, "") if prefix else ids).cast(kind)
            before += batch.num_rows
            yield pa.table(out)

    return batches


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
    rivals = [n for n in tied if n != chosen and (n in telling or chosen not in telling or names_ids(n))]
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
        fractions = pa.types.is_floating(values.type)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            fractions = pc.any(pc.match_substring_regex(values, _FRACTION)).as_py()
        keys = None if name != named and fractions else comparable_ids(values, table.typed)
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
        own = [(ends[name][0], "")] if reading.bipartite and name in ends else ends.values()
        keys = [pc.binary_join_element_wise(prefix, text, "") if prefix else text for text, prefix in own]
        chunks = [chunk for text in keys for chunk in text.chunks]
        wanted[name] = pa.chunked_array(chunks, type=pa.string()).unique()
    seen: dict[str, npt.NDArray[np.bool_]] = {name: np.zeros(len(ids), bool) for name, ids in wanted.items()}
    for batch in table.batches(names, "Looking for ids") if names else ():
        for name in list(seen):
            keys_here = comparable_ids(batch[name], table.typed)
            if keys_here is None or len(keys_here.unique()) < len(keys_here):
                del seen[name]
            else:
                hits = pc.is_in(wanted[name], value_set=keys_here.combine_chunks())
                seen[name] |= hits.to_numpy(zero_copy_only=False)
    return {name: int(hits.sum()) for name, hits in seen.items()}, max(map(len, wanted.values()), default=0)


def _same(table: InputTable, first: str, second: str) -> bool:
    """Whether two columns hold the same ids in the same order: either will do."""
    for batch in table.batches([first, second], "Looking for ids"):
        one, other = (comparable_ids(batch[name], table.typed) for name in (first, second))
        if one is None or other is None or not one.equals(other):
            return False
    return True


def comparable_ids(values: pa.ChunkedArray, typed: bool, *, distinct: bool = False) -> pa.ChunkedArray | None:
    """Ids as text, so that those of other types can be compared; none if they cannot be ids."""
    try:
        values = plain_ids(values, typed, "")
    except GraphError:
        return None
    text = (pa.chunked_array([values.unique()]) if distinct else values).cast(pa.string())
    if not typed:
        text = pc.utf8_trim(text, " \t")
        if all_match(text, _WHOLE_FLOAT):
            text = pc.replace_substring_regex(text, _ZEROS, "")
    return text
