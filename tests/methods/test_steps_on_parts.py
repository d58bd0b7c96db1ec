"""A step on a part is the step on a graph of its own: what a task does depends on what it is handed only."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.config import override
from nodejepa.data import Split
from nodejepa.graph import Graph
from nodejepa.methods import METHODS
from nodejepa.methods.bgrl import BGRLTask
from nodejepa.methods.ccassg import CCASSGTask
from nodejepa.methods.dgi import DGITask
from nodejepa.methods.graphmae import GraphMAETask
from nodejepa.methods.nodejepa import NodeJEPATask
from nodejepa.methods.patchjepa import PatchJEPAConfig, PatchJEPATask
from nodejepa.methods.supervised import Classifier, ClassifierTask, supervise
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import StepContext

CONTEXT = StepContext(seed=0, epoch=60, step=0, progress=0.2)
TASKS = {
    "nodejepa": NodeJEPATask,
    "dgi": DGITask,
    "graphmae": GraphMAETask,
    "bgrl": BGRLTask,
    "cca-ssg": CCASSGTask,
}
NODES = np.array([*range(5, 30), *range(60, 65)], dtype=np.int32)  # both ends of the component


def graph_of(sparse):
    """70 nodes in no particular order of components; ``NODES`` are joined among themselves only."""
    rng = np.random.default_rng(0)
    inside = NODES[rng.integers(0, len(NODES), (2, 120))]
    others = np.setdiff1d(np.arange(70), NODES)
    outside = others[rng.integers(0, len(others), (2, 120))]
    x = rng.random((70, 40)) * (rng.random((70, 40)) < (0.1 if sparse else 0.8))
    source, target = np.hstack([inside, outside])
    return Graph.from_edges(source, target, features=sp.csr_array(x) if sparse else x, num_nodes=70)


def own_graph(graph):
    return Graph(graph.adjacency[NODES][:, NODES], graph.features[NODES])


def assert_same_step(task, twin, part, alone):
    """The same weights and, of the constants, the rows of the part's nodes."""
    twin.load_state_dict(task.state_dict())
    for name in ("descriptors", "feature_squares", "train_codes"):
        if hasattr(task, name):
            setattr(twin, name, part.take(getattr(task, name)))
    mine, wanted = task.losses(part, CONTEXT), twin.losses(alone, CONTEXT)
    assert mine.keys() == wanted.keys()
    for name, term in mine.items():
        assert term.isfinite()
        assert term.equal(wanted[name]), name
    assert task.embed(part).equal(twin.embed(alone))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("preset", ["paper", "official"])
@pytest.mark.parametrize("name", TASKS)
def test_a_component_is_a_graph_of_its_own(name, preset, sparse):
    if preset not in METHODS[name].presets:
        pytest.skip(f"{name} has no preset {preset}")
    config = override(METHODS[name].preset(preset), {"encoder.hidden": 16, "encoder.dropout": 0.0}
                      if name != "nodejepa" else {"encoder.hidden": 16})  # fmt: skip
    graph = graph_of(sparse)
    whole, alone = WholeGraph(graph), WholeGraph(own_graph(graph))
    torch.manual_seed(0)
    task, twin = TASKS[name](whole, config), TASKS[name](alone, config)
    assert_same_step(task, twin, whole.induced([NODES]), alone)


def test_a_classifier_reads_the_labels_of_the_part():
    graph, labels = graph_of(False), np.arange(70) % 2
    split = Split("hand", 0, [0, 1, 7, 8, 61], [2, 3, 9, 10], [40])
    whole, alone = WholeGraph(graph), WholeGraph(own_graph(graph))
    shown = supervise(labels, split, 70, "test")
    torch.manual_seed(0)
    task, twin = (
        ClassifierTask(inputs, Classifier(GCN(40, hidden=16), 2), shown) for inputs in (whole, whole)
    )
    assert_same_step(task, twin, whole.induced([NODES]), alone)
    part = whole.induced([np.array([0, 1, 2, 3], dtype=np.int32)])
    assert task.losses(part, CONTEXT)["loss"].isfinite()
    assert task.validate(part)["val_accuracy"] in (0, 50, 100)


def test_patches_on_a_part_are_cut_to_it(monkeypatch):
    graph = graph_of(False)
    whole = WholeGraph(graph)
    torch.manual_seed(0)
    alone = {"patches.encode": "patch", "loss.sigreg_on": "context"}
    small = {"encoder.hidden": 16, "patches.count": 8}
    task = PatchJEPATask(whole, override(PatchJEPAConfig(), small | alone))
    everything = whole.induced([np.arange(70, dtype=np.int32)])
    for name, term in task.losses(everything, CONTEXT).items():
        assert term.equal(task.losses(whole, CONTEXT)[name])
    part, seen = whole.induced([NODES]), []
    original = type(part).induced
    monkeypatch.setattr(
        type(part), "induced", lambda self, lists: seen.append(lists) or original(self, lists)
    )
    assert all(term.isfinite() for term in task.losses(part, CONTEXT).values())
    allowed = [set(task.patches.expanded(p)) & set(NODES) for p in task.patches.with_core_in(NODES)]
    drawn = [set(part.nodes[rows]) for lists in seen for rows in lists]
    assert drawn
    assert all(nodes in allowed for nodes in drawn)
    pooled = PatchJEPATask(whole, override(PatchJEPAConfig(), small))
    for name, term in pooled.losses(everything, CONTEXT).items():
        assert term.equal(pooled.losses(whole, CONTEXT)[name])
    assert all(term.isfinite() for term in pooled.losses(part, CONTEXT).values())
