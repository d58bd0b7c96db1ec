"""A classifier of nodes, trained end to end: what supervised training and fine-tuning share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.methods.supervision import Supervision
from nodejepa.nn.ema import frozen_copy
from nodejepa.nn.hidden import HiddenFeatures
from nodejepa.nn.inputs import GraphInputs
from nodejepa.nn.stack import operator_to, rows_of
from nodejepa.training.task import Moment, Task


class Classifier(nn.Module):
    r"""An encoder f and a linear head: :math:`\mathrm{logits} = \mathrm{dropout}(f(G)) W + b`.

    Args:
        encoder: any encoder of this package.
        classes: how many.
        dropout: on the head's input, in training.
        propagate: put S before W, which makes the head the last layer of a GCN (Kipf & Welling).
    """

    def __init__(self, encoder: Any, classes: int, *, dropout: float = 0.0, propagate: bool = False) -> None:
        super().__init__()
        self.encoder, self.dropout, self.propagate = encoder, dropout, propagate
        self.out_dim: int = encoder.out_dim
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(self.out_dim, classes)))
        self.bias = nn.Parameter(torch.zeros(classes))
        # statistics of a batch are those of the whole graph, also where few rows are asked for
        self._mixes_rows = any(isinstance(module, nn.BatchNorm1d) for module in encoder.modules())

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Embeddings ``[N, out_dim]``: what the head reads."""
        z: Tensor = self.encoder(inputs)
        return z

    def logits(self, inputs: GraphInputs, rows: npt.NDArray[np.bool_] | None = None) -> Tensor:
        """``[N, classes]``, or only those of ``rows`` (bool ``[N]``), in order."""
        whole = rows is None or self.propagate or self._mixes_rows
        h: Tensor = self.encoder(inputs) if whole else self.encoder(inputs, rows=rows)
        h = nn.functional.dropout(h, self.dropout, self.training)
        if self.propagate:
            h = operator_to(inputs.propagation, rows)(h)
        elif whole:
            h = rows_of(h, rows)
        return torch.addmm(self.bias, h, self.weight)


class ClassifierTask(Task):
    r"""Cross-entropy on the training nodes; the weights with the lowest L on validation nodes are kept.

    .. math:: L = -\frac{1}{|T|} \sum_{i \in T} \log \mathrm{softmax}(\mathrm{logits}_i)_{y_i}
        + \frac{\lambda}{2} \|W_1\|^2

    Args:
        inputs: of the one graph.
        classifier: what is trained.
        supervision: labels of training and validation nodes; there are no others here.
        feature_dropout: on single features, in training.
        l2: lambda, on the encoder's first weight only (Kipf & Welling).
    """

    watched = "val_loss"
    collapse_advice = None

    def __init__(
        self,
        inputs: GraphInputs,
        classifier: Classifier,
        supervision: Supervision,
        *,
        feature_dropout: float = 0.0,
        l2: float = 0.0,
    ) -> None:
        super().__init__()
        self.inputs, self.feature_dropout, self.l2 = inputs, feature_dropout, l2
        self.classifier, self.best = classifier, frozen_copy(classifier)
        size, device = inputs.graph.num_nodes, inputs.device
        self.train_rows, self.val_rows = (_rows(part, size) for part in (supervision.train, supervision.val))
        self.train_codes = torch.from_numpy(supervision.train_codes).to(device)
        self.val_codes = torch.from_numpy(supervision.val_codes).to(device)

    def losses(self, moment: Moment) -> dict[str, Tensor]:  # noqa: ARG002 - dropout is seeded by the loop
        """Drop out, classify the training nodes, compare."""
        seen = self.inputs.with_dropout(self.feature_dropout) if self.feature_dropout else self.inputs
        error = nn.functional.cross_entropy(self.classifier.logits(seen, self.train_rows), self.train_codes)
        return {"loss": error + self._penalty(), "cross_entropy": error} if self.l2 else {"loss": error}

    def _penalty(self) -> Tensor:
        first = [m.weight for m in self.classifier.encoder.modules() if isinstance(m, HiddenFeatures)]
        return self.l2 / 2 * torch.stack([weight.square().sum() for weight in first]).sum()

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Loss, penalty included (as by Shchur et al.), and accuracy (percent) on the validation nodes."""
        self.classifier.eval()
        logits = self.classifier.logits(self.inputs, self.val_rows)
        self.classifier.train()
        right = (logits.argmax(dim=1) == self.val_codes).double().mean().item()
        loss = nn.functional.cross_entropy(logits, self.val_codes)
        loss = loss + self._penalty() if self.l2 else loss
        return {"val_loss": loss.item(), "val_accuracy": 100 * right}

    @torch.no_grad()
    def keep_best(self) -> None:
        """Weights and buffers as they are now."""
        for mine, now in zip(
            self.best.state_dict().values(), self.classifier.state_dict().values(), strict=True
        ):
            mine.copy_(now)  # the values of a state dict share memory with the module

    def embed(self) -> Tensor:
        """What the head reads at the moment."""
        z: Tensor = self.classifier(self.inputs)
        return z


def _rows(nodes: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.bool_]:
    rows = np.zeros(size, dtype=bool)
    rows[nodes] = True
    return rows
