"""The baselines: each step equals a dense twin or PyG's layers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.nn import functional

import reference.objectives as reference
from nodejepa.config import override
from nodejepa.graph import Graph
from nodejepa.masking.augment import drop_edges, drop_feature_columns
from nodejepa.methods import make_method
from nodejepa.methods.bgrl import BGRL, BGRLConfig, BGRLTask
from nodejepa.methods.ccassg import CCASSG, CCASSGConfig, CCASSGTask
from nodejepa.methods.dgi import DGI, DGIConfig, DGITask
from nodejepa.methods.graphmae import GraphMAE, GraphMAEConfig, GraphMAETask
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import StepContext
from reference.encoders import assert_same_gradients, encode, pyg_gcn
from reference.matrices import dense, edge_index, features, propagation_tensor

CONTEXT = StepContext(seed=0, epoch=3, step=0, progress=0.2)
TASKS = {
    DGI: (DGITask, DGIConfig()),
    GraphMAE: (GraphMAETask, GraphMAEConfig()),
    BGRL: (BGRLTask, BGRLConfig()),
    CCASSG: (CCASSGTask, CCASSGConfig()),
}
EVERY = pytest.mark.parametrize("method", TASKS, ids=lambda method: method.name)


def make_task(method, graph, **changes):
    torch.manual_seed(0)
    (kind, config), inputs = TASKS[method], WholeGraph(graph)
    task = kind(inputs, override(config, {"encoder.hidden": 16} | changes))
    task.inputs = inputs  # what its steps are handed here
    return task


def graph_with(columns, *, sparse=False):
    """50 nodes, the last three without edges, one without features; narrow or wide, dense or sparse."""
    rng = np.random.default_rng(1)
    x = rng.random((50, columns)) * (rng.random((50, columns)) < (0.1 if sparse else 0.8))
    x[4] = 0
    source, target = rng.integers(0, 47, (2, 120))
    return Graph.from_edges(source, target, features=sp.csr_array(x) if sparse else x, num_nodes=50)


GRAPHS = {"narrow": graph_with(8), "wide": graph_with(40), "sparse": graph_with(60, sparse=True)}
LAYOUTS = pytest.mark.parametrize("layout", GRAPHS)


def naive_views(task, configs):
    """Edited copies of X and a new edge list for each view, from the same random numbers."""
    graph, generator = task.inputs.graph, CONTEXT.numpy("mask")
    for config in configs:
        adjacency = drop_edges(graph.adjacency, config.edges, generator)
        keep = torch.from_numpy(drop_feature_columns(graph.num_features, config.features, generator))
        yield features(graph) * keep, adjacency


def naive_dgi(task):
    graph, x = task.inputs.graph, features(task.inputs.graph)
    edges = edge_index(graph.adjacency)
    real = pyg_gcn(task.encoder, x, edges)
    order = CONTEXT.numpy("mask").permutation(graph.num_nodes)
    corrupted = pyg_gcn(task.encoder, x[order], edges)
    summary = task.discriminator @ real.mean(dim=0).sigmoid()
    logits = torch.cat([real, corrupted]) @ summary
    labels = torch.cat([torch.ones(len(x)), torch.zeros(len(x))])
    return functional.binary_cross_entropy_with_logits(logits, labels)


def naive_bgrl(task):
    views = list(naive_views(task, (task.config.view_1, task.config.view_2)))
    q1, q2 = (task.predictor(pyg_gcn(task.encoder, x, edge_index(a))) for x, a in views)
    y1, y2 = (pyg_gcn(task.target_encoder, x, edge_index(a)).detach() for x, a in views)
    return reference.bootstrap((q1, q2), (y1, y2))


def naive_cca(task):
    views = naive_views(task, (task.config.view, task.config.view))
    z1, z2 = (pyg_gcn(task.encoder, x, edge_index(a)) for x, a in views)
    invariance, decorrelation = reference.cca(z1, z2)
    return invariance + task.config.loss.decorrelation * decorrelation


def naive_graphmae(task):
    """Masked rows of X are overwritten, embeddings of masked nodes overwritten again, all decoded."""
    graph = task.inputs.graph
    x, masked = features(graph), torch.from_numpy(task._mask(graph.num_nodes, CONTEXT.numpy("mask")))
    h = encode(task.encoder, torch.where(masked[:, None], task.token, x), graph.adjacency)
    h = torch.where(masked[:, None], torch.zeros(()), task.decoder.bridge(h))
    weight, bias = task.decoder.weight[:-1], task.decoder.weight[-1]
    guess = propagation_tensor(graph.adjacency) @ h @ weight + bias
    return ((1 - functional.cosine_similarity(x[masked], guess[masked])) ** task.config.alpha).mean()


TWINS = {DGI: naive_dgi, GraphMAE: naive_graphmae, BGRL: naive_bgrl, CCASSG: naive_cca}


def assert_equal_steps(task, naive):
    mine, wanted = task.losses(task.inputs, CONTEXT)["loss"], naive(task)
    torch.testing.assert_close(mine, wanted, atol=1e-5, rtol=1e-4)
    leaves = [p for p in task.parameters() if p.requires_grad]
    assert_same_gradients(mine, wanted, leaves, atol=5e-5, rtol=2e-3)


@LAYOUTS
@EVERY
def test_a_step_equals_the_naive_one_with_gradients(method, layout):
    task = make_task(method, GRAPHS[layout])
    with torch.no_grad():
        for p in task.parameters():  # nothing may hide behind a zero: biases, tokens, equal twins
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel()))
    assert_equal_steps(task, TWINS[method])


def test_subsampled_rows_are_those_of_the_whole():
    graph = GRAPHS["wide"]
    task = make_task(CCASSG, graph, **{"loss.subsample": 20})
    views = list(naive_views(task, (task.config.view, task.config.view)))
    generator = CONTEXT.numpy("mask")
    for _ in range(2):
        drop_edges(graph.adjacency, 0.2, generator)
        drop_feature_columns(graph.num_features, 0.2, generator)
    rows = task._sample(graph.num_nodes, generator)
    assert rows.sum() == 20
    z1, z2 = (encode(task.encoder, x, a)[rows] for x, a in views)
    torch.testing.assert_close(task.losses(task.inputs, CONTEXT)["invariance"], reference.cca(z1, z2)[0])


def test_the_target_of_bgrl_follows_along_a_cosine(toy_graph):
    task = make_task(BGRL, toy_graph, **{"ema.start": 0.99, "ema.end": 1.0})
    with torch.no_grad():
        for p in task.encoder.parameters():
            p += 1
    for progress, share in ((0.0, 0.01), (0.5, 0.005), (1.0, 0.0)):
        before = [p.clone() for p in task.target_encoder.parameters()]
        task.after_step(progress)
        for old, new, online in zip(
            before, task.target_encoder.parameters(), task.encoder.parameters(), strict=True
        ):
            torch.testing.assert_close(new, old + share * (online - old))


@pytest.mark.filterwarnings("ignore::nodejepa.training.logger.CollapseWarning")  # one epoch says nothing
@pytest.mark.parametrize(
    ("method", "dataset"),
    [(DGI, "photo"), (GraphMAE, "photo"), (BGRL, "photo"), (CCASSG, "photo"), (CCASSG, "cs")],
)
def test_transform_sees_what_training_saw(method, dataset):
    """Input scaling and normalisation are the encoder's own, also after a round trip."""
    graph = GRAPHS["sparse"]
    model = method(preset=method.presets[-1], dataset=dataset, seed=0, epochs=1, **{"encoder.hidden": 16})
    seen = []
    original = model.trained_encoder
    model.trained_encoder = lambda task: seen.append(task) or original(task)
    model.fit(graph)
    with torch.no_grad():
        wanted = seen[0].embed(WholeGraph(graph)).numpy()
    np.testing.assert_array_equal(model.transform(graph), wanted)


# ---------------------------------------------------------------- hops


def some_graph(*, sparse: bool) -> Graph:
    rng = np.random.default_rng(0)
    x = rng.random((40, 12)) * (rng.random((40, 12)) < 0.3)
    edges = rng.integers(0, 38, (2, 90))  # two nodes stay alone
    return Graph.from_edges(*edges, features=sp.csr_array(x) if sparse else x, num_nodes=40)


def by_hand(graph, name):
    x, s = dense(graph.features).astype(np.float64), graph.normalized_adjacency.toarray().astype(np.float64)
    if name == "walk":
        walked = x
        for _ in range(10):
            walked = 0.15 * x + 0.85 * s @ walked
        return walked
    return sum(hop / np.sqrt(np.mean(np.sum(hop**2, axis=1))) for hop in (x, s @ x, s @ s @ x))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["walk", "equal-hops"])
def test_hops_are_added_as_the_equation_says(name, sparse):
    graph = some_graph(sparse=sparse)
    found = dense(make_method(name).fit_transform(graph))
    np.testing.assert_allclose(found, by_hand(graph, name), atol=1e-5)
