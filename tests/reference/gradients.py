"""What every loss and layer is asked: the twin's gradients, and a step downhill."""

from __future__ import annotations

import torch


def assert_same_gradients(mine, wanted, leaves, *, atol, rtol):
    """Two scalars have the same gradient in every leaf."""
    for a, b in zip(torch.autograd.grad(mine, leaves), torch.autograd.grad(wanted, leaves), strict=True):
        torch.testing.assert_close(a, b, atol=atol, rtol=rtol)


def assert_a_step_lowers(loss, leaves, length):
    """A step of ``length`` against the gradient lowers what ``loss()`` gives."""
    before = loss()
    gradients = torch.autograd.grad(before, leaves, allow_unused=True)
    norm = torch.stack([g.norm() for g in gradients if g is not None]).norm()
    assert norm > 0
    with torch.no_grad():
        for leaf, gradient in zip(leaves, gradients, strict=True):
            if gradient is not None:
                leaf -= length * gradient / norm
    assert loss().item() < before.item()
