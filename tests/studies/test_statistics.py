"""Statistics equal SciPy's and hand-computed ones; what cannot be said is None, never NaN or a warning."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from studies.render.frame import means_on_shared_seeds
from studies.render.statistics import average_ranks, compare, holm, outcome

from nodejepa.report.sections import Summary, summarise

OURS = pd.Series({42: 87.1, 43: 88.4, 44: 86.9, 45: 88.0, 46: 87.7})
THEIRS = pd.Series({42: 86.0, 43: 86.9, 44: 86.2, 45: 85.1, 46: 86.6})
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
    found = compare(OURS, THEIRS[::-1])
    gaps = OURS - THEIRS
    error = gaps.std() / math.sqrt(5)
    reach = 2.776445105 * error  # Student's t, four degrees of freedom
    assert (found.test, found.n) == ("paired", (5, 5))
    assert found.difference == pytest.approx(1.46)
    assert (found.low, found.high) == pytest.approx((1.46 - reach, 1.46 + reach))
    assert found.p == pytest.approx(2 * stats.t.sf(1.46 / error, 4), rel=1e-10)


def test_welch_is_scipys_when_seeds_differ():
    theirs = pd.Series({42: 86.0, 43: 86.9, 47: 84.0})
    found = compare(OURS, theirs)
    expected = stats.ttest_ind(OURS, theirs, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert (found.test, found.n) == ("Welch", (5, 3))
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


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
    found = compare(pd.Series(ours), pd.Series(theirs))
    assert (found.p, found.low) == (p, low)
    assert found.difference == pytest.approx(
        sum(ours.values()) / len(ours) - sum(theirs.values()) / len(theirs), abs=1e-9
    )


def test_nothing_to_compare():
    assert compare(None, OURS) is compare(OURS, None) is compare(OURS[:0], OURS) is None


def test_means_are_over_the_seeds_that_all_have():
    values = {"a": pd.Series({1: 10.0, 2: 30.0}), "b": pd.Series({1: 12.0})}
    assert means_on_shared_seeds(values) == {"a": 10.0, "b": 12.0}
    assert means_on_shared_seeds({**values, "c": pd.Series({7: 1.0})}) == {}
    assert means_on_shared_seeds({**values, "c": None}) == means_on_shared_seeds({}) == {}


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
