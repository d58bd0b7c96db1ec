"""``nodejepa links``: scores of hidden links, and likely ones of a node."""

import json

import numpy as np
import pytest


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
