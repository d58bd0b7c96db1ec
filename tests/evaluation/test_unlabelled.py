"""Scores without labels: what is hidden is hidden, and each score is that of its definition, written out."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from nodejepa.evaluation.unlabelled import (
    NEIGHBOURS,
    SHARE,
    HeldOut,
    common_neighbours,
    score_held_out,
)
from nodejepa.graph import Graph
from reference.matrices import dense


def random_graph(nodes=60, columns=8, *, seed=0, sparse=False, direction="symmetrize", weights=False):
    rng = np.random.default_rng(seed)
    x = rng.random((nodes, columns)) * (rng.random((nodes, columns)) < 0.5)
    source, target = rng.integers(0, nodes, (2, 4 * nodes))
    return Graph.from_edges(
        source,
        target,
        features=sp.csr_array(x) if sparse else x,
        num_nodes=nodes,
        weights=rng.integers(1, 4, 4 * nodes) if weights else None,
        direction=direction,
    )


def edge_set(graph):
    source, target, weight = graph.edge_arrays()
    return {(a, b): w for a, b, w in zip(source.tolist(), target.tolist(), weight.tolist(), strict=True)}


# ------------------------------------------------------------------ what is hidden


@pytest.mark.parametrize("direction", ["symmetrize", "keep"])
@pytest.mark.parametrize("weights", [False, True])
def test_links_are_gone_in_all_directions_and_nothing_else_is(direction, weights):
    graph = random_graph(direction=direction, weights=weights)
    held = HeldOut.of(graph)
    before, after = edge_set(graph), edge_set(held.graph)
    gone = before.keys() - after.keys()
    taken = {tuple(link) for link in held.links.tolist()}
    if direction == "symmetrize":
        taken |= {(b, a) for a, b in taken}
        assert len(gone) == 2 * np.ceil(SHARE * len(before) / 2)
    else:
        assert len(gone) == np.ceil(SHARE * len(before))
    assert gone == taken
    assert {pair: before[pair] for pair in after} == after
    assert held.graph.directed == graph.directed
    assert held.graph.num_nodes == graph.num_nodes


@pytest.mark.parametrize("sparse", [False, True])
def test_half_of_the_columns_are_hidden_and_the_others_shown(sparse):
    graph = random_graph(columns=7, sparse=sparse)
    held = HeldOut.of(graph)
    assert (held.graph.num_features, held.hidden.shape[1]) == (4, 3)
    whole, shown, hidden = (
        np.asarray(m.todense() if sparse else m) for m in (graph.features, held.graph.features, held.hidden)
    )
    columns = {tuple(c) for c in whole.T.tolist()}
    assert columns == {tuple(c) for c in shown.T.tolist()} | {tuple(c) for c in hidden.T.tolist()}


def test_strangers_are_not_linked_and_have_the_degrees_of_linked_nodes():
    hub = Graph.from_edges(
        np.zeros(300, dtype=int), np.arange(1, 301), features=np.ones((302, 2)), num_nodes=302
    )
    graph = random_graph(400, seed=2)
    for one in (hub, graph):
        held = HeldOut.of(one)
        linked = edge_set(one)
        for (node, _), others in zip(held.links.tolist(), held.strangers.tolist(), strict=True):
            for other in others:
                assert other < 0 or ((node, other) not in linked and node != other)
    assert (HeldOut.of(hub).strangers != 301).all()  # nobody's neighbour: never the end of a link
    degrees = np.diff(graph.adjacency.indptr)
    held = HeldOut.of(graph)
    assert degrees[held.strangers].mean() == pytest.approx(degrees[held.links].mean(), rel=0.1)
    assert degrees[held.strangers].mean() > degrees.mean() * 1.05


def test_same_seed_same_hiding():
    graph = random_graph()
    first, again, other = (HeldOut.of(graph, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.links, again.links)
    np.testing.assert_array_equal(first.strangers, again.strangers)
    assert first.graph.content_hash == again.graph.content_hash != other.graph.content_hash


# ------------------------------------------------------------------ scores


@pytest.mark.parametrize("sparse", [False, True])
def test_all_scores_equal_their_definitions(sparse):
    graph = random_graph(80, seed=4, sparse=sparse)
    held = HeldOut.of(graph)
    z = (
        np.random.default_rng(5).normal(size=(80, 6)).round(1).astype(np.float32) + 3
    )  # ties, and a large mean
    found = score_held_out(sp.csr_array(z) if sparse else z, held)
    auc, mrr = naive_links(z, held)
    assert found.links_auc == pytest.approx(auc, abs=1e-6)
    assert found.links_mrr == pytest.approx(mrr, abs=1e-6)
    assert found.features == pytest.approx(naive_features(z, held), abs=1e-5)
    assert found.stability is None


def cosines(z):
    z = z.astype(np.float64) - z.mean(axis=0, dtype=np.float64).astype(np.float32)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return z @ z.T


def naive_links(z, held):
    near, wins, places = cosines(z), [], []
    for (node, other), strangers in zip(held.links, held.strangers, strict=True):
        real = [s for s in strangers if s >= 0]
        ahead = [near[node, s] - near[node, other] for s in real]
        lost = sum(1.0 if lead > 1e-12 else 0.5 * (abs(lead) <= 1e-12) for lead in ahead)
        wins.append(1 - lost / len(real))
        places.append(1 / (1 + lost))
    return np.mean(wins), np.mean(places)


def naive_features(z, held):
    hidden = dense(held.hidden)
    near, average, values = cosines(z), hidden.mean(axis=0), []
    for node in held.asked:
        others = sorted((i for i in range(len(z)) if i != node), key=lambda i: -near[node, i])[:NEIGHBOURS]
        said, true = hidden[others].mean(axis=0) - average, hidden[node] - average
        size = np.linalg.norm(said) * np.linalg.norm(true)
        values.append(said @ true / size if size else 0.0)
    return np.mean(values)


def test_knowing_the_answer_scores_one_and_knowing_nothing_half_and_zero():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(10), 12)
    pairs = np.array([(a, b) for a in range(120) for b in range(a) if group[a] == group[b]])
    x = np.eye(10)[group] @ rng.normal(size=(10, 6))
    held = HeldOut.of(Graph.from_edges(pairs[:, 0], pairs[:, 1], features=x))
    known = score_held_out(np.eye(10, dtype=np.float32)[group], held)
    assert (known.links_auc, known.links_mrr) == (1.0, 1.0)
    assert known.features == pytest.approx(1.0, abs=1e-5)
    chance = score_held_out(rng.normal(size=(120, 8)).astype(np.float32), held)
    assert chance.links_auc == pytest.approx(0.5, abs=0.1)
    assert abs(chance.features) < 0.2


def test_stability_is_the_share_of_common_neighbours():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 4)).astype(np.float32)
    turned = z @ np.linalg.qr(rng.normal(size=(4, 4)))[0].astype(np.float32)
    assert common_neighbours(z, turned, np.arange(50)) == 1.0
    other = rng.normal(size=(50, 4)).astype(np.float32)
    near = [np.argsort(-(cosines(m) - 9 * np.eye(50)), axis=1)[:, :NEIGHBOURS] for m in (z, other)]
    wanted = np.mean([len(set(a) & set(b)) / NEIGHBOURS for a, b in zip(*near, strict=True)])
    assert common_neighbours(z, other, np.arange(50)) == pytest.approx(wanted)
    scores = score_held_out(z, HeldOut.of(random_graph(50))).with_stability(z, other)
    assert scores.stability == pytest.approx(wanted)


def test_where_nothing_can_be_asked_nothing_is_said():
    lonely = Graph.from_edges([], [], features=np.ones((5, 1)), num_nodes=5)
    found = score_held_out(np.eye(5, dtype=np.float32), HeldOut.of(lonely))
    assert (found.links_auc, found.links_mrr, found.features) == (None, None, None)
    complete = Graph.from_edges(*np.triu_indices(6, k=1), features=np.eye(6))
    held = HeldOut.of(complete)
    assert (held.strangers == -1).all()
    assert score_held_out(np.eye(6, dtype=np.float32), held).links_auc is None


def test_links_that_the_features_know_are_not_asked_for():
    rng = np.random.default_rng(0)
    graph = replace(Graph.from_edges(*rng.integers(0, 50, (2, 200)), features=np.eye(50)), incomparable=True)
    held = HeldOut.of(graph)
    assert (held.graph.adjacency != graph.adjacency).nnz == 0
    found = score_held_out(rng.normal(size=(50, 8)).astype(np.float32), held)
    assert (found.links_auc, found.links_mrr) == (None, None)
    assert found.features is not None
