"""Ids on their way into other formats: kept as they are where the format can, and told where it cannot."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodejepa.errors import DataError
from nodejepa.graph_checks import read_ids

_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_EXACT_IN_JAVASCRIPT = 2**53
_SHOWN_BY_PROJECTOR = 100_000


@dataclass(frozen=True, eq=False)
class ExportIds:
    """One id a row: all whole numbers or all text."""

    values: list[Any]
    column: pa.Array
    converted: bool  # ids of another kind were turned into text
    more: dict[str, pa.Array]  # columns that travel along, such as labels

    @classmethod
    def of(
        cls, ids: npt.ArrayLike | None, rows: int, columns: Mapping[str, Sequence[Any]] | None = None
    ) -> Self:
        """From any ids; none numbers the rows."""
        more = {name: pa.array(values) for name, values in (columns or {}).items()}
        for name, values in more.items():
            if len(values) != rows or name in ("id", "vector"):
                raise DataError(
                    f"there are {len(values)} values for {rows} rows",
                    where=f"column {name}",
                    fix="Give one value a row, under a name of its own.",
                )
        names = read_ids(ids)
        array = np.arange(rows) if names is None else names
        if array.shape != (rows,):
            raise DataError(
                f"there are {array.size} ids for {rows} rows", where="ids", fix="Give one id a row."
            )
        values = array.tolist()
        kind = _kind(values)
        if kind is None:
            values = [str(value) for value in values]
        try:
            return cls(values, pa.array(values, kind or pa.string()), kind is None, more)
        except UnicodeError as error:
            raise DataError(f"an id is no valid text: {error}", where="ids") from None

    def lines(self) -> Iterator[str]:
        """One line an id, as the projector's metadata wants it: no tabs, no line breaks, never empty."""
        return map(_cell, self.values)

    def metadata(self) -> Iterator[str]:
        """The lines of the projector's metadata; a single column has no header, says the projector."""
        if not self.more:
            return self.lines()
        rows = zip(self.values, *(column.to_pylist() for column in self.more.values()), strict=True)
        lines = ("\t".join(map(_cell, row)) for row in rows)
        return chain(["\t".join(map(_cell, ("id", *self.more)))], lines)

    def notes(self, to: str) -> list[str]:
        """What changed on the way, or what the reading tool may change."""
        notes = ["ids were neither text nor whole numbers and are written as text"] if self.converted else []
        text = [value for value in self.values if isinstance(value, str)]
        if to == "projector":
            changed = sum(line != str(value) for line, value in zip(self.lines(), self.values, strict=True))
            if changed:
                notes.append(
                    f"{changed} ids were empty or had tabs or line breaks, which metadata.tsv cannot hold"
                )
            if len(self.values) > _SHOWN_BY_PROJECTOR:
                notes.append(f"TensorBoard draws at most {_SHOWN_BY_PROJECTOR:,} points")
        if to in ("fvecs", "npy") and self.more:
            notes.append(f"{', '.join(self.more)} stay behind: a {to} file holds vectors only")
        if to == "csv" and (risky := sum(value.startswith(_FORMULA) for value in text)):
            notes.append(
                f"{risky} ids begin like a formula (=, +, -, @) and are kept as they are: "
                "import the column as text in a spreadsheet"
            )
        if to == "jsonl" and any(type(v) is int and abs(v) > _EXACT_IN_JAVASCRIPT for v in self.values):
            notes.append("some ids are above 2^53: readers in JavaScript round them")
        return notes


def _cell(value: Any) -> str:
    text = "" if value is None else _BREAKS.sub(" ", str(value))
    return text if text.strip() else "(empty)"


def _kind(values: list[Any]) -> pa.DataType | None:
    """The Arrow type that holds all ids as they are, if there is one."""
    if values and all(type(value) is int for value in values):
        if min(values) >= -(2**63) and max(values) < 2**63:
            return pa.int64()
        return pa.uint64() if min(values) >= 0 and max(values) < 2**64 else None
    return pa.string() if all(type(value) is str for value in values) else None
