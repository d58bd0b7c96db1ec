"""The one place where randomness starts.

Every random choice of a run is a function of (seed, epoch, step, micro-batch, purpose), never of what was
drawn before. A resumed run therefore needs no saved generator state to continue with the same bits.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

# Purposes get streams of their own, so that one drawing more numbers does not shift the others.
_STREAMS = {"init": 0, "mask": 1, "noise": 2, "dropout": 3, "parts": 4}


def numpy_generator(seed: int, purpose: str, *position: int) -> np.random.Generator:
    """A NumPy generator for one purpose at one position (epoch, step)."""
    return np.random.default_rng([seed, _STREAMS[purpose], *position])


def torch_generator(seed: int, purpose: str, *position: int) -> torch.Generator:
    """A torch CPU generator for one purpose at one position (epoch, step)."""
    state = int(numpy_generator(seed, purpose, *position).integers(2**63 - 1))
    return torch.Generator().manual_seed(state)


@contextmanager
def seeded(seed: int, purpose: str, *position: int) -> Iterator[None]:
    """Seed torch's global generator inside the block (initialisation, dropout) and restore it after."""
    state = int(numpy_generator(seed, purpose, *position).integers(2**63 - 1))
    with torch.random.fork_rng():
        torch.manual_seed(state)
        yield
