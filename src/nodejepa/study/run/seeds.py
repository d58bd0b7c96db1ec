"""Seeds as people write them: ``42-46``, ``1,2,5`` or a mixture."""

from __future__ import annotations

import re
from typing import NoReturn

from nodejepa.errors import ConfigError

_MOST = 1000


def parse_seeds(text: str) -> list[int]:
    """The seeds a text names, in its order.

    >>> parse_seeds("42-44,7")
    [42, 43, 44, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,10})\s*(?:-\s*([0-9]{1,10})\s*)?", part)
        if not match:
            _refuse(text, f"{part.strip()!r} is no seed and no range of seeds")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            _refuse(text, f"the range {part.strip()} runs backwards")
        if len(seeds) + last - first >= _MOST:
            _refuse(text, f"these are more than {_MOST} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        _refuse(text, "a seed is named twice")
    return seeds


def _refuse(text: str, why: str) -> NoReturn:
    raise ConfigError(why, where=f"seeds {text}", fix='Write "42-46", "1,2,5" or a mixture of both.')
