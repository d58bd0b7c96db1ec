"""``FeatureSchema``: how a node table became features, fitted once and applied to every table after it."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from nodejepa.errors import DataError, GraphError
from nodejepa.files import write_json
from nodejepa.graph_checks import Features
from nodejepa.tables.cells import expect, interpret
from nodejepa.tables.columns import (
    ColumnFit,
    ColumnGroup,
    FeatureColumn,
    FreeText,
    count_missing,
    encode_column,
    join_blocks,
    refuse_text,
    warn_of_targets,
)
from nodejepa.tables.options import COMPARABLE, STRUCTURAL, ReadingOptions, ReadReport, structural_width
from nodejepa.tables.table import InputTable
from nodejepa.validation import NonNegativeInt, of_type, read_json

_ADDED_AT_ONCE = 1 << 14
_FORMAT = "nodejepa feature schema"
_VERSION = 2  # in version 1 text was hashed into every second column only


@dataclass(frozen=True)
class FeatureSchema:
    """What the feature matrix is made of, in this order: table columns or a ready matrix, then structure.

    Args:
        columns: one entry for each column of the node table that is used.
        matrix_width: instead of ``columns``, the width of a matrix that is used as it is; None without one.
        structural: how many columns of structural features follow, recomputed for every graph.
        described_by: names of the structural features, where there are any.
        only_for: hash of the one graph these features can be made of, where the adjacency is among them.
    """

    columns: tuple[FeatureColumn, ...] = ()
    matrix_width: NonNegativeInt | None = None
    structural: int = 0
    described_by: tuple[str, ...] = COMPARABLE
    only_for: str | None = None

    @property
    def width(self) -> int:
        """Columns of the feature matrix."""
        return sum(column.width for column in self.columns) + (self.matrix_width or 0) + self.structural

    # ---------------------------------------------------------------- tables

    @classmethod
    def fit(
        cls, table: InputTable, names: Sequence[str], added: int, reading: ReadingOptions, report: ReadReport
    ) -> tuple[Self, list[Any]]:
        """How to encode the columns of a table, and, where it is one batch, what they are encoded to.

        ``added`` rows of missing values follow those of the table.
        """
        in_parts = not table.typed and table.num_rows is None
        seen: dict[str, ColumnFit] = {}
        blocks: list[Any] = []
        todo = list(names)
        while todo:
            fits = {name: ColumnFit(name, reading, _place(table, name), in_parts=in_parts) for name in todo}
            before = 0
            for batch in _node_batches(table, todo, added, "Looking at columns"):
                for name, column in fits.items():
                    values = batch[name], table.typed, column.where
                    if name in seen:  # once more: some rows look like one kind and others like another
                        content = expect("words", *values)
                    else:
                        content = interpret(*values, whole=not in_parts)
                    if content.guess and not column.guess:
                        report.note_column(content.guess, name)
                    column.look(content, batch.num_rows, before)
                    if table.num_rows is not None and isinstance(fitted := column.fitted(), FeatureColumn):
                        blocks.append(encode_column(fitted, content, batch.num_rows, column.where)[0])
                before += batch.num_rows
            todo = [name for name in todo if fits[name].mixed]
            seen |= fits
        columns: list[FeatureColumn] = []
        targets = []
        free: dict[str, FreeText] = {}
        for name, column in seen.items():
            fitted = column.fitted()
            if isinstance(fitted, FreeText):
                free[name] = fitted
            elif isinstance(fitted, str):
                report.drop(name, fitted)
            else:
                _note_missing(fitted, column.missing, report)
                columns.append(fitted)
                report.feature_columns[name] = fitted.kind
                if reading.columns is None and column.looks_like_target(fitted):
                    targets.append(name)
        refuse_text(free, table.where)
        warn_of_targets(targets, report)
        schema = cls(tuple(columns))
        for group in schema.groups():
            report.note(f"{group.words}.")
        return schema, blocks

    def encode(
        self, table: InputTable, added: int, report: ReadReport | None = None
    ) -> Iterator[tuple[list[Any], int]]:
        """The rows of a table, and ``added`` ones of missing values: a block a column, and how many rows.

        What is missing or unknown is noted in a ``report``, where one is given.
        """
        before = 0
        for batch in _node_batches(table, [c.name for c in self.columns], added, "Encoding columns"):
            blocks, rows = [], batch.num_rows
            for column in self.columns:
                place = _place(table, column.name)
                content = expect(column.cell_kind, batch[column.name], table.typed, place)
                block, unknown = encode_column(column, content, rows, place, before)
                blocks.append(block)
                if report is None:
                    continue
                if content.guess:
                    report.note_column(content.guess, column.name)
                _note_missing(column, count_missing(content, rows), report)
                if unknown:
                    said = "values of categories not seen before, which are encoded as zeros"
                    report.note_column(said, column.name, unknown)
                report.feature_columns[column.name] = column.kind
            yield blocks, rows
            before += rows

    def apply(self, table: InputTable, names: Sequence[str], added: int, report: ReadReport) -> Features:
        """Encode another table, which is one batch, exactly as the one this was fitted on."""
        lost = [column.name for column in self.columns if column.name not in names]
        if lost:
            raise GraphError(
                f"the node table lacks {_listed(lost)} the features were fitted on",
                where=table.where,
                fix=f"There are: {', '.join(map(repr, names[:20])) or 'no columns'}.",
            )
        known = {column.name for column in self.columns}
        extra = [name for name in names if name not in known]
        if extra:
            report.note(f"the feature schema has no use for {_listed(extra)}.")
        for blocks, rows in self.encode(table, added, report):
            return join_blocks(blocks, rows)
        return np.zeros(((table.num_rows or 0) + added, 0), dtype=np.float32)

    def check_matrix(self, matrix: Features, where: str) -> None:
        """Refuse a matrix of another width than the one this was fitted on."""
        if self.matrix_width is None:
            raise GraphError(
                f"a node table with {_listed([c.name for c in self.columns])} is expected, not a matrix"
                if self.columns
                else "no node features are expected, the schema is structural",
                where=where,
            )
        if matrix.shape[1] != self.matrix_width:
            raise GraphError(
                f"the feature matrix has {matrix.shape[1]} columns where {self.matrix_width} are expected",
                where=where,
                fix="Give the same features, in the same order, as the ones the model was trained on.",
            )

    def difference(self, other: Self) -> str:
        """What makes features of another schema mean something else, the first of it; empty if nothing."""
        pairs = itertools.zip_longest(self.columns, other.columns)
        for place, (mine, theirs) in enumerate(pairs, start=1):
            if mine is None or theirs is None:
                return f"column {place} is {_named(theirs)}, expected is {_named(mine)}"
            if (mine.name, mine.kind) != (theirs.name, theirs.kind):
                return f"column {place} is {_named(theirs)}, expected is {_named(mine)}"
            if not mine.encodes_as(theirs):
                shown = f"{_shown(theirs)}, expected is {_shown(mine)}"
                return f"column {mine.name!r} is encoded or scaled otherwise: {shown}"
        for what in ("matrix_width", "structural"):
            here, there = getattr(self, what), getattr(other, what)
            if here != there:
                return f"{what} is {there}, expected is {here}"
        if self.structural and self.described_by != other.described_by:
            return (
                f"structural features are {', '.join(other.described_by)}, not {', '.join(self.described_by)}"
            )
        return ""

    def groups(self) -> list[ColumnGroup]:
        """The columns of the table by what was done with them."""
        found: dict[tuple[str, str], list[FeatureColumn]] = {}
        for column in self.columns:
            found.setdefault((column.kind, column.treatment), []).append(column)
        return [
            ColumnGroup(kind, treatment, tuple(c.name for c in columns), sum(c.width for c in columns))
            for (kind, treatment), columns in found.items()
        ]

    # ---------------------------------------------------------------- JSON

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        own |= {"columns": [c.to_dict() for c in self.columns], "described_by": list(self.described_by)}
        return {"format": _FORMAT, "version": _VERSION, **own}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The schema that :meth:`to_dict` wrote."""
        where = "feature schema"
        needed = {"columns", "structural"}
        if not isinstance(content, Mapping) or content.get("format") != _FORMAT or needed - content.keys():
            raise DataError("this is no feature schema", where=where)
        version = content.get("version")
        if version not in (1, _VERSION):
            raise DataError(f"the schema has version {version!r}, this program reads {_VERSION}", where=where)
        try:
            schema = of_type(cls, content)
            schema._check()
        except ValueError as error:
            raise DataError(
                f"the feature schema is damaged: {error}", where=where, fix="Fit it again."
            ) from None
        hashed = [column.name for column in schema.columns if column.kind == "text"]
        if version == 1 and hashed:
            raise DataError(
                f"the text of {_listed(hashed)} was hashed by an older rule, which used half of its columns",
                where=where,
                fix="Fit it again, or use the version of nodejepa that wrote it.",
            )
        return schema

    def _check(self) -> None:
        """Refuse values that do not fit together."""
        for column in self.columns:
            if not column.is_sound():
                raise ValueError(f"column {column.name!r} is not like others of its kind, {column.kind}")
        known = set(self.described_by) <= STRUCTURAL.keys()
        if not known or self.structural not in (0, structural_width(self.described_by)):
            raise ValueError(f"structural is {self.structural} of {', '.join(self.described_by)}")
        if (self.only_for is not None) != ("adjacency" in self.described_by):
            raise ValueError(f"only_for is {self.only_for}")
        if self.matrix_width is not None and self.columns:
            raise ValueError("there are a matrix and columns")

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        return cls.from_dict(read_json(Path(path), dict[str, Any], _unreadable))


