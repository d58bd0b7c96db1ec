"""Processes to kill, forked from one that has loaded the libraries, once for the tests of a process.

In place of ``python -c code``, where the point is a process of its own and not how it starts.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

_FROM = multiprocessing.get_context("forkserver")
_FROM.set_forkserver_preload(
    ["torch._dynamo", "nodejepa.cli", "nodejepa.methods", "nodejepa.workflow", "nodejepa.tables.prepare"]
)


class Forked:
    """Runs ``code`` with these ``arguments`` from here on; ``wait`` gives its exit code and what it said."""

    def __init__(self, code: str, *arguments: object, env: dict[str, str] | None = None) -> None:
        words = ["-c", *map(str, arguments)]
        descriptor, self._said = tempfile.mkstemp()
        os.close(descriptor)
        given = (code, words, env or dict(os.environ), os.getcwd(), self._said)
        self._process = _FROM.Process(target=_run, args=given)
        self._process.start()

    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.is_alive()

    def send_signal(self, number: int) -> None:
        """As :meth:`subprocess.Popen.send_signal`."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self) -> tuple[int, str]:
        self._process.join()
        said = Path(self._said).read_text()
        Path(self._said).unlink()
        assert self._process.exitcode is not None
        return self._process.exitcode, said


def _run(code: str, words: list[str], env: dict[str, str], folder: str, said: str) -> None:
    with open(said, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = words
    exec(compile(code, "forked", "exec"), {"__name__": "__main__"})
