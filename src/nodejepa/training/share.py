"""How much of the encoder's gradient comes from prediction, and how much from the guards against collapse."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nodejepa.training.task import Task

SHARE = "prediction_share"  # its name in an epoch's record


class PredictionShare:
    r"""|g| / (|g| + |r|): g the gradient of prediction, r that of all other terms, both with their weights.

    A term near 0 is inert whatever its value: nothing that only changes it can change the embeddings. Made
    before the gradients of the whole loss are there; where no term predicts, nothing is found.
    """

    def __init__(self, task: Task, terms: Mapping[str, Tensor]) -> None:
        predicting = task.predicting(terms)
        self._parameters: list[nn.Parameter] = []
        self._prediction: tuple[Tensor | None, ...] = ()
        if predicting is not None:
            self._parameters = [p for p in task.encoder.parameters() if p.requires_grad]
            self._prediction = torch.autograd.grad(
                predicting, self._parameters, retain_graph=True, allow_unused=True
            )

    def found(self) -> dict[str, float]:
        """The share, once ``backward`` of the whole loss was called and nothing done to its result."""
        if not self._parameters:
            return {}
        mine = rest = 0.0
        for parameter, part in zip(self._parameters, self._prediction, strict=True):
            whole = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            part = torch.zeros_like(parameter) if part is None else part
            mine += part.double().square().sum().item()
            rest += (whole - part).double().square().sum().item()
        total = mine**0.5 + rest**0.5
        return {SHARE: mine**0.5 / total if total else 0.0}
