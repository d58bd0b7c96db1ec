"""How to encode a column, found out from its cells: all at once, or some rows after the other."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import Advice, GraphError, Setting
from nodejepa.io.column_content import ColumnContent, Kind
from nodejepa.io.feature_columns import MAX_CATEGORIES, ColumnKind, FeatureColumn
from nodejepa.io.reading_options import ReadingOptions

_MOST_WORDS = 1 << 20  # distinct ones that are counted; a column with more is free text whatever the number


class Useless(NamedTuple):
    """Why a column is left out, said of it alone and of several."""

    reason: str
    several: str


class ColumnFit:
    """What was seen of a column so far; :meth:`fitted` says how to encode it."""

    def __init__(self, name: str, reading: ReadingOptions, where: str) -> None:
        self.name, self.reading, self.where = name, reading, where
        self._kind: Kind = "empty"
        self._guess = ""
        self._rows = 0
        self._missing = False
        self._binary = True
        self._words: pa.Array | None = None
        self._present = 0  # of words
        self._first = 0.0
        self._counts: Any = None  # of numbers, a column each
        self._mean: Any = None
        self._squares: Any = None
        self._largest: Any = None

    def look(self, content: ColumnContent, rows: int) -> None:
        """Take in ``rows`` more rows."""
        self._rows += rows
        if content.kind == "empty":
            self._missing = self._missing or rows > 0
            return
        if self._kind not in ("empty", content.kind) or (
            self._kind != "empty" and self._guess != content.guess
        ):
            raise GraphError(
                f"the column reads as {self._kind} at first and as {content.kind} below",
                where=self.where,
                fix=Advice(
                    "Store it with a type, as parquet does, or leave it out with ", Setting("drop", ""), "."
                ),
            )
        self._kind, self._guess = content.kind, content.guess
        if content.words is not None:
            self._look_at_words(content.words)
        else:
            self._look_at_numbers(content.numbers)

    def _look_at_words(self, words: pa.ChunkedArray) -> None:
        self._missing = self._missing or words.null_count > 0
        self._present += len(words) - words.null_count
        distinct = words.drop_null().unique()
        if self._words is not None and len(self._words) < _MOST_WORDS:
            distinct = pa.chunked_array([self._words, distinct]).unique()
        elif self._words is not None:
            return
        self._words = distinct

    def _look_at_numbers(self, numbers: npt.NDArray[np.float64]) -> None:
        present = ~np.isnan(numbers)
        known = np.where(present, numbers, 0.0)
        counts = present.sum(axis=0)
        mean = known.sum(axis=0) / np.maximum(counts, 1)
        centred = np.where(present, numbers - mean, 0.0)
        squares = (centred**2).sum(axis=0)
        largest = np.abs(known).max(axis=0, initial=0.0)
        self._missing = self._missing or not bool(present.all())
        self._binary = self._binary and bool(np.isin(numbers[present], (0.0, 1.0)).all())
        if self._counts is None:
            self._counts, self._mean, self._squares, self._largest = counts, mean, squares, largest
            self._first = float(numbers.flat[0]) if numbers.size else 0.0
            return
        if len(counts) != len(self._counts):
            raise GraphError(
                f"lists have {len(counts)} numbers below and {len(self._counts)} before",
                where=self.where,
                fix="Give lists of one length.",
            )
        total = np.maximum(self._counts + counts, 1)
        between = mean - self._mean  # Chan et al. 1979
        self._squares = self._squares + squares + between**2 * (self._counts * counts / total)
        self._mean = self._mean + between * (counts / total)
        self._counts = self._counts + counts
        self._largest = np.maximum(self._largest, largest)

    def fitted(self) -> FeatureColumn | Useless:
        """How to encode the column, or the reason why it says nothing."""
        if self._kind == "empty":
            return Useless("all of its values are missing", "all of their values are missing")
        if self._words is not None:
            return self._fitted_words(self._words)
        kind: ColumnKind = self._kind  # type: ignore[assignment]
        counts, mean = self._counts, self._mean
        deviation = np.sqrt(self._squares / np.maximum(counts, 1))
        varies = deviation > 1e-9 * self._largest
        if not varies.any() and not (self._missing and counts.any()):
            constant = f"it is {self._first:g} everywhere" if len(mean) == 1 else "it never varies"
            return Useless(constant, "they never vary")
        if kind == "numeric" and self.reading.scale == "auto" and self._binary:
            kind = "binary"
        if kind == "boolean" or kind == "binary":
            return FeatureColumn(self.name, kind, (0.0,), (1.0,), indicator=self._missing)
        mean = np.where(varies | (counts > 0), mean, 0.0)
        fill = tuple(mean.tolist())
        scale = self.reading.scale
        if scale == "none" or (scale == "auto" and kind == "vector"):
            ones = (1.0,) * len(mean)
            return FeatureColumn(self.name, kind, (0.0,) * len(mean), ones, (), 0, self._missing, fill)
        spread = np.where(varies, deviation, 1.0)
        return FeatureColumn(self.name, kind, fill, tuple(spread.tolist()), indicator=self._missing)

    def _fitted_words(self, distinct: pa.Array) -> FeatureColumn | Useless:
        if len(distinct) <= 1 and not self._missing:
            return Useless("it is the same everywhere", "they never vary")
        if len(distinct) <= min(MAX_CATEGORIES, max(10, self._present // 2)):
            known = tuple(sorted(distinct.to_pylist()))
            return FeatureColumn(self.name, "category", categories=known, indicator=self._missing)
        if self.reading.text == "hash":
            width = self.reading.text_columns
            return FeatureColumn(self.name, "text", buckets=width, indicator=self._missing)
        if self.reading.text == "ignore":
            return Useless(f"it is text with {len(distinct)} different values", "they are text")
        raise GraphError(
            f"the column is text with {len(distinct)} different values, such as {distinct[0].as_py()[:40]!r}",
            where=self.where,
            fix=Advice(
                "Leave it out with ",
                Setting("drop", ""),
                ", hash its words with ",
                Setting("text", "hash"),
                ", or replace it by a column of lists: embeddings from a language model.",
            ),
        )
