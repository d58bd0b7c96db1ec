"""``FeatureSchema``: how a node table became features, fitted once and applied to every table after it.

The features of a graph are columns of its tables, and descriptors of its structure beside or instead.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from nodejepa.config import NonNegativeInt, of_type
from nodejepa.errors import DataError, GraphError
from nodejepa.graph import Graph, RowGraph, digest
from nodejepa.graph_checks import Features, FloatArray
from nodejepa.machine import Room
from nodejepa.tables.cells import dot_between_thousands, expect, interpret, untyped_words
from nodejepa.tables.columns import (
    ColumnFit,
    ColumnGroup,
    FeatureColumn,
    FreeText,
    count_missing,
    encode_column,
    join_blocks,
    refuse_text,
)
from nodejepa.tables.convert import as_graph
from nodejepa.tables.options import (
    ADJACENCY_UP_TO,
    COMPARABLE,
    STRUCTURAL,
    ReadingOptions,
    ReadReport,
    first_names,
    structural_width,
    structure_alone,
)
from nodejepa.tables.table import InputTable, Tables

_FAR = 5.0  # standard deviations
_MANY = 30  # values whose spread is no chance
_OTHER_SPREAD = 3.0  # times that of the fit, or this part of it
_ALIKE = 0.9  # cosine of means that point the same way
_FAR_MEANS = 100.0  # ratio of the lengths of means that are no chance, however many rows they are of
_ROUNDING = 1e-6  # a mean this small beside the spread is a rounding error
_ADDED_AT_ONCE = 1 << 14
_FORMAT = "nodejepa feature schema"
_VERSION = 2  # in version 1 text was hashed into every second column only


@dataclass(frozen=True)
class FeatureSchema:
    """What the feature matrix consists of: table columns or a ready matrix, then structural features.

    Args:
        columns: one entry for each column of the node table that is used.
        matrix_width: instead of ``columns``, the width of a matrix that is used as it is; None without one.
        structural: number of columns of structural features, which are computed anew for every graph.
        described_by: names of the structural features.
        only_for: hash of the only graph that the features fit, if they contain eigenvectors of its adjacency.
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
        doubtful: dict[str, str | None] = {}  # by column: a number whose dot may be no decimal one
        blocks: list[Any] = []
        todo = list(names)
        while todo:
            fits = {name: ColumnFit(name, reading, table.place(name), in_parts=in_parts) for name in todo}
            before = 0
            for batch in _node_batches(table, todo, added, "Reading columns"):
                for name, column in fits.items():
                    values = batch[name], table.typed, column.where
                    if name in seen:  # once more: some rows look like one kind and others like another
                        content = expect("words", *values)
                    else:
                        content = interpret(*values, whole=not in_parts)
                    column.look(content, batch.num_rows, before)
                    if content.kind == "numeric" and not table.typed and name not in doubtful:
                        doubtful[name] = dot_between_thousands(untyped_words(batch[name]))
                    if table.num_rows is not None and isinstance(fitted := column.fitted(), FeatureColumn):
                        blocks.append(encode_column(fitted, content, batch.num_rows, column.where)[0])
                before += batch.num_rows
            todo = [name for name in todo if fits[name].mixed]
            seen |= fits
        found = {name: column.fitted() for name, column in seen.items()}
        refuse_text({name: each for name, each in found.items() if isinstance(each, FreeText)}, table.where)
        schema = cls(tuple(each for each in found.values() if isinstance(each, FeatureColumn)))
        for name, reason in found.items():
            if isinstance(reason, str):
                report.drop(name, reason)
        for made in schema.columns:
            _note_missing(made, seen[made.name].missing, report)
            report.feature_columns[made.name] = made.kind
        report.warnings += [
            f"column {name!r}: the dot of {cell} is taken for a decimal point. It may stand between "
            f"thousands, as three digits follow every dot: then write {cell.replace('.', '')}."
            for name, cell in doubtful.items()
            if cell
        ]
        report.warnings += [
            f"column {made.name!r}: {value:g} is there {count:,} times, far from all other numbers, and is "
            "taken for a number. If it stands for a missing value, leave those cells empty."
            for made in schema.columns
            for value, count in [seen[made.name].stand_in or (0, 0)]
            if count
        ]
        report.warnings += [
            f"column {made.name!r} holds numbers as text, such as {spelled!r}, and is read as words: their "
            "size is lost. Store numbers without a unit if it matters."
            for made in schema.columns
            for spelled in [seen[made.name].spelled_number]
            if spelled
        ]
        if reading.columns is None:
            _warn_of_targets([c.name for c in schema.columns if seen[c.name].looks_like_target(c)], report)
        for group in schema.groups():
            count = f"{len(group.names):,} column{'s' if len(group.names) > 1 else ''}"
            how = f"{group.kind}, {group.treatment}"
            report.note(f"features from {count} ({how}): {first_names(group.names, 20)}.")
        return schema, blocks

    def encode(
        self, table: InputTable, added: int, report: ReadReport | None = None
    ) -> Iterator[tuple[list[Any], int]]:
        """The rows of a table, and ``added`` ones of missing values: a block per column, and a count.

        What is missing or unknown is noted in a ``report``, where one is given.
        """
        before = 0
        for batch in _node_batches(table, [c.name for c in self.columns], added, "Encoding columns"):
            blocks, rows = [], batch.num_rows
            for column in self.columns:
                place = table.place(column.name)
                content = expect(column.cell_kind, batch[column.name], table.typed, place)
                block, unknown = encode_column(column, content, rows, place, before)
                blocks.append(block)
                if report is None:
                    continue
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
            far = [c.name for c, block in zip(self.columns, blocks, strict=True) if _lies_far(c, block)]
            if far:
                report.warnings.append(
                    f"values of {_listed(far)} lie far from those that the features were fitted on: they may "
                    "be in another unit or order."
                )
            lost = [
                c.name
                for c, block in zip(self.columns, blocks, strict=True)
                if c.categories and _is_mostly_unknown(c, block, report.missing_values.get(c.name, 0))
            ]
            if lost:
                report.warnings.append(
                    f"most values of {_listed(lost)} are none of those that the features were fitted on, and "
                    "are encoded as zeros: they may be written in another way."
                )
            return join_blocks(blocks, rows)
        return np.zeros(((table.num_rows or 0) + added, 0), dtype=np.float32)

    def difference(self, other: Self) -> str:
        """What makes features of another schema mean something else, the first of it; empty if nothing."""
        for place, (mine, theirs) in enumerate(itertools.zip_longest(self.columns, other.columns), start=1):
            if mine is None or theirs is None or not mine.encodes_as(theirs):
                return f"column {place} is {_shown(theirs)}, expected is {_shown(mine)}"
        for what in ("matrix_width", "structural", "described_by"):
            here, there = getattr(self, what), getattr(other, what)
            if here != there and (what != "described_by" or self.structural):
                return f"{what} is {there}, expected is {here}"
        return ""

    @property
    def encoding(self) -> str:
        """Identifies how the columns of a table are encoded; empty if there are none."""
        return digest(json.dumps([c.to_dict() for c in self.columns]).encode()) if self.columns else ""

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


