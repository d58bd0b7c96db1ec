"""One lock between processes: a file held by one of them, which the kernel lets go of when its owner dies."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, overload

from nodejepa.errors import Advice, ConfigError, NodeJEPAError, Setting

_HELD = (errno.EAGAIN, errno.EACCES)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


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
            fix=Advice("Wait for it to end or choose another ", Setting("out"), "."),
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
