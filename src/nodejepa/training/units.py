"""The gradients of a step that is cut into units."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from nodejepa.training.batches import Source
from nodejepa.training.group import Group
from nodejepa.training.seeding import seeded
from nodejepa.training.task import StepContext, Task
from nodejepa.training.team import Team
from nodejepa.training.turns import in_turns


def unit_gradients(
    task: Task, source: Source, context: StepContext, parameters: Sequence[nn.Parameter], team: Team
) -> dict[str, Tensor]:
    """Give ``parameters`` the gradients of the whole step, and return the terms of its loss.

    Every unit's terms are those of all units; its gradient is that of its own rows, and the gradient of the
    step is the sum over units, taken in their order.
    """
    units = source.units

    def losses_of(unit: int) -> Callable[[Group], dict[str, Tensor]]:
        def losses(group: Group) -> dict[str, Tensor]:
            here = replace(context, unit=unit, group=group)
            torch.manual_seed(here.torch("dropout").initial_seed())  # networks come before the first sum
            return task.losses(source.batch(here), here)

        return losses

    with seeded(context.seed, "dropout", context.epoch, context.step):  # and what was before is restored
        found = in_turns(
            [losses_of(unit) for unit in team.mine(units)], units, lambda mine: team.sum(mine, units)
        )
    flat = []
    for terms in found:
        task.zero_grad(set_to_none=True)
        terms["loss"].backward()  # type: ignore[no-untyped-call]
        used = [p for p in parameters if p.grad is not None]
        flat.append(torch.cat([p.grad.flatten() for p in used if p.grad is not None]))
    total = team.sum(flat, units)
    for p, gradient in zip(used, torch.split(total, [p.numel() for p in used]), strict=True):
        p.grad = gradient.view_as(p)
    return {name: term.detach() for name, term in found[0].items()}
