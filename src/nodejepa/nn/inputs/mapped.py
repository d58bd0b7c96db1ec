"""Files that are read as tensors and may be larger than memory."""

import mmap
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy.typing as npt
import torch
from torch import Tensor

# A private map that may be written to counts as memory in full, and one larger than the machine is refused,
# although nobody writes; unless the system is told not to set memory aside (Python names it from 3.13 on).
_NOT_SET_ASIDE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


def mapped(file: IO[bytes], dtype: torch.dtype) -> Tensor:
    """All of a file that is not empty. Torch wants memory it could write to; the file stays as it is."""
    held = mmap.mmap(
        file.fileno(), 0, flags=mmap.MAP_PRIVATE | _NOT_SET_ASIDE, prot=mmap.PROT_READ | mmap.PROT_WRITE
    )
    return torch.frombuffer(held, dtype=dtype)


def put_on_disk(arrays: Iterable[npt.NDArray[Any]], dtype: torch.dtype, folder: Path | None) -> Tensor:
    """Arrays one after the other, in a file without a name that is gone with the tensor or the process."""
    # written, not mapped: a full disk is an error then, and not the end of the process
    with tempfile.TemporaryFile(dir=folder) as file:
        for array in arrays:
            file.write(array.data)
        file.flush()
        size = os.fstat(file.fileno()).st_size
        return mapped(file, dtype) if size else torch.empty(0, dtype=dtype)
