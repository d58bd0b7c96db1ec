"""The target network: an exponential moving average that no gradient ever reaches."""

import copy
from typing import TypeVar

import torch
from torch import nn

M = TypeVar("M", bound=nn.Module)


def frozen_copy(module: M) -> M:
    """A copy with the same values whose parameters take no gradient."""
    target = copy.deepcopy(module)
    target.requires_grad_(False)
    return target


@torch.no_grad()
def ema_update(target: nn.Module, source: nn.Module, momentum: float) -> None:
    r""":math:`\xi \leftarrow m\,\xi + (1 - m)\,\theta` for parameters; buffers are copied.

    Buffers are the statistics of batch normalisation, averages already: averaged once more, they would
    still be those of the random start after hundreds of steps.
    """
    for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(theirs, 1 - momentum)
    for kept, seen in zip(target.buffers(), source.buffers(), strict=True):
        kept.copy_(seen)