def _lies_far(column: FeatureColumn, block: Any) -> bool:
    """Whether numbers are nowhere near those that were 0 or 1, or standardised, when fitted."""
    if column.kind == "vector":
        return block.shape[0] >= _MANY and _vectors_lie_far(column, block[:, : len(column.mean)])
    if column.kind not in ("numeric", "binary", "time") or column.fill or not block.shape[0]:
        return False
    values = (block.toarray() if sp.issparse(block) else block)[:, 0]
    if column.kind == "binary":
        return bool(np.abs(values - 0.5).max() > 1)
    mean, spread = abs(float(values.mean())), float(values.std())
    if max(mean, spread) > _FAR or mean > 2 * (1 + spread):
        return True
    if column.kind == "time":  # new nodes are often those of a few days
        return False
    if 0 < spread < 1 / _FAR**2:
        return True
    there = values[values != 0]  # missing ones are the mean
    return len(there) >= _MANY and (spread > _OTHER_SPREAD or 0 < float(there.std()) < 1 / _OTHER_SPREAD)


def _vectors_lie_far(column: FeatureColumn, block: Any) -> bool:
    """The same of vectors, by their mean and their spread around it, over all dimensions together."""
    rows, width = block.shape
    mean = np.asarray(block.mean(axis=0)).ravel()
    squares = block.power(2).sum() if sp.issparse(block) else np.einsum("ij,ij->", block, block)
    here, spread = float(np.linalg.norm(mean)), float(np.sqrt(max(0.0, squares / rows - mean @ mean)))
    if not column.fill:  # each dimension had mean 0 and standard deviation 1
        unit = width**0.5
        return bool(here > unit or spread > _OTHER_SPREAD * unit or 0 < spread < unit / _FAR**2)
    centre = np.array(column.fill)  # as they are: only their mean is known
    there = float(np.linalg.norm(centre))
    if there <= _ROUNDING * spread:
        return False
    ratio = max(here / there, there / max(here, _ROUNDING * there))
    alike = float(mean @ centre) / max(here * there, _ROUNDING * there**2)
    if alike > _ALIKE:
        return ratio > _FAR
    chance = _OTHER_SPREAD * spread / rows**0.5  # of a mean around 0, which may point anywhere
    elsewhere = alike < 0.5 and here > chance and float(np.linalg.norm(mean - centre)) > spread / 4
    return elsewhere or ratio > _FAR_MEANS


