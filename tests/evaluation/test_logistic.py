"""The batched solver finds scikit-learn's minimum on every kind of training set."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.evaluation import logistic
from nodejepa.evaluation.logistic import RoughFit, TrainingSet, fit_logistic
from reference.evaluation import exact_logistic

STRENGTHS = [1e-2, 1.0, 1e2]


def sample(n, d, k, seed=0, spread=0.5):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, size=n - k)])
    return spread * rng.normal(size=(k, d))[labels] + rng.normal(size=(n, d)), labels


def centred_logits(weights, intercepts, rows):
    logits = rows @ weights.T + intercepts
    return logits - logits.mean(axis=1, keepdims=True)


def assert_equals_sklearn(training, fit, classes, *, rel=2e-3):
    """Same logits on the training rows (up to a constant per row) and same weights, for every C."""
    present = np.unique(training.labels)
    absent = np.setdiff1d(np.arange(classes), present)
    assert np.all(fit.intercepts[:, absent] == -np.inf)
    assert fit.converged.all()
    for c, strength in enumerate(training.strengths):
        model = exact_logistic(training.rows, training.labels, strength)
        weights, intercepts = model.coef_, model.intercept_
        if len(present) == 2:
            weights, intercepts = np.vstack([-weights, weights]) / 2, np.hstack([-intercepts, intercepts]) / 2
        expected = centred_logits(weights, intercepts, training.rows)
        found = centred_logits(fit.weights[c][present], fit.intercepts[c][present], training.rows)
        assert np.abs(found - expected).max() <= rel * np.abs(expected).max() + 1e-4, strength
        error = np.linalg.norm(fit.weights[c][present] - weights)
        assert error <= rel * np.linalg.norm(weights) + 1e-6, strength


def check(*trainings, classes, **kwargs):
    for training, fit in zip(trainings, fit_logistic(trainings, classes), strict=True):
        assert_equals_sklearn(training, fit, classes, **kwargs)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "k"), [(30, 50, 4), (100, 10, 3), (24, 24, 4), (40, 12, 2)])
def test_dense(n, d, k):
    check(*(TrainingSet(*sample(n, d, k, seed), STRENGTHS) for seed in range(2)), classes=k)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(24, 50), (120, 12)])
def test_sparse(n, d):
    rows, labels = sample(n, d, 4)
    rows[np.abs(rows) < 1.2] = 0
    check(TrainingSet(sp.csr_array(rows), labels, STRENGTHS), classes=4)


@pytest.mark.slow
def test_unequal_sizes_widths_and_strengths_are_padded_without_effect():
    sets = [
        TrainingSet(*sample(20, 40, 4, 1), STRENGTHS),
        TrainingSet(*sample(60, 12, 4, 2), [1e-2, 5, 50]),
        TrainingSet(*sample(29, 30, 3, 3), STRENGTHS),
    ]
    check(*sets, classes=4)


def test_classes_may_be_missing_even_all_but_two():
    rows, labels = sample(80, 30, 5)
    some, two = np.isin(labels, [0, 2, 4]), np.isin(labels, [1, 3])
    check(
        TrainingSet(rows[some], labels[some], STRENGTHS),
        TrainingSet(rows[two], labels[two], STRENGTHS),
        classes=6,
    )


@pytest.mark.slow
def test_ill_conditioned_duplicate_and_constant_columns():
    rows, labels = sample(60, 15, 4)
    mix = np.random.default_rng(5).normal(size=(15, 15)) * np.logspace(0, -4, 15)[:, None]
    check(TrainingSet(rows @ mix, labels, STRENGTHS), classes=4)
    rows, labels = sample(50, 10, 3)
    rows = np.hstack([rows, rows, np.ones((50, 2)), np.zeros((50, 1))])
    check(TrainingSet(rows, labels, STRENGTHS), classes=3)


def test_an_offset_only_moves_the_intercept():
    rows, labels = sample(60, 20, 4)
    here, there = fit_logistic([TrainingSet(rows + shift, labels, STRENGTHS) for shift in (0.0, 1000.0)], 4)
    assert there.weights == pytest.approx(here.weights, abs=1e-4 * np.abs(here.weights).max())
    assert there.intercepts + 1000 * there.weights.sum(axis=2) == pytest.approx(here.intercepts, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("as_sparse", [False, True])
def test_rows_too_many_and_too_wide_for_a_basis_are_iterated_on_directly(monkeypatch, as_sparse):
    monkeypatch.setattr(logistic, "_MAX_ROTATED", 10)
    monkeypatch.setattr(logistic, "_MAX_ROTATED_SPARSE", 10)
    monkeypatch.setattr(logistic, "_LARGE", 10)
    rows, labels = sample(40, 20, 4)
    rows[np.abs(rows) < 0.5] = 0
    check(TrainingSet(sp.csr_array(rows) if as_sparse else rows, labels, STRENGTHS), classes=4)


@pytest.mark.slow
def test_a_small_unturned_sparse_set_is_never_stacked_with_another(monkeypatch):
    monkeypatch.setattr(logistic, "_MAX_ROTATED_SPARSE", 10)
    drawn = [sample(40, 20, 4, seed) for seed in (1, 2)]
    check(*(TrainingSet(sp.csr_array(rows), labels, STRENGTHS) for rows, labels in drawn), classes=4)


def test_constant_rows_give_the_class_frequencies():
    labels = np.array([0, 0, 0, 1])
    (fit,) = fit_logistic([TrainingSet(np.ones((4, 3)), labels, STRENGTHS)], 2)
    assert fit.weights == pytest.approx(0, abs=1e-9)
    odds = fit.intercepts[:, 0] - fit.intercepts[:, 1]
    assert odds == pytest.approx(np.log(3), abs=1e-3)


def test_stacks_keep_order_and_stay_small(monkeypatch):
    monkeypatch.setattr(logistic, "_LARGE", 500)
    monkeypatch.setattr(logistic, "_STACK", 1000)
    sizes = [10, 10, 10, 60, 10, 20, 10]
    sets = [TrainingSet(np.zeros((n, n)), np.zeros(n, dtype=np.int64), [1.0]) for n in sizes]
    stacks = list(logistic._stacks(iter(sets), 1))
    assert [training for stack in stacks for training in stack] == sets
    assert [[len(t.labels) for t in stack] for stack in stacks] == [[10, 10, 10], [60], [10, 20], [10]]


@pytest.mark.slow
def test_costly_sets_are_solved_in_float32_with_warm_starts_and_side_by_side(monkeypatch):
    monkeypatch.setattr(logistic, "_COSTLY", 10)
    monkeypatch.setattr("nodejepa.evaluation.solver._BLOCK_ELEMENTS", 200)
    sets = [TrainingSet(*sample(100, 10, 3, seed), STRENGTHS) for seed in range(2)]
    sets.append(TrainingSet(*sample(50, 12, 3, 5), STRENGTHS[:2]))
    before = torch.get_num_threads()
    fits = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            fits.append(fit_logistic(iter(sets), 3))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for training, alone, beside in zip(sets, *fits, strict=True):
        assert_equals_sklearn(training, alone, 3, rel=3e-2)
        assert np.array_equal(alone.weights, beside.weights)


def test_a_rough_fit_is_refined_from_where_it_ended(monkeypatch):
    monkeypatch.setattr(logistic, "_COSTLY", 10)
    training = TrainingSet(*sample(100, 10, 3), STRENGTHS)
    rough = RoughFit(training, 3)
    assert rough.classifiers.weights.shape == (3, 3, 10)
    refined = rough.refined([2, 0])
    picked = TrainingSet(training.rows, training.labels, [STRENGTHS[2], STRENGTHS[0]])
    assert_equals_sklearn(picked, refined, 3, rel=3e-2)
