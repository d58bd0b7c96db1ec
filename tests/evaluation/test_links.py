"""Link prediction: hidden links are hidden, scores are those of their definitions, known ones are no news."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from nodejepa import (
    LinearJEPA,
    diagnose,
    embeddings_frame,
    likely_links,
    linear_probe,
    load_graph,
    nearest_neighbours,
    score_links,
    score_pairs,
    split_links,
)
from nodejepa.errors import DataError, EvaluationError, GraphError
from nodejepa.graph import Graph
from nodejepa.tables import write_embeddings


def random_graph(nodes=60, *, seed=0, direction="symmetrize", weights=False, ids=None):
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, nodes, (2, 4 * nodes))
    return Graph.from_edges(
        source,
        target,
        features=rng.random((nodes, 8)),
        num_nodes=nodes,
        weights=rng.integers(1, 4, 4 * nodes) if weights else None,
        node_ids=ids,
        direction=direction,
    )


def edge_set(graph):
    source, target, weight = graph.edge_arrays()
    return {(a, b): w for a, b, w in zip(source.tolist(), target.tolist(), weight.tolist(), strict=True)}


# ------------------------------------------------------------------ what is hidden


@pytest.mark.parametrize("direction", ["symmetrize", "keep"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_links_are_gone_in_all_directions_and_nothing_else_is(direction, weights, share):
    graph = random_graph(direction=direction, weights=weights, ids=np.array([f"n{i}" for i in range(60)]))
    split = split_links(graph, share=share)
    before, after = edge_set(graph), edge_set(split.graph)
    gone = before.keys() - after.keys()
    taken = {tuple(link) for link in split.links.tolist()}
    if direction == "symmetrize":
        taken |= {(b, a) for a, b in taken}
        assert len(gone) == 2 * np.ceil(share * len(before) / 2)
    else:
        assert len(gone) == np.ceil(share * len(before))
    assert gone == taken
    assert {pair: before[pair] for pair in after} == after
    assert split.graph.directed == graph.directed
    np.testing.assert_array_equal(split.graph.features, graph.features)
    np.testing.assert_array_equal(split.graph.node_ids, graph.node_ids)


def test_negatives_are_not_linked_and_have_the_degrees_of_linked_nodes():
    hub = Graph.from_edges(np.zeros(300, dtype=int), np.arange(1, 301), num_nodes=302)
    graph = random_graph(400, seed=2)
    for one in (hub, graph):
        split, linked = split_links(one), edge_set(one)
        for (node, _), others in zip(split.links.tolist(), split.negatives.tolist(), strict=True):
            for other in others:
                assert other < 0 or ((node, other) not in linked and node != other)
    assert (split_links(hub).negatives != 301).all()  # nobody's neighbour: never the end of a link
    degrees, split = np.diff(graph.adjacency.indptr), split_links(graph)
    assert degrees[split.negatives].mean() == pytest.approx(degrees[split.links].mean(), rel=0.1)
    assert degrees[split.negatives].mean() > degrees.mean() * 1.05


def test_same_seed_same_hiding():
    first, again, other = (split_links(random_graph(), seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.links, again.links)
    np.testing.assert_array_equal(first.negatives, again.negatives)
    assert first.graph.content_hash == again.graph.content_hash != other.graph.content_hash


# ------------------------------------------------------------------ scores


def cosines(z):
    z = z.astype(np.float64) - z.mean(axis=0, dtype=np.float64).astype(np.float32)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return z @ z.T


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_equal_their_definitions(sparse):
    split = split_links(random_graph(80, seed=4))
    z = np.random.default_rng(5).normal(size=(80, 6)).round(1).astype(np.float32) + 3  # ties, a large mean
    near, wins, places = cosines(z), [], []
    for (node, other), negatives in zip(split.links, split.negatives, strict=True):
        ahead = [near[node, n] - near[node, other] for n in negatives if n >= 0]
        lost = sum(1.0 if lead > 1e-12 else 0.5 * (abs(lead) <= 1e-12) for lead in ahead)
        wins.append(1 - lost / len(ahead))
        places.append(1 / (1 + lost))
    given = sp.csr_array(z) if sparse else z
    found = score_links(given, split)
    assert found.auc == pytest.approx(np.mean(wins), abs=1e-6)
    assert found.mrr == pytest.approx(np.mean(places), abs=1e-6)
    pairs = [(0, 1), (7, 3), (5, 5)]
    np.testing.assert_allclose(score_pairs(given, pairs), [near[a, b] for a, b in pairs], atol=1e-6)


@pytest.mark.slow
def test_knowing_the_groups_scores_one_and_knowing_nothing_half():
    group = np.repeat(np.arange(10), 12)
    pairs = np.array([(a, b) for a in range(120) for b in range(a) if group[a] == group[b]])
    split = split_links(Graph.from_edges(pairs[:, 0], pairs[:, 1]))
    known = score_links(np.eye(10, dtype=np.float32)[group], split)
    assert (known.auc, known.mrr) == (1.0, 1.0)
    chance = score_links(np.random.default_rng(0).normal(size=(120, 8)), split)
    assert chance.auc == pytest.approx(0.5, abs=0.1)
    learned = score_links(LinearJEPA().fit_transform(split.graph), split)
    assert learned.auc > 0.9


def test_likely_links_are_the_closest_that_are_not_linked():
    ids = np.array([f"n{i}" for i in range(60)])
    graph = random_graph(ids=ids)
    z = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    near, linked = cosines(z), {b for a, b in edge_set(graph) if a == 7}
    free = [i for i in range(60) if i != 7 and i not in linked]
    wanted = sorted(free, key=lambda i: -near[7, i])
    found = likely_links(z, graph, "n7", k=5)
    assert [name for name, _ in found] == [f"n{i}" for i in wanted[:5]]
    assert [close for _, close in found] == pytest.approx([near[7, i] for i in wanted[:5]], abs=1e-6)
    assert len(likely_links(z, graph, "n7", k=100)) == len(free)
    bare = replace(graph, node_ids=None)
    assert [row for row, _ in likely_links(z, bare, 7, k=5)] == wanted[:5]
    with pytest.raises(DataError, match="no node 'n77'"):
        likely_links(z, graph, "n77")


def test_frames_of_embeddings_are_aligned_by_their_ids():
    ids = np.array([f"n{i}" for i in range(60)])
    graph = random_graph(ids=ids)
    z = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    shuffled = embeddings_frame(graph, z).sample(frac=1, random_state=0)
    split = split_links(graph)
    near = nearest_neighbours(z, ["n7"], ids=ids, k=5).ids.tolist()
    assert likely_links(shuffled, graph, "n7") == likely_links(z, graph, "n7")
    assert score_links(shuffled, split) == score_links(z, split)
    assert nearest_neighbours(shuffled, ["n7"], ids=ids, k=5).ids.tolist() == near
    np.testing.assert_array_equal(embeddings_frame(graph, shuffled).loc[ids], z)
    foreign = shuffled.rename({"n3": "m3"})
    for ask in (
        lambda f: likely_links(f, graph, "n7"),
        lambda f: score_links(f, split),
        lambda f: nearest_neighbours(f, ["n7"], ids=ids),
        lambda f: embeddings_frame(graph, f),
    ):
        with pytest.raises(GraphError, match="no row for node 'n3'"):
            ask(foreign)


def test_columns_beside_the_coordinates_are_refused(tmp_path):
    graph = random_graph()
    labels = np.arange(60) % 2
    write_embeddings(tmp_path / "z.parquet", graph, graph.features, {"label": labels})
    read = pd.read_parquet(tmp_path / "z.parquet")
    for frame, name in ((read, "id"), (read.set_index("id"), "label")):
        for ask in (nearest_neighbours, diagnose, lambda z: linear_probe(z, labels)):
            with pytest.raises(EvaluationError, match=f"'{name}'.* no coordinates"):
                ask(frame)
    diagnose(read.set_index("id").filter(regex="^z[0-9]+$"))


def test_where_nothing_can_be_asked_nothing_is_said():
    complete = split_links(Graph.from_edges(*np.triu_indices(6, k=1)))
    assert (complete.negatives == -1).all()
    assert score_links(np.eye(6), complete) is None
    assert likely_links(np.eye(6), Graph.from_edges(*np.triu_indices(6, k=1)), 0) == []


def users_and_items(seed=0):
    """A bipartite graph in two dense groups: as it was read, and as arrays with the side of every node."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, 300) * 10
    users, items = group + rng.integers(0, 10, 300), group + rng.integers(0, 10, 300)
    read = load_graph(pd.DataFrame({"user": users, "item": items}), bipartite=True, structural=())
    side = np.array([str(name).split(":")[0] for name in read.node_ids])
    return read, replace(read, node_ids=None), side


