import numpy as np
import pytest

from nodejepa.data.splits import per_class_split
from nodejepa.errors import EvaluationError
from nodejepa.evaluation import fewshot_probe, linear_probe


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=600)
    return 0.4 * rng.normal(size=(3, 30))[labels] + rng.normal(size=(600, 30)), labels


@pytest.mark.slow
def test_more_labels_help_and_draws_are_counted(task):
    results = fewshot_probe(*task, shots=(2, 10, 40), draws=4)
    assert list(results) == [2, 10, 40]
    assert all(len(result.scores) == 4 for result in results.values())
    means = [result.test_accuracy_mean for result in results.values()]
    assert means[0] < means[1] < means[2]


def test_each_k_is_the_linear_probe_on_that_split(task):
    z, labels = task
    splits = [per_class_split(labels, train=5, val=20, seed=seed) for seed in (7, 8)]
    found = fewshot_probe(z, labels, shots=(5,), draws=2, val=20, seed=7, mode="paper")[5]
    assert found.scores == linear_probe(z, labels, splits, mode="paper").scores
    assert [score.seed for score in found.scores] == [7, 8]


@pytest.mark.parametrize(
    "wrong", [{"draws": 0}, {"shots": ()}, {"shots": (5, 5)}, {"shots": (0,)}, {"val": -1}]
)
def test_bad_settings_are_refused(task, wrong):
    with pytest.raises(EvaluationError):
        fewshot_probe(*task, **wrong)