def _unreadable(path: Path, reason: str) -> DataError:
    return DataError(f"the feature schema cannot be read: {reason}", where=str(path))


def _node_batches(table: InputTable, names: Sequence[str], added: int, label: str) -> Iterator[pa.Table]:
    """Rows of the table, then rows of nothing for nodes that only edges name; in memory all together."""
    if not names:
        return

    def nothing(rows: int) -> pa.Table:
        return pa.table({name: pa.nulls(rows, table.kinds[name]) for name in names})

    whole = table.num_rows is not None
    for batch in table.batches(names, label):
        yield pa.concat_tables([batch, nothing(added)]) if whole and added else batch
    for start in range(0, 0 if whole else added, _ADDED_AT_ONCE):
        yield nothing(min(_ADDED_AT_ONCE, added - start))


def _place(table: InputTable, name: str) -> str:
    return f"{table.where}, column {name!r}"


def _note_missing(column: FeatureColumn, count: int, report: ReadReport) -> None:
    """Say how many values of a column are missing and what they count as."""
    if count:
        report.missing_values[column.name] = count
        marked = "a column marks" if column.indicator else "nothing marks (there were none when fitted)"
        report.note_column(
            f"missing values, which {marked}, count as {column.missing_is}", column.name, count
        )


def _named(column: FeatureColumn | None) -> str:
    return "none" if column is None else f"{column.name!r} ({column.kind})"


def _shown(column: FeatureColumn) -> str:
    values = {key: value for key, value in column.to_dict().items() if key not in ("name", "kind")}
    return ", ".join(f"{key} {str(value)[:60]}" for key, value in values.items())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:10]))
    return f"column{'s' if len(names) > 1 else ''} {shown}{', ...' if len(names) > 10 else ''}"
