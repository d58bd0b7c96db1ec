"""Files as tensors: the bytes as they stand, also of files larger than the machine."""

import os
from pathlib import Path

import numpy as np
import torch

from nodejepa.nn.workspace import Workspace, mapped


def test_a_file_is_read_and_never_written(tmp_path):
    path = tmp_path / "numbers"
    np.arange(6, dtype=np.float32).tofile(path)
    with path.open("rb") as file:
        seen = mapped(file, torch.float32)
    seen[0] = 7
    assert seen.tolist() == [7, 1, 2, 3, 4, 5]
    assert np.fromfile(path, dtype=np.float32)[0] == 0


def test_a_file_may_be_larger_than_memory(tmp_path):
    path = tmp_path / "zeros"
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with path.open("wb") as file:
        file.truncate(4 * machine)  # takes no room on disk
    with path.open("rb") as file:
        seen = mapped(file, torch.float32)
    assert len(seen) == machine
    assert seen[-1] == 0


def test_blocks_are_written_where_they_stay_also_in_a_file(tmp_path):
    """Into what is given, else into memory or into a file without a name, as there is room."""
    spans = [(0, 3), (3, 7), (7, 8)]

    def write(low, high, rows):
        rows[:] = torch.arange(low, high)[:, None]

    wanted = torch.arange(8.0)[:, None].expand(8, 5)
    for memory in (1 << 20, 1):
        space = Workspace(8, lambda: iter(spans), tmp_path, memory=memory)
        given = torch.full((8, 5), -1.0)
        assert space.fill_in_place(5, write, given).data_ptr() == given.data_ptr()
        assert given.equal(wanted)
        found = space.fill_in_place(5, write)
        assert found.equal(wanted)
        assert (str(tmp_path) in Path("/proc/self/maps").read_text()) == (memory == 1)
        assert not [*tmp_path.iterdir()]
        del found
