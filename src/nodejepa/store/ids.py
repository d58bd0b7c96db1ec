"""Ids of nodes -> files: whole numbers, or letters and where each id ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nodejepa.errors import GraphError
from nodejepa.io.reading_options import IdKind
from nodejepa.store.layout import write_array


def write_ids(ids: Any, folder: Path) -> IdKind:
    """Write ids (int64, or text as Arrow or NumPy has it) and say of which kind they are."""
    if isinstance(ids, np.ndarray) and ids.dtype == np.int64:
        write_array(folder / "ids.i64", ids)
        return "integer"
    if isinstance(ids, np.ndarray) and ids.dtype.kind != "U":
        raise GraphError(
            f"a store cannot hold ids of the kind {ids.dtype}", where="ids", fix="Give text or whole numbers."
        )
    text = (pa.array(ids.tolist()) if isinstance(ids, np.ndarray) else ids).cast(pa.large_string())
    _, offsets, letters = text.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    write_array(folder / "id_ends.i64", ends[1:] - ends[0])
    write_array(folder / "id_letters.u8", np.frombuffer(letters or b"", dtype=np.uint8)[ends[0] : ends[-1]])
    return "text"
