"""The figures that ``compare`` and its page quote are those of the committed records; so is the table."""

from __future__ import annotations

from pathlib import Path

from benchmarks import recommendation as study

from nodejepa.methods import UNTRAINED
from nodejepa.workflow import recommend

ROOT = Path(__file__).parents[2]


def right(rule):
    return sum(loss <= recommend.POINT for loss in study.losses(rule, study.read()))


def test_the_table_is_rebuilt_byte_for_byte():
    committed = (study.STUDY / "recommendation.md").read_text(encoding="utf-8")
    assert study.render(study.read()) == committed


def test_every_method_was_measured_on_every_graph():
    graphs = study.read()
    assert set(graphs) == set(study.GRAPHS)
    for rows in graphs.values():
        assert [row.method for row in rows] == ["linear-jepa", *UNTRAINED]
        assert all(row.problem is None and len(row.accuracy) == 5 for row in rows)


def test_the_quoted_figures_are_those_of_the_records():
    assert len(study.read()) == recommend.GRAPHS
    assert right(study.without_labels) == recommend.DEFAULT_RIGHT
    assert max(right(rule) for rule in study.SCORES.values()) == recommend.BEST_RULE_RIGHT
    page = (ROOT / "docs" / "which-method.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"with the untrained baselines on {recommend.GRAPHS} graphs" in page
    assert recommend.DEFAULT_RIGHT == recommend.GRAPHS
    assert f"On all {recommend.GRAPHS} graphs `linear-jepa` was at most one point below" in page
    assert f"within a point on {recommend.BEST_RULE_RIGHT} graphs" in page


def test_no_score_is_recommended_by_that_does_worse_than_the_default():
    """Whoever finds a better rule has to change ``recommend``; this says when."""
    best = max(right(rule) for rule in study.SCORES.values())
    assert best < right(study.ALWAYS[f"always {recommend.DEFAULT}"])


def test_the_rules_pick_as_they_are_called():
    rows = [
        study.Row("linear-jepa", links_auc=0.5, links_mrr=0.1, features=0.3),
        study.Row("raw", links_auc=0.1, links_mrr=0.2, features=0.9),
        study.Row("sgc", links_auc=0.9, links_mrr=0.3, features=0.5),
    ]
    picks = {name: rule(rows) for name, rule in study.SCORES.items()}
    assert list(picks.values()) == ["sgc", "sgc", "raw", "sgc", "sgc"]
    assert study.without_labels(rows) == "linear-jepa"
    scored = [study.Row(name, accuracy=(value,)) for name, value in (("raw", 60.0), ("sgc", 61.5))]
    assert study.losses(lambda _: "raw", {"one": scored}) == [1.5]
