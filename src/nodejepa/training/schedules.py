"""Schedules as pure functions of progress, so that a resumed run needs no schedule state."""

import math


def cosine_rate(progress: float, start: float, end: float, warmup: float = 0.0) -> float:
    """Learning rate: linear warm-up over the share ``warmup`` of training, then a cosine to ``end``."""
    if progress < warmup:
        return start * progress / warmup
    done = (progress - warmup) / max(1 - warmup, 1e-12)
    return end + (start - end) * (1 + math.cos(math.pi * min(done, 1.0))) / 2


def linear(progress: float, start: float, end: float) -> float:
    """Linear from start to end as progress goes from 0 to 1."""
    return start + (end - start) * progress
