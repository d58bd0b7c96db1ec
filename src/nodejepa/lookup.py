"""From a node's id to its row, also when the id comes as text from a command line."""

import difflib
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.errors import DataError

_COMPARED = 20_000  # ids that are compared letter by letter for want of a nearer miss; that is slow


def find_rows(ids: Sequence[Any] | npt.NDArray[Any], wanted: Iterable[Any]) -> npt.NDArray[np.int64]:
    """The row of each wanted id, in the order they were asked for.

    >>> find_rows(["ann", "bob", "eve"], ["eve", "ann"]).tolist()
    [2, 0]
    """
    names = _plain(ids)
    places: dict[Any, int] = {}
    for row, name in enumerate(names):
        if places.setdefault(name, row) != row:
            raise DataError(
                f"rows {places[name]} and {row} have the same id {name!r}", fix="Ids must be unique."
            )
    rows = []
    for name in _plain(wanted):
        if not isinstance(name, Hashable) or name not in places:
            raise DataError(f"there is no node {name!r}", where="ids", fix=_advice(str(name), names))
        rows.append(places[name])
    return np.array(rows, dtype=np.int64)


def find_row(ids: npt.NDArray[Any], text: str) -> int:
    """The row whose id is written ``text``: whole numbers are compared as numbers, all else as text."""
    names = _plain(ids)
    if ids.dtype.kind in "iu":
        value = int(text) if re.fullmatch(r"\s*[+-]?[0-9]{1,40}\s*", text) else None
        found = [] if value is None else [row for row, name in enumerate(names) if name == value]
    else:
        found = [row for row, name in enumerate(names) if str(name) == text]
    if not found:
        raise DataError(f"there is no node {text!r}", where="ids", fix=_advice(text, names))
    if len(found) > 1:
        rows = ", ".join(map(str, found[:5]))
        raise DataError(
            f"{len(found)} rows have the id {text!r}: {rows}", where="ids", fix="Ids must be unique."
        )
    return found[0]


def _plain(values: Any) -> list[Any]:
    """Python's own values: NumPy's hash alike but print differently."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _advice(text: str, names: list[Any]) -> str:
    """The nearest ids there are, else what ids look like here."""
    known = [str(name) for name in names]
    folded = text.strip().casefold()
    near = [name for name in known if name.strip().casefold() == folded][:3]
    if not near:
        near = [name for name in known if _one_slip(text, name)][:3]
    if not near:
        alike = [name for name in known if abs(len(name) - len(text)) <= 2]
        near = difflib.get_close_matches(text, alike[:_COMPARED], n=3, cutoff=0.7)
    guess = f"Did you mean {' or '.join(repr(name) for name in near)}? " if near else ""
    if names and all(isinstance(name, int) for name in names):
        return f"{guess}The ids here are whole numbers from {min(names)} to {max(names)}."
    return guess.strip() or f"The ids here look like {', '.join(repr(name) for name in known[:3])}."


def _one_slip(a: str, b: str) -> bool:
    """Whether one character too many, too few or wrong, or two that changed places, lie between them."""
    half = len(a) // 2
    if abs(len(a) - len(b)) > 1 or not (b.startswith(a[: half - 1]) or b.endswith(a[half + 1 :])):
        return False  # a slip spares one of the halves: most of a million ids are done here
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    swapped = a[start + 1 : start + 2] + a[start : start + 1] + a[start + 2 :]
    return (
        b[start:] in (a[start + 1 :], swapped)
        or a[start + 1 :] == b[start + 1 :]
        or a[start:] == b[start + 1 :]
    )
