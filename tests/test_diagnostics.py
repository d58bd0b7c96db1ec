"""Diagnostics equal a naive SVD, judge known cases rightly and never give NaN."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import reference.evaluation as reference
from nodejepa import diagnostics
from nodejepa.diagnostics import diagnose, mean_and_std
from nodejepa.errors import EvaluationError


def measured(result):
    return (
        result.effective_rank,
        result.effective_rank_uncentred,
        result.mean_std,
        result.participation_ratio_centred,
        result.participation_ratio_uncentred,
    )


@pytest.mark.parametrize("shape", [(400, 16), (900, 64), (2000, 3), (50, 1)])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_equals_the_naive_svd(shape, offset, monkeypatch):
    monkeypatch.setattr(diagnostics, "_BLOCK_ELEMENTS", 1000)  # several blocks, the last one short
    rng = np.random.default_rng(0)
    z = (rng.normal(size=shape) * np.linspace(0.5, 2, shape[1]) + offset).astype(np.float32)
    assert measured(diagnose(z)) == pytest.approx(reference.diagnostics(z), rel=1e-6)


def test_sparse_equals_dense():
    z = sp.random_array((300, 40), density=0.1, rng=np.random.default_rng(1), dtype=np.float32, format="csr")
    assert measured(diagnose(z)) == pytest.approx(measured(diagnose(z.toarray())), rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0, -1e20, 1e-30, 0.1])
def test_constant_embeddings_are_a_full_collapse_without_nan(value):
    result = diagnose(np.full((50, 8), value, dtype=np.float32))
    assert measured(result) == (1.0, 1.0, 0.0, 1.0, 1.0)
    assert result.verdict.startswith("full collapse")


def test_tiny_noise_around_one_point_is_a_full_collapse():
    noise = np.random.default_rng(0).normal(size=(200, 8))
    assert diagnose(1 + 1e-7 * noise).verdict.startswith("full collapse")
    assert diagnose(1e-9 * noise).verdict.startswith("healthy")  # small, but the nodes differ


def test_few_directions_are_a_dimensional_collapse():
    rng = np.random.default_rng(0)
    thin = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 64))
    assert diagnose(thin).verdict.startswith("dimensional collapse")
    assert diagnose(thin).effective_rank == pytest.approx(reference.diagnostics(thin)[0], rel=1e-5)
    assert diagnose(rng.normal(size=(500, 64))).verdict.startswith("healthy")


def test_identity_spectrum_has_full_rank():
    z = np.vstack([np.eye(6), -np.eye(6)])
    assert diagnose(z).effective_rank == pytest.approx(6)
    assert diagnose(z).participation_ratio_centred == pytest.approx(6)


def test_wide_input_says_why_it_has_no_rank():
    wide = sp.random_array((30, 3000), density=0.01, rng=np.random.default_rng(0), format="csr")
    result = diagnose(wide)
    assert result.effective_rank is result.participation_ratio_uncentred is None
    assert "3000 dimensions" in result.verdict
    assert result.mean_std == pytest.approx(wide.toarray().std(axis=0).mean())


def test_to_dict_is_json():
    assert json.loads(json.dumps(diagnose(np.eye(4)).to_dict()))["dimensions"] == 4


@pytest.mark.parametrize(
    "bad",
    [
        np.array([[1.0, np.nan]]),
        np.array([[np.inf, -np.inf]], dtype=np.float32),
        np.zeros(3),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.array([["a"]]),
        np.array([[1j]]),
        [[1.0], [1.0, 2.0]],
        sp.csr_array(np.array([[0.0, np.nan]])),
        None,
    ],
)
def test_bad_input_is_refused(bad):
    with pytest.raises(EvaluationError):
        diagnose(bad)


def test_huge_finite_values_are_not_taken_for_infinite():
    assert np.isfinite(mean_and_std(diagnostics.check_embeddings(np.full((4, 2), 1e308)))[1]).all()


@pytest.mark.slow
@given(offset=st.floats(-1e6, 1e6), scale=st.floats(1e-3, 1e3), seed=st.integers(0, 99))
def test_mean_and_std_do_not_mind_an_offset(offset, scale, seed):
    z = np.random.default_rng(seed).normal(size=(60, 3)) * scale
    mean, std = mean_and_std(z + offset)
    assert mean == pytest.approx(z.mean(axis=0) + offset, abs=1e-9 * (abs(offset) + scale))
    assert std == pytest.approx(z.std(axis=0), rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 2.0, 5.0, 1000.0])
def test_a_large_common_vector_is_pointed_out(offset):
    z = np.random.default_rng(0).normal(size=(300, 16)) + offset
    share = 100 * np.sum(z.mean(axis=0) ** 2) / np.mean(np.sum(z**2, axis=1))
    result = diagnose(z)
    assert not result.collapsed
    assert result.verdict.startswith("healthy")
    said = f"Of their squared length {min(share, 99.9):.1f} % is the same for every node"
    assert (said in result.verdict) == (share > 95) == (offset >= 5)
    assert ("squared length" in result.verdict) == (share > 95)