def _is_mostly_unknown(column: FeatureColumn, block: Any, missing: int) -> bool:
    """Whether most cells that hold something hold no category of the column."""
    known = np.count_nonzero(block[:, : len(column.categories)].sum(axis=1))
    return bool(2 * known < block.shape[0] - missing)


def _note_missing(column: FeatureColumn, count: int, report: ReadReport) -> None:
    """Say how many values of a column are missing and what they count as."""
    if count:
        report.missing_values[column.name] = count
        marked = "a column marks" if column.indicator else "nothing marks (there were none when fitted)"
        report.note_column(
            f"missing values, which {marked}, count as {column.missing_is}", column.name, count
        )


def _warn_of_targets(names: Sequence[str], report: ReadReport) -> None:
    """Say which columns may give the answer away, and what to do about it."""
    if names:
        said = "column {} looks like a target" if len(names) == 1 else "columns {} look like targets"
        report.warnings.append(
            f"{said.format(first_names(names))} (named so, few different values) and the features are made "
            f'of it: scores on it would mean nothing. Say labels="{names[0]}" to score by it, or '
            f'drop="{names[0]}" to leave it out.'
        )


def _shown(column: FeatureColumn | None) -> str:
    return "none" if column is None else ", ".join(f"{k} {str(v)[:60]}" for k, v in column.to_dict().items())


