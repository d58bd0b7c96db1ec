"""Groups found without labels: the right number on clear cases, honest ones on unclear cases."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import silhouette_samples

from nodejepa.errors import EvaluationError
from nodejepa.evaluation.clusters import Clusters, agreement, find_clusters


def blobs(count, size=30, seed=0, spread=0.05):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(count), size)
    centres = np.linalg.qr(rng.normal(size=(16, 16)))[0][:count]
    return (centres[truth] + spread * rng.normal(size=(len(truth), 16))).astype(np.float32), truth


@pytest.mark.parametrize(("count", "sparse"), [(2, False), (8, False), (3, True)])
def test_clear_groups_are_found_and_counted(count, sparse):
    z, truth = blobs(count)
    found = find_clusters(sp.csr_array(z) if sparse else z)
    assert found.count == count
    assert agreement(found, truth) == pytest.approx({"nmi": 1.0, "ari": 1.0})


def test_the_length_of_rows_does_not_matter():
    z, truth = blobs(3)
    z = z - z.mean(axis=0)  # around 0 a factor changes the length only
    stretched = z * np.random.default_rng(1).uniform(0.5, 3, size=(len(z), 1))
    assert agreement(find_clusters(stretched, 3), truth)["ari"] > 0.95


def test_the_silhouettes_are_those_of_the_definition():
    z, _ = blobs(3, spread=0.3)
    found = find_clusters(z)
    rows = z - z.mean(axis=0, dtype=np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    wanted = naive_silhouette(rows, found.assigned)
    assert found.silhouettes[found.count] == pytest.approx(wanted, abs=1e-6)
    assert wanted == pytest.approx(silhouette_samples(rows, found.assigned).mean())


def naive_silhouette(rows, groups):
    far = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    values = []
    for i, own in enumerate(groups):
        mean = {g: np.mean([far[i, j] for j in np.flatnonzero(groups == g) if j != i]) for g in set(groups)}
        a, b = mean[own], min(value for g, value in mean.items() if g != own)
        values.append((b - a) / max(a, b))
    return np.mean(values)


def test_same_seed_same_groups_and_unlabelled_nodes_do_not_count():
    z, truth = blobs(4, spread=0.4)
    first, again = (find_clusters(z, 4, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.assigned, again.assigned)
    assert (np.diff(np.bincount(first.assigned)) <= 0).all()
    hidden = truth.copy()
    hidden[::2] = -1
    assert agreement(first, hidden) == agreement(Clusters(first.assigned[1::2]), truth[1::2])


def test_nodes_that_are_all_alike_are_one_group_and_few_kinds_few():
    assert find_clusters(np.ones((20, 4))).count == 1
    assert find_clusters(np.repeat(np.eye(3), 5, axis=0), 7).count == 3


@pytest.mark.parametrize("count", [0, 1, -2, 2.5, "many", "1"])
def test_numbers_that_are_none(count):
    with pytest.raises(EvaluationError, match="2 or more"):
        find_clusters(np.eye(5), count)