def test_of_two_kinds_of_nodes_pairs_are_across():
    read, bare, side = users_and_items()
    as_series = pd.Series(side, index=read.node_ids)[::-1]
    for graph, given in ((read, None), (bare, side), (read, as_series)):
        split = split_links(graph, sides=given)
        drawn = split.negatives >= 0
        assert drawn.any()
        first = np.broadcast_to(side[split.links[: len(drawn), :1]], drawn.shape)
        assert (first != side[split.negatives])[drawn].all()
    z = np.random.default_rng(1).normal(size=(len(side), 4))
    near = likely_links(z, read, "user:3", k=40)
    assert near
    assert all(name.startswith("item:") for name, _ in near)
    row = read.node_ids.tolist().index("user:3")
    assert [read.node_ids[other] for other, _ in likely_links(z, bare, row, k=40, sides=side)] == [
        n for n, _ in near
    ]
    with pytest.raises(EvaluationError, match="do not part the ends"):
        split_links(bare, sides=np.zeros(len(side)))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda _: split_links(Graph.from_edges([], [], num_nodes=5)), "0 links"),
        (lambda g: split_links(g, share=1), "between 0 and 1"),
        (lambda g: split_links(replace(g, incomparable=True)), "know every link"),
        (lambda g: score_links(np.eye(5), split_links(g)), "5 rows for 60 nodes"),
        (lambda _: score_pairs(np.eye(5), [1, 2]), "two rows a pair"),
        (lambda _: score_pairs(np.eye(5), [(1, 5)]), "no row 5"),
    ],
)
def test_mistakes_are_explained(ask, said):
    with pytest.raises(EvaluationError, match=said):
        ask(random_graph())


