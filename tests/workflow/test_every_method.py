"""``embed-graph`` takes every method that needs no labels, narrows it on request, and groups the nodes."""

from __future__ import annotations

import numpy as np
import pytest
from workflow_files import NODES, people

from nodejepa import embed_graph, load_graph, read_embeddings
from nodejepa.errors import CheckpointError, ConfigError
from nodejepa.methods import UNTRAINED, load_method, make_method
from nodejepa.workflow import apply_run, make_trainable
from reference.matrices import dense


@pytest.fixture
def options(files):
    return {"edges": files.edges, "nodes": files.nodes, "out": files.folder / "z.parquet", "labels": "team"}


def graph_of(files):
    return load_graph(files.edges, files.nodes, labels="team")


@pytest.mark.slow
@pytest.mark.parametrize("method", [*UNTRAINED, "linear-jepa"])
def test_what_is_not_trained_is_embedded_saved_and_applied_all_the_same(options, files, method):
    made = embed_graph(**options, method=method, report=False, score=False)
    ids, written = read_embeddings(made.paths.embeddings)
    wanted = dense(make_method(method).fit(graph_of(files)).transform(graph_of(files)))
    np.testing.assert_array_equal(written, wanted)
    assert list(ids) == people()[1]["user"].to_pylist()
    assert [made.manifest[name] for name in ("method", "dim", "epochs")] == [method, None, 0]
    again = apply_run(made.paths.run, files.edges, files.nodes)
    np.testing.assert_array_equal(dense(again.embeddings), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["raw", "sgc-3", "random-gcn", "linear-jepa", "nodejepa"])
def test_dim_keeps_principal_components_in_the_file_and_in_the_model(options, files, method):
    settings = {"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 2} if method == "nodejepa" else {}
    asked = options | {"method": method, "settings": settings, "report": False, "score": False}
    made = embed_graph(**asked, dim=3)
    assert made.embeddings.shape == (NODES, 3)
    assert made.manifest["dim"] == 3
    spread = made.embeddings.std(axis=0)
    assert (np.diff(spread) <= 1e-6).all()  # the longest axis first
    model = load_method(made.paths.run)
    np.testing.assert_array_equal(model.transform(graph_of(files)), made.embeddings)
    with pytest.raises(CheckpointError, match="another max_columns: 3 then, 2 now"):
        embed_graph(**asked, dim=2, resume=True)


@pytest.mark.slow
def test_the_score_of_a_narrowed_floor_is_its_own(options):
    made = embed_graph(**options, method="sgc", dim=1, report=False)
    whole = embed_graph(**options | {"method": "raw", "report": False, "force": True})
    assert {name for name in whole.scores.rows if "," not in name} == {*UNTRAINED}
    narrowed, full = (m.scores.rows["sgc"].scores[0] for m in (made, whole))
    assert (narrowed.scaling, narrowed.C) != (full.scaling, full.C)


@pytest.mark.parametrize("dim", [0, -3, 2.5, "8", True])
def test_a_dim_that_is_no_number_of_columns(dim):
    with pytest.raises(ConfigError, match=r"dim is .*1 or more"):
        make_trainable("raw", dim=dim)
