"""A large edge list costs memory in proportion to its size, whatever its ids look like."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

EDGES = 400_000

READ = """
import sys
from nodejepa.tables import read_graph
from nodejepa.machine import peak_memory_mb
small, big = sys.argv[1:]
read_graph(small, structural=False)
before = peak_memory_mb()
graph = read_graph(big, structural=False).graph
print(graph.num_nodes, graph.num_edges, peak_memory_mb() - before)
"""


@pytest.mark.slow
def test_memory_grows_with_the_file_and_not_with_the_ids(tmp_path):
    (tmp_path / "small.csv").write_text("source,target\n1,2\n")
    ends = np.random.default_rng(0).integers(0, 2**62, size=EDGES).tolist()
    rows = "".join(f"{a},{b}\n" for a, b in zip(ends, ends[1:] + ends[:1], strict=True))
    big = tmp_path / "big.csv"
    big.write_text("source,target\n" + rows)
    command = [sys.executable, "-c", READ, str(tmp_path / "small.csv"), str(big)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    nodes, edges, megabytes = map(float, out.split())
    assert (nodes, edges) == (EDGES, 2 * EDGES)
    assert megabytes * 2**20 < 20 * big.stat().st_size