# ---------------------------------------------------------------- the command


@pytest.mark.slow
def test_the_command_scores_hidden_links_and_lists_likely_ones(run, tmp_path):
    rng = np.random.default_rng(0)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, 20, (150, 2)).tolist() if pair[0] != pair[1]}
    pairs |= {(a + 20, b + 20) for a, b in pairs} | {(0, 20)}  # two groups and a bridge
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\n" + "".join(f"p{a},p{b}\n" for a, b in sorted(pairs)))
    said, _ = run.ok("links", "--edges", edges, "--node", "p1", "--node", "p30", "-k", "3", "--json")
    found = json.loads(said)
    assert found["hidden_links"] == np.ceil(0.1 * len(pairs))
    assert found["scores"]["auc"] > 0.6
    for name, other in (("p1", 0), ("p30", 20)):
        near = [int(row["id"][1:]) for row in found["likely"][name]]
        assert len(near) == 3
        assert all(other <= n < other + 20 for n in near)
        assert not {(min(int(name[1:]), n), max(int(name[1:]), n)) for n in near} & pairs
    said, _ = run.ok("links", "--edges", edges, "--node", "p1", "--method", "raw")
    assert "AUC" in said
    assert "Likely links of p1" in said
    assert "no node 'p99'" in run.refused("links", "--edges", edges, "--node", "p99")
