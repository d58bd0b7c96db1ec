from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import time
import warnings

import pytest
from numba.core import caching
from tests.forked import Forked

from nodejepa.compiled import compiled
from nodejepa.errors import NodeJEPAError, TrainingError
from nodejepa.files import hold, lock_file
from nodejepa.training.run import Run


def test_a_lock_is_held_by_one_at_a_time_and_what_the_file_holds_is_kept(tmp_path):
    path = tmp_path / "lock"
    path.write_text("kept")
    with lock_file(path, wait=False):
        assert lock_file(path, wait=False) is None
    lock_file(path, wait=True).close()
    assert path.read_text() == "kept"


@pytest.mark.slow
def test_the_lock_of_a_dead_process_is_free(tmp_path):
    path = tmp_path / "lock"
    code = (
        "import pathlib, sys, time; from nodejepa.files import lock_file\n"
        "f = lock_file(sys.argv[1], wait=False); pathlib.Path(sys.argv[1] + '.held').touch(); time.sleep(600)"
    )
    holder = Forked(code, path)
    while not path.with_name("lock.held").exists():
        assert holder.runs()
        time.sleep(0.01)
    assert lock_file(path, wait=False) is None
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    lock_file(path, wait=False).close()


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_refused_and_its_target_left_alone(tmp_path, exists):
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


def test_what_cannot_be_opened_or_locked_is_no_other_process(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    with pytest.raises(NodeJEPAError, match="Is a directory"):
        lock_file(tmp_path / "folder", wait=False)
    with pytest.raises(NodeJEPAError, match="No such file"):
        lock_file(tmp_path / "missing" / "lock", wait=False)

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(NodeJEPAError, match="files cannot be locked there") as caught:
        lock_file(tmp_path / "lock", wait=False)
    assert str(tmp_path / "lock") in caught.value.where
    with pytest.raises(TrainingError, match="files cannot be locked there"), Run(tmp_path).owned():
        pass


def test_a_file_that_is_open_already_can_be_held(tmp_path):
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
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        kept = [compiled()(add) for _ in range(3)]
    (once,) = said
    assert re.search("cannot be kept .*NUMBA_CACHE_DIR", str(once.message))
    assert kept[0](2, 3) == 5


def test_it_is_kept_and_found_again(monkeypatch, tmp_path):
    monkeypatch.setattr(caching.config, "CACHE_DIR", str(tmp_path))
    assert compiled()(add)(2, 3) == 5
    again = compiled()(add)
    assert again(4, 5) == 9
    assert sum(again.stats.cache_hits.values()) == 1
