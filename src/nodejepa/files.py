"""Writing files so that nobody ever sees half of one, and where the cache lives."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import platformdirs

from nodejepa.errors import NodeJEPAError


def cache_root() -> Path:
    """``NODEJEPA_CACHE`` if set, else the user's cache directory."""
    return Path(os.environ.get("NODEJEPA_CACHE") or platformdirs.user_cache_path("nodejepa"))


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary path beside ``path``; what was written there takes its place only if all went well.

    What the system refuses (no permission, no space, a folder in the way) is a :class:`NodeJEPAError`.

    >>> with atomic_path("z.npy") as temporary:  # doctest: +SKIP
    ...     np.save(temporary, z)
    """
    final = Path(path)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        # the ending is kept: some writers add their own when it is missing
        handle, name = tempfile.mkstemp(dir=final.parent, prefix=f".{final.name}.", suffix=final.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
            temporary.chmod(0o666 & ~_umask())
            os.replace(temporary, final)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise NodeJEPAError(
            error.strerror or str(error) or type(error).__name__,
            where=str(final),
            fix="Check the path, its permissions and the free space.",
        ) from error


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically; what has no UTF-8, as in a file's name, is written as in JSON."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON atomically; refuses NaN and infinity, which JSON does not have."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
