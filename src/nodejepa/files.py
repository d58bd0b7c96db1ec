"""Files: written so that nobody ever sees half of one, held by one process; the cache; what made a result."""

import errno
import fcntl
import hashlib
import importlib.metadata
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Literal, overload

import platformdirs

from nodejepa.errors import ConfigError, NodeJEPAError


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
        if final.is_symlink():
            final = final.resolve()  # the file that it names is written, the link stays
        final.parent.mkdir(parents=True, exist_ok=True)
        # the ending is kept: some writers add their own when it is missing
        temporary = final.with_name(f".{final.name}.{secrets.token_hex(4)}{final.suffix}")
        temporary.touch(exist_ok=False)
        try:
            yield temporary
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
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
        raise _refused(error.strerror or str(error) or type(error).__name__, path) from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def described(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file."""
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": file_digest(path)}


@contextmanager
def nameless(size: int, folder: Path | None = None) -> Iterator[int]:
    """A file of so many bytes in a folder, or in memory, that is gone when nobody has it open or mapped."""
    with refusals(folder or Path("memory")):
        if folder is None:
            file = os.memfd_create("nodejepa")
        else:
            with tempfile.TemporaryFile(dir=folder) as opened:
                file = os.dup(opened.fileno())
        try:
            if folder is not None and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, size)  # a full disk is an error now, not a crash
            else:
                os.truncate(file, size)
            yield file
        finally:
            os.close(file)


def json_digest(content: Mapping[str, Any]) -> str:
    """Of plain values, whatever the order of their names."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says; every way in which it can be wrong is a :class:`ValueError`.

    Also refused is what Python reads and others do not: NaN, halves of surrogate pairs, brackets nested by
    the hundred.
    """
    from pydantic_core import from_json  # not for who only writes

    return from_json(text, allow_inf_nan=False)


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


@overload
def lock_file(path: str | Path, *, wait: Literal[True]) -> IO[bytes]: ...
@overload
def lock_file(path: str | Path, *, wait: bool) -> IO[bytes] | None: ...
def lock_file(path: str | Path, *, wait: bool) -> IO[bytes] | None:
    """The open file, locked until it is closed (``with``); None if another process has it and we do not wait.

    A missing file is created in its folder. What is there is not emptied, and a link is not followed: anybody
    who may write to the folder could make it point to a file that must not be touched.
    """
    try:
        file = open(path, "r+b", buffering=0, opener=_open)  # noqa: SIM115 - closed by the caller
    except OSError as error:
        linked = error.errno == errno.ELOOP and Path(path).is_symlink()
        what = "the lock file is a symbolic link" if linked else error.strerror or type(error).__name__
        raise _refused(what, path) from None
    try:
        held = hold(file, wait=wait)
    except BaseException:
        file.close()
        raise
    if held:
        return file
    file.close()
    return None


def hold(file: IO[bytes], *, wait: bool) -> bool:
    """Lock an open file until it is closed; False if another process has it and we do not wait."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        raise _refused(f"files cannot be locked there: {error.strerror}", file.name) from None
    return True


@contextmanager
def output_owned(out: Path) -> Iterator[None]:
    """Hold the place of an output (a file, or a folder that is made whole) while it is written."""
    out.parent.mkdir(parents=True, exist_ok=True)
    path = out.with_name(f".{out.name}.lock")
    while (lock := lock_file(path, wait=False)) is not None:
        with suppress(FileNotFoundError):
            if os.path.samefile(path, lock.fileno()):
                break
        lock.close()  # the one before us removed it as it ended
    if lock is None:
        raise ConfigError(
            "another process is writing the same output",
            where=str(out),
            fix="Wait for it to end or choose another out=....",
        )
    with lock:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _refused(what: str, path: str | Path) -> NodeJEPAError:
    return NodeJEPAError(what, where=str(path), fix="Check the path, its permissions and the free space.")


# ---------------------------------------------------------------- which packages and which code made a result


def versions() -> dict[str, str]:
    """Versions of the packages that numbers may depend on."""
    return {name: importlib.metadata.version(name) for name in ("nodejepa", "torch", "numpy", "scipy")}


@lru_cache
def source_hash(package: Path = Path(__file__).parent) -> str:
    """Of the code: tells results apart that the same settings gave before and after a change of it."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