def _listed(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {first_names(names)}"


# ---------------------------------------------------------------- features of a graph


def fit_features(
    graph: Graph, tables: Tables, report: ReadReport, reading: ReadingOptions, room: Room
) -> tuple[Graph, FeatureSchema]:
    """The graph with the features of its tables, and how they were made."""
    features: Features = np.zeros((graph.num_nodes, 0), dtype=np.float32)
    schema = FeatureSchema()
    if tables.nodes is not None and tables.features:
        schema, blocks = FeatureSchema.fit(tables.nodes, tables.features, report.added_nodes, reading, report)
        features = join_blocks(blocks, graph.num_nodes)
    names = structural_names(reading.structural, schema, report, graph.num_nodes)
    return add_structure(graph.with_features(features), schema, names, report, room)


def add_structure(
    graph: Graph, schema: FeatureSchema, names: tuple[str, ...], report: ReadReport, room: Room
) -> tuple[Graph, FeatureSchema]:
    """The graph with structural features beside its own, and how all of them are made."""
    schema = with_structure(schema, names, report)
    if "adjacency" in names:
        schema = replace(schema, only_for=graph.structure_hash)
    return _with_structure(graph, names, room), schema


def with_structure(schema: FeatureSchema, names: tuple[str, ...], report: ReadReport) -> FeatureSchema:
    """The schema with structural features of these names, if there are any."""
    if not names:
        return schema
    said = _in_words(names)
    report.note(
        f"structural features are added to the others: {said}."
        if schema.width
        else f"features are structural: {said}."
    )
    if "adjacency" in names:
        report.note('adjacency features cannot be applied to other graphs; structural="all" leaves them out.')
    return replace(schema, structural=structural_width(names), described_by=names)


def apply_schema(
    graph: Graph, tables: Tables, schema: FeatureSchema, report: ReadReport, room: Room
) -> Graph:
    """The graph with features made as those the schema was fitted on."""
    refuse_another(graph, schema.only_for)
    features: Features = np.zeros((graph.num_nodes, 0), dtype=np.float32)
    where = "nodes" if tables.nodes is None else tables.nodes.where
    if schema.matrix_width is not None:
        raise GraphError(
            f"a matrix of {schema.matrix_width} columns is expected as node features, not a table",
            where=where,
            fix="Give the same features as those the model was trained on: a nodejepa.Graph that has them.",
        )
    if tables.nodes is not None:
        features = schema.apply(tables.nodes, tables.features, report.added_nodes, report)
    elif schema.columns:
        raise GraphError(
            "the features need a node table, but there is none",
            where="nodes",
            fix=f"It has columns {', '.join(repr(c.name) for c in schema.columns[:10])}.",
        )
    graph = graph.with_features(features)
    return _with_structure(graph, schema.described_by, room) if schema.structural else graph


def refuse_another(graph: RowGraph, only_for: str | None) -> None:
    """Refuse any graph but the one whose adjacency was learned from; ``only_for`` is its hash, if any was."""
    if only_for is not None and graph.structure_hash != only_for:
        raise GraphError(
            "the model was trained on the adjacency of another graph, or of this one with its nodes in "
            "another order: its columns mean nothing here",
            where="edges",
            fix="Train on this graph. A model for several graphs is trained on the columns of its nodes, "
            'use="columns", or on descriptors that mean the same on all of them: structural=["pagerank", '
            '"degree", "clustering"] where files are read, nodejepa.descriptors(graph, [...]) in Python.',
        )


def graph_with_features(source: Any, *, comparable: bool = False, room: Room | None = None) -> Graph:
    """As :func:`as_graph`; a graph without features is described by its structure, as a file without is.

    Args:
        source: the graph.
        comparable: by descriptors alone, which mean the same on every graph.
        room: memory for it; what is available if not given.
    """
    graph = as_graph(source)
    if graph.num_features or graph.num_nodes < 2:
        return graph
    names = COMPARABLE if comparable else structure_alone(graph.num_nodes)
    return _with_structure(graph, names, room or Room.of())


def structural_names(
    asked: tuple[str, ...] | None, schema: FeatureSchema, report: ReadReport, nodes: int | None = None
) -> tuple[str, ...]:
    """The structure to add to the features of a schema: what is asked for, or the usual if there are none.

    ``nodes`` is how many are described; none of a graph on disk, which never has the adjacency's coordinates.
    """
    if asked is not None:
        return tuple(name for name in STRUCTURAL if name in asked)
    if schema.width:
        return ()
    names = COMPARABLE if nodes is None else structure_alone(nodes)
    if nodes is not None and "adjacency" not in names:
        report.note(
            f"the graph has more than {ADJACENCY_UP_TO:,} nodes: the adjacency itself, which describes "
            "smaller graphs without features as well, is left out; name it with structural=... to have it."
        )
    return names


def _in_words(names: tuple[str, ...]) -> str:
    words = {"pagerank": "PageRank", "spectral": "spectral coordinates", "adjacency": "the adjacency itself"}
    said = [words.get(name, name) for name in names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def _with_structure(graph: Graph, names: tuple[str, ...], room: Room) -> Graph:
    """The graph with structural features beside its own."""
    if not names:
        return graph
    # brings the compiler with it: only where it is needed
    from nodejepa.structure import descriptors, node_adjacency

    places = descriptors(graph, [name for name in names if name in COMPARABLE])
    if "adjacency" in names:
        whole = node_adjacency(graph, STRUCTURAL["adjacency"], room)
        heard, own = float(np.sum(np.square(places, dtype=np.float64))), float(np.sum(whole**2))
        scale = np.sqrt((heard or graph.num_nodes) / own) if own else 0.0  # as all descriptors together
        places = np.column_stack([places, (scale * whole).astype(np.float32)])
    made = graph.with_features(side_by_side(graph.features, places))
    return replace(made, incomparable="adjacency" in names, structural=places.shape[1])


def side_by_side(features: Features, places: FloatArray) -> Features:
    """Features and structural ones of the same nodes, sparse if the features are."""
    if not features.shape[1]:
        return places
    if sp.issparse(features):
        return sp.csr_array(sp.hstack([features, sp.csr_array(places)], format="csr"))
    return np.column_stack([features, places])
