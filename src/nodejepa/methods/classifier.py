"""A classifier of nodes, trained end to end: what supervised training and fine-tuning share."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.methods.supervision import Supervision
from nodejepa.nn.ema import frozen_copy
from nodejepa.nn.inputs import GraphInputs, WholeGraph
from nodejepa.nn.sparse import Rows
from nodejepa.nn.stack import HiddenFeatures, operator_to, pick_rows
from nodejepa.training.task import StepContext, Task


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

    def embed(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """What the head reads: the embeddings, as :meth:`nodejepa.nn.stack.Encoder.embed`."""
        z: Tensor = self.encoder.embed(inputs, rows)
        return z

    def logits(self, inputs: GraphInputs, rows: Rows = None) -> Tensor:
        """``[N, classes]``, or only those of ``rows`` (bool ``[N]``), in order."""
        whole = rows is None or self.propagate or self._mixes_rows
        h: Tensor = self.encoder(inputs) if whole else self.encoder(inputs, rows=rows)
        h = nn.functional.dropout(h, self.dropout, self.training)
        if self.propagate:
            h = operator_to(inputs.propagation, rows)(h)
        elif whole:
            h = pick_rows(h, rows)
        return torch.addmm(self.bias, h, self.weight)


class ClassifierTask(Task):
    r"""Cross-entropy on the training nodes; the weights with the lowest L on validation nodes are kept.

    .. math:: L = -\frac{1}{|T|} \sum_{i \in T} \log \mathrm{softmax}(\mathrm{logits}_i)_{y_i}
        + \frac{\lambda}{2} \|W_1\|^2

    Args:
        inputs: the whole graph.
        classifier: what is trained.
        supervision: labels of training and validation nodes; there are no others here.
        feature_dropout: on single features, in training.
        row_normalise: divide rows of X by their sums before that, as the encoder would after it.
        l2: lambda, on the encoder's first weight only (Kipf & Welling).
    """

    watched = "val_loss"
    collapse_advice = None

    def __init__(
        self,
        inputs: WholeGraph,
        classifier: Classifier,
        supervision: Supervision,
        *,
        feature_dropout: float = 0.0,
        row_normalise: bool = False,
        l2: float = 0.0,
    ) -> None:
        super().__init__()
        self.feature_dropout, self.row_normalise, self.l2 = feature_dropout, row_normalise, l2
        self.classifier, self.best = classifier, frozen_copy(classifier)
        self.train_codes, self.val_codes = (
            _codes(nodes, codes, inputs)
            for nodes, codes in (
                (supervision.train, supervision.train_codes),
                (supervision.val, supervision.val_codes),
            )
        )

    def losses(
        self,
        inputs: GraphInputs,
        context: StepContext,  # noqa: ARG002 - dropout is seeded by the loop
    ) -> dict[str, Tensor]:
        """Drop out, classify the training nodes, compare."""
        inputs = inputs.row_normalised if self.row_normalise else inputs
        seen = inputs.with_dropout(self.feature_dropout) if self.feature_dropout else inputs
        error = nn.functional.cross_entropy(*self._classified(seen, self.train_codes))
        return {"loss": error + self._penalty(), "cross_entropy": error} if self.l2 else {"loss": error}

    @property
    def kept_encoder(self) -> Classifier:
        """The classifier as it is now, not at its best."""
        return self.classifier

    def _classified(self, inputs: GraphInputs, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and codes of the nodes that have a code."""
        codes = inputs.take(codes)
        known = codes >= 0
        return self.classifier.logits(inputs, known.cpu().numpy()), codes[known]

    def _penalty(self) -> Tensor:
        first = [m.weight for m in self.classifier.encoder.modules() if isinstance(m, HiddenFeatures)]
        return self.l2 / 2 * torch.stack([weight.square().sum() for weight in first]).sum()

    @torch.no_grad()
    def validate(self, inputs: GraphInputs) -> dict[str, float]:
        """Loss, penalty included (as by Shchur et al.), and accuracy (percent) on the validation nodes."""
        self.classifier.eval()
        logits, codes = self._classified(inputs, self.val_codes)
        self.classifier.train()
        right = (logits.argmax(dim=1) == codes).double().mean().item()
        loss = nn.functional.cross_entropy(logits, codes)
        loss = loss + self._penalty() if self.l2 else loss
        return {"val_loss": loss.item(), "val_accuracy": 100 * right}

    @torch.no_grad()
    def keep_best(self) -> None:
        """Weights and buffers as they are now."""
        for mine, now in zip(
            self.best.state_dict().values(), self.classifier.state_dict().values(), strict=True
        ):
            mine.copy_(now)  # the values of a state dict share memory with the module


def _codes(nodes: npt.NDArray[np.int64], known: npt.NDArray[np.int64], inputs: WholeGraph) -> Tensor:
    """The class of every node ``[N]``, -1 where it is not shown."""
    codes = np.full(inputs.num_nodes, -1, dtype=np.int64)
    codes[nodes] = known
    return torch.from_numpy(codes).to(inputs.device)
