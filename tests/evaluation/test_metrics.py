"""Scores beside accuracy equal scikit-learn's, and say nothing where they mean nothing."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from nodejepa.data.splits import Split
from nodejepa.evaluation import linear_probe
from nodejepa.evaluation.probe import balanced_accuracy, macro_f1, roc_auc


def test_the_largest_class_flatters_accuracy_only():
    truth = np.array([0] * 90 + [1] * 10)
    guesses = np.zeros(100, dtype=np.int64)
    assert balanced_accuracy(guesses, truth) == 50
    assert macro_f1(guesses, truth) == pytest.approx(100 * (2 * 0.9 / 1.9) / 2)
    rng = np.random.default_rng(0)
    guesses, truth = rng.integers(0, 4, (2, 200))
    assert balanced_accuracy(guesses, truth) == pytest.approx(100 * balanced_accuracy_score(truth, guesses))


def test_ranking_of_two_classes():
    truth = np.array([0, 0, 1, 1])
    logits = np.array([[0.0, -1], [0, 3], [0, 2], [0, 4]])
    assert roc_auc(logits, truth) == 75
    assert roc_auc(np.zeros((4, 3)), truth) is None
    assert roc_auc(logits, np.zeros(4, dtype=np.int64)) is None


def test_a_probe_gives_them():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [150, 50])
    z = rng.normal(size=(200, 4)) + labels[:, None]
    order = rng.permutation(200)
    split = Split("mine", 0, train=order[:40], val=order[40:80], test=order[80:])
    (score,) = linear_probe(z, labels, [split]).scores
    assert 50 < score.roc_auc <= 100
    assert 0 < score.macro_f1 <= 100
    assert score.balanced_accuracy != score.test_accuracy
