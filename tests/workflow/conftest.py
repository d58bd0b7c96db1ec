"""What the tests of a user's own graph share."""

from __future__ import annotations

import pytest
from workflow_files import Files, people, write


@pytest.fixture
def files(tmp_path) -> Files:
    edges, nodes = people()
    return Files(tmp_path, write(edges, tmp_path / "edges.parquet"), write(nodes, tmp_path / "nodes.parquet"))


@pytest.fixture(autouse=True)
def _steady_speed(monkeypatch):
    """A plan reckons with the same machine, however busy this one is."""
    monkeypatch.setattr("nodejepa.workflow.plan.measured_speed", lambda: 1e11)
