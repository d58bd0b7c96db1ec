"""One column of a node table -> columns of the feature matrix, in a way that can be repeated."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.column_content import ColumnContent, Kind
from nodejepa.io.column_names import words_of
from nodejepa.io.reading_options import MOST_TEXT_COLUMNS, ReadReport, first_names
from nodejepa.validation import NonNegativeInt

ColumnKind: TypeAlias = Literal["numeric", "binary", "boolean", "time", "vector", "category", "text"]
MAX_CATEGORIES = 100
_SAME = 1e-4  # of a standard deviation: means of the same values, summed in another order
_LARGEST = float(np.finfo(np.float32).max)
_NAMES = "label labels class classes target targets category categories topic outcome"
_WHOLE_NAMES = {"y", "groundtruth"}


@dataclass(frozen=True)
class FeatureColumn:
    """How one column is encoded. ``width`` columns of the feature matrix come from it.

    ==========  ==================================================================================
    kind        encoding
    ==========  ==================================================================================
    numeric     (x - mean) / scale; missing is ``fill``, else the mean
    time        as numeric, in seconds
    vector      as numeric, in every dimension
    binary      a number that was 0 or 1 everywhere, as it is; missing is 0
    boolean     0 or 1; missing is 0
    category    a column of 0 and 1 for each of ``categories``; one not among them is all zeros
    text        words hashed into ``buckets`` columns, rows of length 1
    ==========  ==================================================================================

    Numbers that stay as they are have mean 0, scale 1 and a ``fill``. With ``indicator`` a last column is 1
    where the value is missing.
    """

    name: str
    kind: ColumnKind
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    categories: tuple[str, ...] = ()
    buckets: NonNegativeInt = 0
    indicator: bool = False
    fill: tuple[float, ...] = ()

    @property
    def treatment(self) -> str:
        """What was done with the values, in words that go for several columns."""
        if self.kind == "category":
            return "a column of 0 and 1 for each category"
        if self.kind == "text":
            return f"words hashed into {self.buckets} columns"
        kept = self.fill or self.kind == "boolean" or self.kind == "binary"
        return "as they are" if kept else "scaled to mean 0 and standard deviation 1"

    @property
    def missing_is(self) -> str:
        """What a missing value counts as."""
        words = {"category": "all zeros", "text": "all zeros", "boolean": "false", "binary": "0"}
        return words.get(self.kind, "the mean")

    @property
    def width(self) -> int:
        """How many columns of the feature matrix this is."""
        return len(self.mean) + len(self.categories) + self.buckets + int(self.indicator)

    @property
    def cell_kind(self) -> Kind:
        """What the cells must hold."""
        if self.kind == "binary":
            return "numeric"
        return "words" if self.kind == "category" or self.kind == "text" else self.kind

    def encodes_as(self, other: Self) -> bool:
        """Whether another column makes the same numbers of the same cells, but for rounding of the mean."""
        if (self.categories, self.buckets, self.indicator, len(self.mean), bool(self.fill)) != (
            other.categories,
            other.buckets,
            other.indicator,
            len(other.mean),
            bool(other.fill),
        ):
            return False
        scale = np.asarray(self.scale)
        centres = np.abs(np.subtract(self.mean, other.mean)) <= _SAME * scale
        return bool(centres.all() and np.allclose(scale, other.scale, rtol=_SAME, atol=0))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it, without what the kind has no use for."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items() if v}

    def is_sound(self) -> bool:
        """Whether the fields are those of the kind."""
        parts = (len(self.mean), len(self.categories), self.buckets)
        if self.fill and len(self.fill) != len(self.mean):
            return False
        scaled = len(self.mean) == len(self.scale) and all(scale > 0 for scale in self.scale)
        if self.kind == "category":
            return parts == (0, len(set(self.categories)), 0) and self.width > 0
        if self.kind == "text":
            return parts[:2] == (0, 0) and 0 < self.buckets <= MOST_TEXT_COLUMNS
        if self.kind == "vector":
            return scaled and parts == (max(1, len(self.mean)), 0, 0)
        return scaled and parts == (1, 0, 0)


class ColumnGroup(NamedTuple):
    """Columns of one kind that are treated alike; ``width`` columns of the feature matrix come from them."""

    kind: str
    treatment: str
    names: tuple[str, ...]
    width: int

    @property
    def words(self) -> str:
        """For people."""
        count = "1 column" if len(self.names) == 1 else f"{len(self.names):,} columns"
        return f"features from {count} ({self.kind}, {self.treatment}): {first_names(self.names, 20)}"


def refuse_infinite(content: ColumnContent, where: str, *, as_missing: bool) -> ColumnContent:
    """Numbers that float32 cannot hold become missing, or an error that names the first."""
    if content.words is not None or not content.numbers.size:
        return content
    bad = np.abs(content.numbers) > _LARGEST  # false for NaN, which is missing
    if not bad.any():
        return content
    if as_missing:
        return content._replace(numbers=np.where(bad, np.nan, content.numbers))
    row, dimension = np.argwhere(bad)[0]
    raise GraphError(
        f"row {row + 1} is {content.numbers[row, dimension]} ({np.count_nonzero(bad)} such)",
        where=where,
        fix=Advice(
            "Correct it, or take infinite values for missing ones with ",
            Setting("infinite", "missing"),
            "; rows are counted from 1.",
        ),
    )


def count_missing(content: ColumnContent, rows: int) -> int:
    """How many rows lack the value or a part of it."""
    if content.kind == "empty":
        return rows
    if content.words is not None:
        return int(content.words.null_count)
    return int(np.isnan(content.numbers).any(axis=1).sum())


def looks_like_target(column: FeatureColumn, content: ColumnContent) -> bool:
    """Whether a column is named like a target and has few values, much fewer than there are rows."""
    words = words_of(column.name)
    if not (words & set(_NAMES.split()) or "".join(sorted(words)) in _WHOLE_NAMES):
        return False
    if content.words is not None:
        return column.kind == "category"
    if column.kind == "vector" or column.kind == "time":
        return False
    values = content.numbers[~np.isnan(content.numbers)]
    distinct = np.unique(values)
    few = distinct.size <= min(MAX_CATEGORIES, max(2, values.size // 2))
    return few and bool((distinct == np.floor(distinct)).all())


def warn_of_targets(names: list[str], report: ReadReport) -> None:
    """Say which columns may give the answer away, and what to do about it."""
    if not names:
        return
    said = "column {} looks like a target" if len(names) == 1 else "columns {} look like targets"
    report.warnings.append(
        Advice(
            said.replace("{}", first_names(names)) + " (named so, few different values) and the features are "
            "made of it: scores on it would mean nothing. Say ",
            Setting("labels", names[0]),
            " to score by it, or ",
            Setting("drop", names[0]),
            " to leave it out.",
        )
    )
