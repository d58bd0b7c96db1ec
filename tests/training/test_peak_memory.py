"""The peak of a process is its own: it grows with what is held, and a large parent does not show in it."""

from __future__ import annotations

import pytest
from tests.forked import Forked

# a parent that holds more than a child without it may ever take
CODE = """
import subprocess, sys
import numpy as np
from nodejepa.training.journal import peak_memory_mb
before = peak_memory_mb()
held = np.ones(150 * 2**20)  # 1200 MB
tell = "from nodejepa.training.journal import peak_memory_mb; print(peak_memory_mb())"
child = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)
print(before, peak_memory_mb(), child.stdout)
"""


@pytest.mark.slow
def test_it_grows_with_what_is_held_and_a_child_starts_small() -> None:
    code, said = Forked(CODE).wait()
    assert code == 0, said
    before, after, child = map(float, said.split())
    assert 1150 < after - before < 1400
    assert 20 < child < 1200
