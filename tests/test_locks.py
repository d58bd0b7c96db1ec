from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from numba.core import caching

from nodejepa.compiled import compiled
from nodejepa.errors import NodeJEPAError, TrainingError
from nodejepa.files import hold, lock_file
from nodejepa.training.run import Run


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = lock_file(path, wait=False)
    assert first is not None
    with first:
        assert lock_file(path, wait=False) is None
    again = lock_file(path, wait=True)
    assert again is not None
    again.close()


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = (
        "import sys; from nodejepa.files import lock_file; f = lock_file(sys.argv[1], wait=False); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert lock_file(path, wait=False) is None
        holder.kill()
    freed = lock_file(path, wait=False)
    assert freed is not None
    freed.close()


def test_what_a_file_holds_is_not_emptied(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("kept")
    lock = lock_file(path, wait=False)
    assert lock is not None
    lock.close()
    assert path.read_text() == "kept"


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_refused_and_its_target_left_alone(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "precious"
    if exists:
        target.write_text("kept")
    (tmp_path / ".lock").symlink_to(target)
    with pytest.raises(NodeJEPAError, match="the lock file is a symbolic link"):
        lock_file(tmp_path / ".lock", wait=False)
    with (
        pytest.raises(TrainingError, match="run folder: the lock file is a symbolic link"),
        Run(tmp_path).owned(),
    ):
        pass
    assert target.exists() == exists
    assert not exists or target.read_text() == "kept"


def test_what_cannot_be_opened_or_locked_is_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(NodeJEPAError, match="Is a directory"):
        lock_file(tmp_path / "folder", wait=False)
    with pytest.raises(NodeJEPAError, match="No such file"):
        lock_file(tmp_path / "missing" / "lock", wait=False)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(NodeJEPAError, match="files cannot be locked there") as caught:
        lock_file(tmp_path / "lock", wait=False)
    assert str(tmp_path / "lock") in caught.value.where
    with pytest.raises(TrainingError, match="files cannot be locked there"), Run(tmp_path).owned():
        pass


def test_a_file_that_is_open_already_can_be_held(tmp_path: Path) -> None:
    path = tmp_path / "records"
    with path.open("a+b") as mine, path.open("a+b") as other:
        assert hold(mine, wait=True)
        assert not hold(other, wait=False)


# ---------------------------------------------------------------- compiled code


def add(a, b):
    return a + b


def test_without_any_folder_to_keep_it_the_code_still_runs(monkeypatch):
    """A read-only installation and no home: numba finds no place, already when a module is imported."""
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    with pytest.warns(UserWarning, match="cannot be kept .*NUMBA_CACHE_DIR"):
        kept = compiled()(add)
    assert kept(2, 3) == 5


def test_it_is_kept_and_found_again(monkeypatch, tmp_path):
    monkeypatch.setattr(caching.config, "CACHE_DIR", str(tmp_path))
    assert compiled()(add)(2, 3) == 5
    again = compiled()(add)
    assert again(4, 5) == 9
    assert sum(again.stats.cache_hits.values()) == 1


def test_the_warning_is_given_once(monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            compiled()(add)
    assert len(said) == 1
