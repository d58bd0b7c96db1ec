"""Where embeddings and what goes with them are written; nothing that is there is lost unasked."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from nodejepa.errors import ConfigError, NodeJEPAError
from nodejepa.files import output_owned, remove_leftovers
from nodejepa.progress import progress_bar
from nodejepa.report.runs import read_manifest
from nodejepa.tables.embeddings import check_ending
from nodejepa.tables.inputs import refuse_replacing
from nodejepa.training.run import Run

_HASHED_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class OutputPaths:
    """The files of one graph: ``z.parquet``, and beside it ``z.json``, ``z.html`` and the folder ``z.run``.

    The manifest is written last and names the SHA-256 of the embeddings: without it, or with another digest
    in it, the embeddings are not finished.
    """

    embeddings: Path
    run: Path

    @classmethod
    def beside(cls, out: str | os.PathLike[str], run: str | os.PathLike[str] | None = None) -> Self:
        """The paths that go with that of the embeddings; its ending is checked."""
        check_ending(Path(out))
        if run is not None and not os.fspath(run):
            raise ConfigError("the run folder's path is empty", fix='Name a folder; "." is the current one.')
        return cls(Path(out), Path(out).with_suffix(".run") if run is None else Path(run))

    @property
    def manifest(self) -> Path:
        """What was done, as JSON."""
        return self.embeddings.with_suffix(".json")

    @property
    def page(self) -> Path:
        """The same for people, as HTML."""
        return self.embeddings.with_suffix(".html")

    @property
    def written(self) -> tuple[Path, ...]:
        """The files beside the run folder, in the order in which they are written."""
        return (self.embeddings, self.page, self.manifest)

    @property
    def begun(self) -> bool:
        """Whether a run was begun in the folder."""
        return (self.run / "config.json").exists()

    @contextmanager
    def held(self, inputs: Sequence[Path], *, resume: bool, force: bool) -> Iterator[Callable[[], None]]:
        """Check the paths before any work and hold them; call what is yielded before they are written."""
        for path in self.written:
            refuse_replacing(path, *inputs)
            if path.is_dir():
                raise ConfigError("the output is a folder", where=str(path), fix="Name a file.")
        if self.run.exists() and not self.run.is_dir():
            raise ConfigError("the run folder is a file", where=str(self.run), fix="Choose another folder.")
        for folder in dict.fromkeys((self.embeddings.parent, self.run)):
            _check_writable(folder)
        with Run(self.run).owned(".embed-graph.lock"), output_owned(self.embeddings):
            self.require_free(resume=resume, force=force)
            yield _unchanged_from_now(self.written)

    def require_free(self, *, resume: bool, force: bool) -> None:
        """Refuse to lose what is there, or to go on with a run that is not."""
        if resume and not self.begun and any(path.exists() for path in self.written):
            raise ConfigError(
                "there is no run to go on with, but there are files of its name",
                where=str(self.run),
                fix="Choose another out=..., or replace them with force=True.",
            )
        refuse_existing([*self.written, *([self.run] if self.begun else [])], resume=resume, force=force)

    def begin(self, *, force: bool) -> None:
        """Clear away what killed processes left half-written and, if asked, the run itself."""
        for path in self.written:
            remove_leftovers(path)
        if force:
            run = Run(self.run)
            # the model first: whatever else is left of it then, nothing can be taken for a finished run
            for file in (run.model, run.checkpoint, self.run / "history.jsonl", self.run / "config.json"):
                file.unlink(missing_ok=True)

    @contextmanager
    def abandoned_if_refused(self) -> Iterator[None]:
        """Leave nothing of a new run that was refused before its first epoch: it would be in the way."""
        run, new = Run(self.run), not self.begun
        try:
            yield
        except NodeJEPAError:
            kept = (run.checkpoint, run.model, self.run / "history.jsonl")
            if new and not any(path.exists() for path in kept):
                for name in ("config.json", "schema.json"):
                    (self.run / name).unlink(missing_ok=True)
            raise

    def refuse_full_disk(self, needed: int) -> None:
        """Refuse to train for embeddings that there is no room for."""
        free = shutil.disk_usage(self.embeddings.parent).free
        if needed > free:
            raise NodeJEPAError(
                f"the embeddings need about {needed / 1e9:,.2f} GB and {free / 1e9:,.2f} GB are free",
                where=str(self.embeddings.parent),
                fix="Make room, choose another disk with out=... or ask for fewer columns: dim=64.",
            )


def refuse_existing(paths: Iterable[Path], *, force: bool, resume: bool | None = None) -> None:
    """Refuse to replace what is there unasked; ``resume`` is given where one can go on with it."""
    if resume and force:
        raise ConfigError("resume and force contradict each other", fix="Go on, or begin anew.")
    there = [str(path) for path in paths if path.exists()]
    if there and not (resume or force):
        raise ConfigError(
            f"{', '.join(there)} exist{'s' if len(there) == 1 else ''}",
            fix=("" if resume is None else "Go on with resume=True, or: ")
            + "Choose another out=..., or replace what is there with force=True.",
        )


@contextmanager
def claimed(out: Path, inputs: Sequence[Path], *, force: bool) -> Iterator[Callable[[], None]]:
    """Hold the place of a file while what goes into it is made; call what is yielded before it is written.

    What is there is replaced by ``force`` only. A manifest and a report that describe it are removed then.
    """
    refuse_replacing(out, *inputs)
    refuse_existing([out], force=force)
    with output_owned(out):
        require_unchanged = _unchanged_from_now([out])

        def replace() -> None:
            require_unchanged()
            path = out.with_suffix(".json")
            manifest = read_manifest(path)
            if manifest is not None and manifest.embeddings.file == out.name:
                path.unlink()
                out.with_suffix(".html").unlink(missing_ok=True)

        yield replace


def _unchanged_from_now(paths: Sequence[Path]) -> Callable[[], None]:
    """A check to be made before the paths are written: refuses to replace what came in the meantime."""

    def state(path: Path) -> tuple[int, ...] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    before = [state(path) for path in paths]

    def check() -> None:
        for path, then in zip(paths, before, strict=True):
            if state(path) != then:
                raise ConfigError(
                    "somebody else has written the output in the meantime",
                    where=str(path),
                    fix="The trained model is kept: move the file away and go on with resume=True.",
                )

    return check


def input_files(*given: Any) -> list[Path]:
    """Those of the given sources that are files; the others are tables in memory."""
    each = [one for source in given for one in (source if isinstance(source, list | tuple) else [source])]
    return [Path(source) for source in each if isinstance(source, str | os.PathLike)]


def described(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file."""
    sha, size = hashlib.sha256(), path.stat().st_size
    with path.open("rb") as file, progress_bar(f"Hashing {path.name}", total=size) as advance:
        while block := file.read(_HASHED_AT_ONCE):
            sha.update(block)
            advance(len(block))
    return {"file": path.name, "bytes": size, "sha256": sha.hexdigest()}


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise NodeJEPAError(
            f"nothing can be written here: {error.strerror or error}",
            where=str(folder),
            fix="Check the path, its permissions and the free space, or choose another one.",
        ) from None
