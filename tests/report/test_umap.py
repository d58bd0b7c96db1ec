"""UMAP on the map: where it is installed, and what is said where it is not."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from nodejepa.errors import ConfigError
from nodejepa.graph import Graph
from nodejepa.report import maps
from nodejepa.report.maps import embedding_map
from nodejepa.workflow import embed_graph


@pytest.mark.slow
@pytest.mark.skipif(find_spec("umap") is None, reason="needs umap-learn: pip install 'nodejepa[umap]'")
def test_groups_stay_apart_and_the_seed_decides():
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    z = 8 * np.eye(3)[group] + rng.normal(size=(90, 3))
    graph = Graph.from_edges(np.arange(89), np.arange(1, 90), features=z)
    found = embedding_map(graph, z, neighbours=False, umap=True, seed=4)
    assert list(found.projections) == ["principal components", "neighbours (UMAP)"]
    plane = found.projections["neighbours (UMAP)"]
    apart = np.linalg.norm(plane[:, None] - plane[None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    assert np.mean(group[apart.argmin(axis=1)] == group) > 0.9
    np.testing.assert_array_equal(plane, maps.umap_plane(z, seed=4))
    assert maps.umap_plane(z[:2]).shape == (2, 2)


def test_without_it_the_work_does_not_begin(tmp_path, monkeypatch):
    monkeypatch.setattr(maps, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"nodejepa\[umap\]"):
        embed_graph("nowhere.csv", out=tmp_path / "z.parquet", umap=True)
    with pytest.raises(ConfigError, match="umap-learn is not installed"):
        maps.umap_plane(np.eye(5))
