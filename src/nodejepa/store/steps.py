"""Work in steps that are done or not: what a killed process has finished is not done again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodejepa.files import parse_json, write_json

_FILE = "progress.json"


class Steps:
    """The folder in which a store is made, and the steps that were finished there.

    Args:
        folder: is emptied where it holds steps of other work.
        of: says what is made of what; work goes on only where it is the same.
    """

    def __init__(self, folder: Path, of: dict[str, Any]) -> None:
        self.folder, self._of = folder, of
        content = self._read()
        self.resumed = content.get("of") == of
        if not self.resumed:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            content = {}
        self._done: dict[str, Any] = content.get("steps", {})

    def _read(self) -> dict[str, Any]:
        try:
            content = parse_json((self.folder / _FILE).read_bytes())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) and isinstance(content.get("steps"), dict) else {}

    def run(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The facts that ``work`` found out: now, or when the step was finished before."""
        before = self._done.get(name)
        if before is not None and self._files() >= before["files"].items():
            facts: dict[str, Any] = before["facts"]
            return facts
        self._done = {key: value for key, value in self._done.items() if key != name}
        known = {name for step in self._done.values() for name in step["files"]}
        facts = work()
        for path in self.folder.iterdir():
            if path.name not in known:
                with path.open("rb+") as file:
                    os.fsync(file.fileno())  # what is called finished must survive the power going off
        self._done[name] = {"facts": facts, "files": dict(self._files())}
        write_json(self.folder / _FILE, {"of": self._of, "steps": self._done})
        return facts

    def drop(self, *names: str) -> None:
        """Remove files that no later step reads; the steps before need them no more."""
        for step in self._done.values():
            for name in names:
                step["files"].pop(name, None)
        write_json(self.folder / _FILE, {"of": self._of, "steps": self._done})
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def close(self, final: Path) -> None:
        """The finished folder takes its place."""
        (self.folder / _FILE).unlink()
        old = final.with_name(f".{final.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if final.exists():
            os.replace(final, old)
        os.replace(self.folder, final)
        shutil.rmtree(old, ignore_errors=True)

    def _files(self) -> set[tuple[str, int]]:
        return {(p.name, p.stat().st_size) for p in self.folder.iterdir() if p.name != _FILE}
