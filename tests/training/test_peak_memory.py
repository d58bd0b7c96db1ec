"""The peak of a process is its own: a large parent does not show in it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from nodejepa.training.journal import peak_memory_mb


def test_it_grows_with_what_is_held() -> None:
    before = peak_memory_mb()
    held = np.ones(2 * 2**20 * max(1, int(before)) // 8)  # twice as much again
    assert peak_memory_mb() > 1.5 * before
    assert held.sum() == held.size


def test_a_child_of_a_large_process_starts_small() -> None:
    held = np.ones(3 * 2**27)  # 3 GB
    code = "from nodejepa.training.journal import peak_memory_mb; print(peak_memory_mb())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 20 < float(child.stdout) < 1500
    assert held.sum() == held.size
