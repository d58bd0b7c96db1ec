"""Nearest neighbours: equal to the naive search, zero rows defined, bad questions refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import reference.evaluation as reference
from nodejepa import embeddings_frame
from nodejepa import neighbours as module
from nodejepa.errors import DataError, EvaluationError
from nodejepa.evaluation import score_pairs
from nodejepa.neighbours import nearest_neighbours
from reference.matrices import dense

METRICS = ("cosine", "euclidean")


def check(z, k, metric, rows=None):
    found = nearest_neighbours(z, rows, k=k, metric=metric)
    for i, query in enumerate(range(z.shape[0]) if rows is None else rows):
        expected, scores = reference.neighbours(dense(z), query, k, metric)
        assert found.rows[i].tolist() == expected
        assert found.scores[i] == pytest.approx(scores, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("shape", [(2, 1), (40, 3), pytest.param((150, 33), marks=pytest.mark.slow)])
def test_equals_the_naive_search(metric, dtype, shape):
    z = (np.random.default_rng(0).normal(size=shape) * 100).astype(dtype)
    check(z, 5, metric)
    check(sp.csr_array(z), 5, metric, rows=[1, 0, 1])


@pytest.mark.parametrize("metric", METRICS)
def test_small_blocks_change_nothing(metric, monkeypatch):
    z = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)
    whole = nearest_neighbours(z, k=7, metric=metric)
    monkeypatch.setattr(module, "_SCORES", 130)
    monkeypatch.setattr(module, "_ELEMENTS", 12)
    pieces = nearest_neighbours(z, k=7, metric=metric)
    np.testing.assert_array_equal(pieces.rows, whole.rows)
    np.testing.assert_allclose(pieces.scores, whole.scores, atol=1e-12)


def test_zero_rows_have_similarity_zero():
    z = np.array([[0.0, 0], [0, 0], [-1, 0], [2, 0]])
    found = nearest_neighbours(z, [0, 3], k=3)
    assert found.rows.tolist() == [[1, 2, 3], [0, 1, 2]]
    assert found.scores.tolist() == [[0, 0, 0], [0, 0, -1]]


def test_the_index_of_a_frame_names_its_rows():
    """Taken for a row number, the id 5 asked for another node, and nobody said so."""
    z = np.random.default_rng(0).normal(size=(10, 3))
    ids = np.arange(10)[::-1]
    wanted = nearest_neighbours(z, [5], ids=ids, k=2).ids.tolist()
    frame = embeddings_frame(ids, z)
    assert nearest_neighbours(frame, [5], k=2).ids.tolist() == wanted
    np.testing.assert_array_equal(score_pairs(frame, [[5, 7]]), score_pairs(z, [[4, 2]]))
    with pytest.raises(DataError, match="no node 5"):
        nearest_neighbours(embeddings_frame([f"n{i}" for i in ids], z), [5])


def test_fewer_nodes_than_asked_for():
    assert nearest_neighbours(np.eye(3), [0], k=10).rows.shape == (1, 2)
    assert nearest_neighbours(np.eye(1), k=10).rows.shape == (1, 0)
    assert nearest_neighbours(np.eye(3), [], k=2).rows.shape == (0, 2)


@pytest.mark.slow
def test_memory_stays_small_beside_the_embeddings():
    z = np.random.default_rng(0).normal(size=(20_000, 512)).astype(np.float32)
    tracemalloc.start()
    found = nearest_neighbours(z, [7], k=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a float64 copy would be twice the size; blocks are 8 MB
    assert peak < z.nbytes
    assert found.rows.shape == (1, 3)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 1.5}, "k is 1.5"),
        ({"metric": "dot"}, "metric 'dot' is unknown"),
        ({"rows": [3]}, "no row 3.*0 to 2"),
        ({"rows": [0, -1]}, "no row -1"),
        ({"rows": ["a"]}, "no list of row numbers"),
        ({"rows": [[0]]}, "no list of row numbers"),
        ({"embeddings": np.full((3, 2), np.nan)}, "NaN"),
        ({"embeddings": np.empty((0, 2))}, "no table of rows"),
    ],
)
def test_bad_questions_are_refused(arguments, match):
    with pytest.raises(EvaluationError, match=match):
        nearest_neighbours(**{"embeddings": np.eye(3), **arguments})
