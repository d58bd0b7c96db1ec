"""The target network: an exponential moving average that no gradient ever reaches."""

from __future__ import annotations

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
    r""":math:`\xi \leftarrow m\,\xi + (1 - m)\,\theta` for parameters and buffers (integers copied)."""
    pairs = zip(target.state_dict().values(), source.state_dict().values(), strict=True)
    for mine, theirs in pairs:  # the values of a state dict share memory with the module
        if mine.is_floating_point():
            mine.lerp_(theirs, 1 - momentum)
        else:
            mine.copy_(theirs)
