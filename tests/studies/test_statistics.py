"""Statistics equal SciPy's; what cannot be said is None, never NaN or a warning."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from studies.render.statistics import average_ranks, compare, holm, outcome, ranks

from nodejepa.report.table import Summary, summarise

OURS = {42: 87.1, 43: 88.4, 44: 86.9, 45: 88.0, 46: 87.7}
THEIRS = {42: 86.0, 43: 86.9, 44: 86.2, 45: 85.1, 46: 86.6}
scores = st.floats(min_value=0, max_value=100)


def test_mean_and_sample_deviation():
    assert summarise([1.0, 2.0, 4.0]) == Summary(7 / 3, pytest.approx(math.sqrt(7 / 3)), 3)
    assert summarise([5.0]) == Summary(5.0, None, 1)
    assert summarise([]) is None
    assert summarise([0.1] * 7) == Summary(pytest.approx(0.1), 0.0, 7)


@given(st.lists(scores, min_size=1, max_size=8), st.randoms())
def test_summary_does_not_depend_on_order(values, shuffler):
    mixed = list(values)
    shuffler.shuffle(mixed)
    assert summarise(mixed) == summarise(values)


def test_paired_test_is_scipys():
    found = compare(OURS, dict(reversed(THEIRS.items())))
    expected = stats.ttest_rel(list(OURS.values()), list(THEIRS.values()))
    interval = expected.confidence_interval(0.95)
    assert found.test == "paired"
    assert found.n == (5, 5)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.difference == pytest.approx(1.46)


def test_welch_is_scipys_when_seeds_differ():
    theirs = {42: 86.0, 43: 86.9, 47: 84.0}
    found = compare(OURS, theirs, confidence=0.9)
    expected = stats.ttest_ind(list(OURS.values()), list(theirs.values()), equal_var=False)
    interval = expected.confidence_interval(0.9)
    assert found.test == "Welch"
    assert found.n == (5, 3)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


@given(st.lists(st.tuples(scores, scores), min_size=3, max_size=6), st.booleans())
def test_any_scores_agree_with_scipy(pairs, same_seeds):
    ours = {seed: a for seed, (a, _) in enumerate(pairs)}
    theirs = {seed + (not same_seeds): b for seed, (_, b) in enumerate(pairs)}
    found = compare(ours, theirs)
    left, right = list(ours.values()), list(theirs.values())
    spreads = [[a - b for a, b in pairs]] if same_seeds else [left, right]
    if any(0 <= max(spread) - min(spread) < 1e-6 for spread in spreads):
        assert found.p is None or 0 <= found.p <= 1  # where SciPy warns of lost precision
        return
    expected = stats.ttest_rel(left, right) if same_seeds else stats.ttest_ind(left, right, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


def test_tiny_spread_does_not_divide_by_zero():
    found = compare({0: 0.0, 1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0, 3: 2.4e-89})
    assert found.p == pytest.approx(0.423, abs=1e-3)


@pytest.mark.parametrize(
    ("ours", "theirs", "p", "low"),
    [
        ({42: 80.0}, {42: 79.0}, None, None),  # one seed
        ({42: 80.0, 43: 81.0}, {42: 79.0}, None, None),  # one seed on one side
        ({42: 80.0, 43: 81.0}, {42: 80.0, 43: 81.0}, 1.0, 0.0),  # identical
        ({42: 80.1, 43: 81.1}, {42: 80.0, 43: 81.0}, None, None),  # the same difference on every seed
        ({1: 80.0, 2: 80.0}, {3: 80.0, 4: 80.0}, 1.0, 0.0),  # no spread, Welch
        ({1: 81.0, 2: 81.0}, {3: 80.0, 4: 80.0}, None, None),
    ],
)
def test_degenerate_cases(ours, theirs, p, low):
    found = compare(ours, theirs)
    assert (found.p, found.low) == (p, low)
    assert found.difference == pytest.approx(
        sum(ours.values()) / len(ours) - sum(theirs.values()) / len(theirs), abs=1e-9
    )


def test_nothing_to_compare():
    assert compare({}, {42: 80.0}) is None
    assert compare({42: 80.0}, {}) is None


def test_holm_on_a_hand_made_family():
    """Holm 1979: the smallest p times 4, the next times 3, never falling."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == [0.03, 0.06, 0.06, 0.02]
    assert holm([0.9, None, 0.8]) == [1.0, None, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(min_value=0, max_value=1), max_size=12))
def test_holm_keeps_the_order_and_never_helps(p_values):
    corrected = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, corrected, strict=True))
    assert all(q <= min(1, len(p_values) * p) for p, q in zip(p_values, corrected, strict=True))
    pairs = sorted(zip(p_values, corrected, strict=True))
    assert [q for _, q in pairs] == sorted(corrected)


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 5).map(float), min_size=1))
def test_ranks_are_scipys(scores):
    expected = stats.rankdata([-score for score in scores.values()])
    assert list(ranks(scores).values()) == list(expected)


def test_average_ranks_need_the_same_methods():
    assert average_ranks([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 2.0}]) == {"a": 1.5, "b": 1.5}
    assert average_ranks([]) == {}
    with pytest.raises(ValueError, match="same methods"):
        average_ranks([{"a": 1.0}, {"b": 1.0}])


def test_outcomes():
    assert outcome(2.0, 0.01) == "win"
    assert outcome(-2.0, 0.01) == "loss"
    assert outcome(2.0, 0.05) == "tie"
    assert outcome(2.0, None) is None
