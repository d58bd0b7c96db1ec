"""Mean and standard deviation of some values.

Sums are exact (``math.fsum``), so that a table does not depend on the order of what stands behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1; ``None`` for one value) of ``n`` values."""

    mean: float
    std: float | None
    n: int


def summarise(values: Sequence[float]) -> Summary | None:
    """Mean and standard deviation; ``None`` of nothing.

    >>> summarise([1.0, 3.0])
    Summary(mean=2.0, std=1.4142135623730951, n=2)
    """
    return moments(values) if values else None


def moments(values: Sequence[float]) -> Summary:
    """As :func:`summarise`, of at least one value."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, None, 1)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    # rounding of equal values is not spread: a test would find it infinitely significant
    tiny = 1e-12 * max(abs(value) for value in values)
    return Summary(mean, spread if spread > tiny else 0.0, n)
