"""Writing files so that nobody ever sees half of one, and where the cache lives."""

from __future__ import annotations

import json
import math
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
    with refusals(final):
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


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What the system refuses while ``path`` is written, as a :class:`NodeJEPAError`."""
    try:
        yield
    except OSError as error:
        raise NodeJEPAError(
            error.strerror or str(error) or type(error).__name__,
            where=str(path),
            fix="Check the path, its permissions and the free space.",
        ) from error


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says; every way in which it can be wrong is a :class:`ValueError`.

    Also refused is what Python reads and others do not, or cannot write again: NaN, whole numbers beyond 64
    bits, halves of surrogate pairs, brackets nested by the thousand.
    """

    def constant(name: str) -> float:
        raise ValueError(f"{name} is no number of JSON")

    def whole(digits: str) -> int:
        if len(digits) > 20 or not -(1 << 63) <= int(digits) < 1 << 64:
            raise ValueError("a whole number has more than 64 bits")
        return int(digits)

    def real(digits: str) -> float:
        if math.isinf(float(digits)):
            raise ValueError("a number is too large")
        return float(digits)

    try:
        value = json.loads(text, parse_constant=constant, parse_int=whole, parse_float=real)
        if (b"\\u" if isinstance(text, bytes) else "\\u") in text:  # type: ignore[operator]
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def remove_leftovers(path: Path) -> None:
    """Remove what processes that were killed while they wrote ``path`` have left beside it."""
    literal = "".join(f"[{c}]" if c in "[*?" else c for c in path.name)
    for half in path.parent.glob(f".{literal}.????????{path.suffix}"):
        half.unlink(missing_ok=True)


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
