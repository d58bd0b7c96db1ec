"""Every setting trains and changes the result, odd graphs train, values out of range are refused."""

import math
from functools import cache

import numpy as np
import pytest
import torch

from nodejepa.config import flatten
from nodejepa.errors import ConfigError, GraphError
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, make_method
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import StepContext

# a few epochs on a toy graph may well look like a collapse
pytestmark = pytest.mark.filterwarnings("ignore::nodejepa.training.logger.CollapseWarning")

UNLABELLED = [m.name for m in METHODS.values() if m.trained and m.by_gradient and not m.supervised]
SMALL = {"encoder.hidden": 16, "predictor.hidden": 16, "patches.count": 6, "training.epochs": 2}


def small(name, preset="paper", **changes):
    known = flatten(make_method(name).config)
    settings = {key: value for key, value in SMALL.items() if key in known} | changes
    return make_method(name, preset=preset, settings=settings)


@pytest.mark.parametrize("name", UNLABELLED)
def test_a_gradient_step_lowers_the_loss(toy_graph, name):
    inputs, context = WholeGraph(toy_graph), StepContext(seed=0, epoch=60, step=0, progress=0.2)
    torch.manual_seed(0)
    task = small(name).make_task(inputs)
    before = task.losses(inputs, context)["loss"]
    before.backward()
    with torch.no_grad():
        for p in task.parameters():
            if p.grad is not None:
                p -= 0.01 * p.grad / max(p.grad.norm(), 1)
    assert task.losses(inputs, context)["loss"].item() < before.item()


KNOBS = {
    "nodejepa": [
        {"predictor.descriptors": "none"},
        {"predictor.descriptors": "degree,clustering"},
        {"predictor.kind": "attention"},
        {"variance": 0, "covariance": 0},
        {"loss.covariance_over": "dimensions"},
        {"loss.regularised": "visible"},
        {"encoder.norm": "graph"},
        {"masking.isolation": False},
        {"masking.max_neighbours": 2},
        {"loss.prediction": "l2"},
        {"loss.laplacian": 0.1},
        {"loss.sigreg_times_n": True, "loss.sigreg_nodes": 20},
        {"masking.curriculum_epochs": 0},
        {"keep": "context"},
        {"encoder.layers": 1, "predictor.layers": 1},
    ],
    "patchjepa": [{"patches.steps_per_epoch": 5}, {"patches.hops": 0}, {"loss.hyperbola": 0.0}],
    "dgi": [
        {"encoder.row_normalise": True},
        {"encoder.activate_last": True, "encoder.activation": "prelu"},
        {"encoder.norm_last": False},
        {"encoder.out_dim": 5},
        {"training.clip": None, "training.lr": 0.01},
    ],
    "graphmae": [
        {"masking.ratio": 0.8},
        {"alpha": 3},
        {"encoder.kind": "gat"},
        {"encoder.dropout": 0.5},
        {"encoder.row_normalise": True},
    ],
    "bgrl": [
        {"view_1.edges": 0.6},
        {"view_2.features": 0.6},
        {"predictor.hidden": 8},
        {"ema.start": 0.5, "ema.end": 0.5},
        {"encoder.norm": "batch", "encoder.row_normalise": True},
    ],
    "cca-ssg": [
        {"view.edges": 0.6},
        {"view.features": 0.0},
        {"loss.decorrelation": 0.1},
        {"loss.subsample": 20},
        {"encoder.kind": "mlp"},
    ],
}


@cache
def plain(name, graph):
    return small(name).fit(graph).transform(graph)


@pytest.mark.parametrize(
    ("name", "changes"), [(name, changes) for name in KNOBS for changes in KNOBS[name]], ids=str
)
def test_every_knob_trains_and_changes_the_result(toy_graph, name, changes):
    model = small(name, **changes).fit(toy_graph)
    assert all(math.isfinite(value) for record in model.history_ for value in record.values())
    assert not np.array_equal(plain(name, toy_graph), model.transform(toy_graph))


ODD = {
    "isolated nodes": ([0, 1], [1, 2], 30),
    "two components": ([*range(9), *range(10, 19)], [*range(1, 10), *range(11, 20)], 20),
    "no edges": ([], [], 12),
    "star": ([0] * 19, [*range(1, 20)], 20),
    "two nodes": ([0], [1], 2),
    "clique": (*np.triu_indices(10, 1), 10),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    ("name", "preset"),
    [(n, p) for n in UNLABELLED for p in ("paper", "official") if p in METHODS[n].presets],
)
def test_odd_graphs_train(name, preset, kind):
    source, target, size = ODD[kind]
    features = np.random.default_rng(0).random((size, 5))
    features[:, 0] = 1
    graph = Graph.from_edges(source, target, features=features, num_nodes=size)
    if (name, kind) == ("patchjepa", "two nodes"):
        pytest.skip("two nodes are two patches of one node each at best")
    many = {"patches.count": 64} if name == "patchjepa" else {}  # more than there are nodes
    model = small(name, preset, **many).fit(graph)
    assert all(math.isfinite(value) for record in model.history_ for value in record.values())
    assert np.isfinite(model.transform(graph)).all()


@pytest.mark.parametrize(
    ("name", "why"), [("nodejepa", "one node"), ("graphmae", "one node"), ("patchjepa", "single patch")]
)
def test_one_node_is_refused_in_plain_words(name, why):
    with pytest.raises(GraphError, match=why):
        small(name).fit(Graph.from_edges([], [], features=[[1.0]], num_nodes=1))


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("nodejepa", {"masking.hop": 2}, r"'masking.hop' is unknown.*Did you mean masking.hops"),
        (
            "nodejepa",
            {"predictor.kind": "attention", "predictor.descriptors": "none"},
            "asks with descriptors",
        ),
        ("nodejepa", {"masking.max_neighbours": 0}, r"masking\.max_neighbours is 0"),
        (
            "patchjepa",
            {"patches.encode": "patch", "loss.sigreg_on": "nodes"},
            r"only the patches of a step are encoded.*context. or .pooled-context.",
        ),
        ("dgi", {"encoder.dropout": 1.0}, "encoder.dropout"),
        ("dgi", {"encoder.out_dim": 0}, "encoder.out_dim"),
        ("graphmae", {"masking.ratio": 1.0}, "masking.ratio"),
        ("graphmae", {"alpha": 0.5}, "alpha"),
        ("graphmae", {"encoder.kind": "sagee"}, "encoder.kind"),
        ("bgrl", {"view_1.edges": 1.1}, "edges"),
        ("bgrl", {"predictor.hidden": 0}, "predictor.hidden"),
        ("cca-ssg", {"loss.subsample": 1}, "loss.subsample"),
        ("cca-ssg", {"loss.decorrelation": -1}, "loss.decorrelation"),
        ("cca-ssg", {"training.patience": 0}, "training.patience"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(name, changes, why):
    with pytest.raises(ConfigError, match=why):
        make_method(name, settings=changes)
