"""Splits: disjoint, complete, repeatable, and no class size crashes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.data.splits import Split, make_split, per_class_split, random_split
from nodejepa.errors import EvaluationError

SEEDS = st.integers(0, 2**32 - 1)
CLASS_SIZES = st.lists(st.integers(1, 120), min_size=1, max_size=6)


def labels_of(sizes, unlabelled=0, seed=0):
    labels = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(unlabelled, -1)])
    return np.random.default_rng(seed).permutation(labels)


def assert_is_partition(split, labels):
    parts = np.concatenate([split.train, split.val, split.test])
    assert np.array_equal(np.sort(parts), np.flatnonzero(labels >= 0))
    for part in (split.train, split.val, split.test):
        assert part.dtype == np.int64
        assert np.all(np.diff(part) > 0)
        assert not part.flags.writeable


def naive_sizes(members, train, val):
    for_train = min(train, max(1, math.ceil(round(0.4 * members, 9))))
    for_val = min(val, (members - for_train) // 2)
    return for_train, for_val, members - for_train - for_val


@pytest.mark.slow
@given(CLASS_SIZES, st.integers(0, 20), st.integers(1, 30), st.integers(0, 40), SEEDS)
def test_per_class_split_follows_its_rule_for_any_class_sizes(sizes, unlabelled, train, val, seed):
    labels = labels_of(sizes, unlabelled, seed % 1000)
    split = per_class_split(labels, train=train, val=val, seed=seed)
    assert_is_partition(split, labels)
    for label, members in enumerate(sizes):
        found = tuple(int(np.sum(labels[part] == label)) for part in (split.train, split.val, split.test))
        assert found == naive_sizes(members, train, val)
    assert split.name == f"{train}-{val}"


@given(st.lists(st.integers(80, 150), min_size=1, max_size=4), SEEDS)
def test_classes_of_eighty_give_exactly_20_and_30(sizes, seed):
    split = per_class_split(labels_of(sizes), seed=seed)
    assert (split.train.size, split.val.size) == (20 * len(sizes), 30 * len(sizes))


@given(CLASS_SIZES, st.integers(0, 20), SEEDS, st.floats(0.01, 0.6), st.floats(0, 0.4))
def test_random_split_is_a_partition_of_the_right_sizes(sizes, unlabelled, seed, train, val):
    labels = labels_of(sizes, unlabelled)
    split = random_split(labels, train=train, val=val, seed=seed)
    assert_is_partition(split, labels)
    assert abs(split.train.size - train * sum(sizes)) <= 1
    assert abs(split.val.size - val * sum(sizes)) <= 1


@given(SEEDS, st.sampled_from(["20-30", "5-10", "random-10-10-80", "random-2.5-7.5-90"]))
def test_same_seed_same_split_and_other_seed_other_split(seed, name):
    labels = labels_of([100, 150, 90])
    one, again, other = (make_split(name, labels, s) for s in (seed, seed, seed + 1))
    assert one.name == name
    assert one.seed == seed
    assert np.array_equal(one.train, again.train)
    assert np.array_equal(one.test, again.test)
    assert one.hash == again.hash != other.hash
    assert not np.array_equal(one.train, other.train)


@pytest.mark.slow
def test_every_node_is_equally_likely_to_train():
    labels = labels_of([40, 20])
    counts = np.zeros(60)
    for seed in range(2000):
        counts[per_class_split(labels, train=4, val=4, seed=seed).train] += 1
    for label, members in ((0, 40), (1, 20)):
        expected = 2000 * 4 / members
        assert np.all(np.abs(counts[labels == label] - expected) < 5 * np.sqrt(expected))


def test_hash_sees_name_seed_and_every_part():
    base = Split("a", 0, [0, 1], [2], [3])
    others = [
        Split("b", 0, [0, 1], [2], [3]),
        Split("a", 1, [0, 1], [2], [3]),
        Split("a", 0, [0], [1, 2], [3]),
        Split("a", 0, [0, 1], [3], [2]),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == 5
    assert base.hash == Split("a", 0, [1, 0], np.array([2], np.int32), [3]).hash


def test_splits_of_the_past_stay_what_they_were():
    """Stored results name splits by hash: a change of the draw must not go unnoticed."""
    labels = np.arange(600) % 6
    assert per_class_split(labels, seed=42).hash == "e019194e5a00fdab"
    assert random_split(labels, seed=42).hash == "f4a9e0efd76f6c6d"


def test_official_split_is_returned_or_asked_for():
    official = Split("official", 0, [0], [1], [2])
    assert make_split("official", [0, 1, 0], 7, official) is official
    with pytest.raises(EvaluationError, match="no official split"):
        make_split("official", [0, 1, 0], 7)


@pytest.mark.parametrize(
    "name", ["", "20", "twenty-thirty", "random", "20-30-50", "-1-3", "random-a-b-c", None, 20]
)
def test_unknown_names_are_answered_with_the_choices(name):
    with pytest.raises(EvaluationError, match="random-10-10-80"):
        make_split(name, [0, 1], 0)


@pytest.mark.parametrize("name", ["0-5", "random-50-50-50", "random-0-50-50"])
def test_impossible_names_are_refused(name):
    with pytest.raises(EvaluationError):
        make_split(name, [0, 1], 0)


@pytest.mark.parametrize(
    "labels", [[], [-1, -1], [0.5, 1.0], [[0], [1]], [-2, 0], [None, "a", 1], [b"a", b"b"]]
)
def test_bad_labels_are_refused(labels):
    for make in (per_class_split, random_split):
        with pytest.raises(EvaluationError):
            make(labels, seed=0)


def test_bad_seeds_and_parts_are_refused():
    for seed in (-1, 1.5, "a", None):
        with pytest.raises(EvaluationError, match=r"seed is .*0 or more"):
            make_split("20-30", [0, 1, 0, 1], seed)
    with pytest.raises(EvaluationError, match="listed twice"):
        Split("a", 0, [0, 1], [1], [2])
    with pytest.raises(EvaluationError, match="positions"):
        Split("a", 0, [-1], [1], [2])
