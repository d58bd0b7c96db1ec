# %% [markdown]
# # A new method in one file
#
# A method has a frozen config, a `Task` (network and loss) and a `TrainedEstimator` (name and settings). The
# training loop, checkpoints, seeds, saving, loading and scoring are there already. This method is the graph
# auto-encoder of Kipf & Welling (2016). It makes inner products of linked nodes large and those of random
# pairs small.

# %%
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from nodejepa import load_dataset
from nodejepa.evaluation.scoring import score_method
from nodejepa.methods import METHODS, TrainedEstimator, load_method
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import GraphInputs, WholeGraph
from nodejepa.training.task import StepContext, Task, TrainingConfig


@dataclass(frozen=True)
class GraphAutoEncoderConfig:
    """All settings. Each can be changed with `--set` or as a keyword argument."""

    hidden: int = 64
    layers: int = 2
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=30))


class GraphAutoEncoderTask(Task):
    """Separates edges from random pairs by the inner product of the two embeddings."""

    def __init__(self, encoder: GCN) -> None:
        super().__init__()
        self.encoder = encoder  # `Task.embed` and `fit` use this name

    def losses(self, inputs: GraphInputs, context: StepContext) -> dict[str, Tensor]:
        """Everything random comes from `context`: the same seed gives the same bits, also after a resume."""
        z = self.encoder(inputs)
        z = z / z.shape[1] ** 0.25  # inner products of size about one
        source, target = (torch.from_numpy(ends).long().to(z.device) for ends in inputs.adjacency.nonzero())
        negatives = torch.randint(len(z), (2, len(source)), generator=context.torch("mask")).to(z.device)
        joined = (z[source] * z[target]).sum(dim=1)
        random = (z[negatives[0]] * z[negatives[1]]).sum(dim=1)
        loss = -(nn.functional.logsigmoid(joined).mean() + nn.functional.logsigmoid(-random).mean())
        return {"loss": loss}


class GraphAutoEncoder(TrainedEstimator):
    """Graph auto-encoder (Kipf & Welling 2016)."""

    name = "gae"
    title = "GAE"
    summary = "separates edges from random pairs"
    citation = "Kipf & Welling 2016"
    config_class = GraphAutoEncoderConfig

    def make_encoder(self, in_dim: int) -> GCN:
        return GCN(in_dim, hidden=self.config.hidden, layers=self.config.layers)

    def make_task(self, inputs: WholeGraph) -> Task:
        return GraphAutoEncoderTask(self.make_encoder(inputs.num_features))


# %% [markdown]
# A method in `METHODS` can be used by name, with seeds, settings, run folders and the probe.

# %%
METHODS["gae"] = GraphAutoEncoder

digits = load_dataset("digits")
model = GraphAutoEncoder(seed=1, hidden=32).fit(digits.graph)
first, last = model.history_[0]["loss"], model.history_[-1]["loss"]
print(f"loss {first:.3f} -> {last:.3f}, embeddings {model.transform(digits.graph).shape}")

# %% Save and load
import tempfile

folder = tempfile.mkdtemp()
model.save(folder)
same = (load_method(folder).transform(digits.graph) == model.transform(digits.graph)).all()
print(f"loaded again: {'the same embeddings' if same else 'something else'}")

# %% Score it beside an untrained baseline
for method in ("gae", "sgc"):
    score = score_method(digits, method, seeds=(42, 43)).result
    print(f"{method}: {score.test_accuracy_mean:.1f} % test accuracy with 20 labels per class")
