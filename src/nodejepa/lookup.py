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
    wanted: Any = text
    if ids.dtype.kind not in "iu":
        names = [str(name) for name in names]
    elif re.fullmatch(r"\s*[+-]?[0-9]{1,40}\s*", text):
        wanted = int(text)
    return int(find_rows(names, [wanted])[0])


def _plain(values: Any) -> list[Any]:
    """Python's own values: NumPy's hash alike but print differently."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _advice(text: str, names: list[Any]) -> str:
    """The nearest ids there are, else what ids look like here."""
    known = [str(name) for name in names]
    folded = text.strip().casefold()
    near = [name for name in known if name.strip().casefold() == folded][:3]
    if not near:
        alike = [name for name in known if abs(len(name) - len(text)) <= 2]
        near = difflib.get_close_matches(text, alike[:_COMPARED], n=3, cutoff=0.7)
    guess = f"Did you mean {' or '.join(repr(name) for name in near)}? " if near else ""
    if names and all(isinstance(name, int) for name in names):
        return f"{guess}The ids here are whole numbers from {min(names)} to {max(names)}."
    return guess.strip() or f"The ids here look like {', '.join(repr(name) for name in known[:3])}."
