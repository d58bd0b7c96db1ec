"""Where batches come from, who sums with whom, what is watched: the loop asks, and takes what it is given."""

import numpy as np
import pytest
import torch

from nodejepa.graph import Graph
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.objectives.cca import cca_terms
from nodejepa.objectives.infomax import infomax_loss
from nodejepa.objectives.sigreg import sigreg
from nodejepa.objectives.vicreg import covariance_matrix
from nodejepa.training.batches import Source, Whole
from nodejepa.training.group import Group
from nodejepa.training.loop import train
from nodejepa.training.task import StepContext, Task, TrainingConfig


class Twins(Group):
    """As if a second unit had the same rows."""

    def rows(self, h):
        return 2 * len(h)

    def sum(self, x):
        return 2 * x

    def mean(self, h):
        return h.mean(dim=0)

    def average(self, term, rows):  # noqa: ARG002
        return term


class Halves(Source):
    """The first half of the nodes in even steps, the second in odd ones."""

    def batch(self, context):
        size = self.whole.num_nodes
        nodes = np.arange(size, dtype=np.int32).reshape(2, -1)[context.step % 2]
        return self.whole.induced([nodes])


class Recording(Task):
    def __init__(self, columns):
        super().__init__()
        self.encoder = GCN(columns, hidden=16, layers=2)
        self.handed, self.asked = [], []

    def losses(self, inputs, context):
        self.handed.append((context, inputs))
        return {"loss": self.encoder(inputs).square().mean() * inputs.num_nodes}

    def embed(self, inputs, rows=None):
        self.asked.append(rows)
        return super().embed(inputs, rows)


def inputs_of(size):
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, size, (2, 3 * size))
    return WholeGraph(Graph.from_edges(source, target, features=rng.random((size, 4)), num_nodes=size))


def test_a_step_trains_on_what_the_source_hands_it():
    source = Halves(inputs_of(80), steps_per_epoch=2)
    task = Recording(4)
    train(task, source, TrainingConfig(epochs=3), seed=5)
    assert [(m.seed, m.epoch, m.step) for m, _ in task.handed] == [
        (5, e, s) for e in range(3) for s in (0, 1)
    ]
    for context, inputs in task.handed:
        np.testing.assert_array_equal(inputs.nodes, np.arange(40) + 40 * context.step)


def test_the_watch_asks_for_the_rows_it_looks_at():
    """An even sample, a little more than 4,096 nodes; small graphs are looked at in whole."""
    for size in (80, 9000):
        task, inputs = Recording(4), inputs_of(size)
        history = train(task, Whole(inputs), TrainingConfig(epochs=1), seed=0)
        (rows,) = task.asked
        if size == 80:
            assert rows is None
        else:
            assert np.flatnonzero(rows).tolist() == list(range(0, 9000, 2))
            z = task.encoder(inputs).detach()[::2]
            std = z.numpy().astype(np.float64).std(axis=0).mean()
            assert history[-1]["mean_std"] == pytest.approx(std)


def gaussian(z, group=None):
    arguments = {} if group is None else {"group": group}
    return sigreg(
        z, StepContext(0, 0, 0, 0.0).torch("noise"), slices=8, max_nodes=None, times_n=True, **arguments
    )


@pytest.mark.parametrize("statistic", [covariance_matrix, gaussian], ids=["covariance", "sigreg"])
def test_statistics_and_their_gradients_are_those_of_all_rows(statistic):
    z = torch.randn(30, 6, generator=torch.Generator().manual_seed(0), requires_grad=True)
    both = torch.cat([z.detach(), z.detach()]).requires_grad_()
    mine, wanted = statistic(z, Twins()), statistic(both)
    torch.testing.assert_close(mine, wanted)
    assert not torch.allclose(mine, statistic(z))
    (gradient,) = torch.autograd.grad((mine * mine).sum(), z)
    (all_gradients,) = torch.autograd.grad((wanted * wanted).sum(), both)
    torch.testing.assert_close(gradient, all_gradients[:30], atol=1e-5, rtol=1e-4)


def test_losses_of_views_and_summaries_are_those_of_all_rows():
    generator = torch.Generator().manual_seed(0)
    one, two = torch.randn(2, 30, 6, generator=generator)
    doubled = [torch.cat([z, z]) for z in (one, two)]
    for mine, wanted in zip(cca_terms(one, two, Twins()), cca_terms(*doubled), strict=True):
        torch.testing.assert_close(mine, wanted)
    weight = torch.randn(6, 6, generator=generator)
    torch.testing.assert_close(infomax_loss(one, two, weight, Twins()), infomax_loss(*doubled, weight))
