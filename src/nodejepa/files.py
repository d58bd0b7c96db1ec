"""Files: written so that nobody ever sees half of one, held by one process, and where the cache lives."""

import errno
import fcntl
import hashlib
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, overload

import platformdirs

from nodejepa.errors import ConfigError, NodeJEPAError

_HELD = (errno.EAGAIN, errno.EACCES)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


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
        raise _refused(error.strerror or str(error) or type(error).__name__, path) from error


def json_digest(content: Mapping[str, Any]) -> str:
    """Of plain values, whatever the order of their names."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
        # without a buffer: a buffered file would be asked where it stands, which a pipe cannot say
        file = open(path, "r+b", buffering=0, opener=_open)  # noqa: SIM115 - closed by the caller
    except OSError as error:
        linked = error.errno == errno.ELOOP and Path(path).is_symlink()
        what = "the lock file is a symbolic link" if linked else error.strerror or type(error).__name__
        raise _refused(what, path) from None
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _refused("the lock file is not a regular file", path)
        if hold(file, wait=wait):
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None


def hold(file: IO[bytes], *, wait: bool) -> bool:
    """Lock an open file until it is closed; False if another process has it and we do not wait."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in _HELD and not wait:
            return False
        if error.errno in _UNSUPPORTED:
            raise NodeJEPAError(
                f"files cannot be locked there: {error.strerror}",
                where=str(file.name),
                fix="Use a folder on a file system that has locks, such as a local disk.",
            ) from None
        raise _refused(error.strerror or type(error).__name__, file.name) from None
    return True


@contextmanager
def output_owned(out: Path) -> Iterator[None]:
    """Hold the place of an output (a file, or a folder that is made whole) while it is written."""
    out.parent.mkdir(parents=True, exist_ok=True)
    path = out.with_name(f".{out.name}.lock")
    lock = lock_file(path, wait=False)
    while lock is not None and not _is_at(path, lock):  # the one before us took it away as it ended
        lock.close()
        lock = lock_file(path, wait=False)
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


def _is_at(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _open(path: str, flags: int) -> int:
    # O_NONBLOCK: opening a pipe must not wait for somebody at its other end
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


def _refused(what: str, path: str | Path) -> NodeJEPAError:
    return NodeJEPAError(what, where=str(path), fix="Check the path, its permissions and the free space.")
