"""Where embeddings and what goes with them are written, and what may not be overwritten."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
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

    @property
    def trained(self) -> bool:
        """Whether there is anything to go on with: a checkpoint or a model."""
        run = Run(self.run)
        return run.checkpoint.exists() or run.model.exists()

    def require_writable(self, inputs: Sequence[Path]) -> None:
        """Refuse, before any work, to replace an input or to write where nothing can be written."""
        for path in self.written:
            refuse_replacing(path, *inputs)
            if path.is_dir():
                raise ConfigError("the output is a folder", where=str(path), fix="Name a file.")
        if self.run.exists() and not self.run.is_dir():
            raise ConfigError("the run folder is a file", where=str(self.run), fix="Choose another folder.")
        for folder in dict.fromkeys((self.embeddings.parent, self.run)):
            _check_writable(folder)

    def require_free(self, *, resume: bool, force: bool) -> None:
        """Refuse to lose what is there; nobody else writes there any more."""
        there = [str(path) for path in self.written if path.exists()]
        if force or (resume and (self.begun or not there)):
            return
        if resume:
            raise ConfigError(
                f"there is no run to go on with, but {', '.join(there)} exist",
                where=str(self.run),
                fix="Choose another out=..., or replace them with force=True.",
            )
        there += [str(self.run)] if self.begun else []
        if there:
            raise ConfigError(
                f"{', '.join(there)} exist{'s' if len(there) == 1 else ''}",
                fix="Go on with resume=True, choose another out=... or replace them with force=True.",
            )

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the run folder and the files beside ``out``; a second process is refused."""
        with Run(self.run).owned(".embed-graph.lock"), output_owned(self.embeddings):
            yield

    def state(self) -> list[tuple[int, ...] | None]:
        """What is at the paths of the outputs, to be recognised later."""
        return [_state(path) for path in self.written]

    def require_unchanged(self, before: list[tuple[int, ...] | None]) -> None:
        """Refuse to replace what came while we were at work."""
        for path, then in zip(self.written, before, strict=True):
            if _state(path) != then:
                raise _written_by_another(path)

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

    def require_column(self, clusters: Any) -> None:
        """Refuse clusters that there is no place for."""
        if clusters is not None and self.embeddings.suffix.lower() != ".parquet":
            raise ConfigError(
                "an array has no column for clusters",
                where=str(self.embeddings),
                fix="Name a file that ends in .parquet.",
            )

    def refuse_full_disk(self, needed: int) -> None:
        """Refuse to train for embeddings that there is no room for."""
        free = shutil.disk_usage(self.embeddings.parent).free
        if needed > free:
            raise NodeJEPAError(
                f"the embeddings need about {needed / 1e9:,.2f} GB and {free / 1e9:,.2f} GB are free",
                where=str(self.embeddings.parent),
                fix="Make room, choose another disk with out=... or ask for fewer columns: dim=64.",
            )


def refuse_both(*, resume: bool, force: bool) -> None:
    """Refuse to go on and to begin anew at once."""
    if resume and force:
        raise ConfigError("resume and force contradict each other", fix="Go on, or begin anew.")


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def input_files(*given: Any) -> list[Path]:
    """Those of the given sources that are files; the others are tables in memory."""
    each = [one for source in given for one in (source if isinstance(source, list | tuple) else [source])]
    return [Path(source) for source in each if isinstance(source, str | os.PathLike)]


def sha256_of(path: Path) -> str:
    """Digest of a file."""
    sha = hashlib.sha256()
    with path.open("rb") as file, progress_bar(f"Hashing {path.name}", total=path.stat().st_size) as advance:
        while block := file.read(_HASHED_AT_ONCE):
            sha.update(block)
            advance(len(block))
    return sha.hexdigest()


def described(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file."""
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}


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


@contextmanager
def claimed(out: Path, *, force: bool, manifest_only: bool = False) -> Iterator[Callable[[], None]]:
    """Hold the place of embeddings while they are made; call what is yielded before they are written.

    Embeddings that are there are not lost: their manifest and report would tell of what is gone. With
    ``manifest_only`` those that no manifest tells of may be replaced without asking.
    """
    refuse_losing(out, force=force, manifest_only=manifest_only)
    with output_owned(out):
        before = _state(out)

        def replace() -> None:
            if _state(out) != before:
                raise _written_by_another(out)
            manifest = _manifest_of(out)
            if manifest is not None:
                manifest.unlink()
                out.with_suffix(".html").unlink(missing_ok=True)

        yield replace


def refuse_losing(out: Path, *, force: bool, manifest_only: bool = False) -> None:
    """Refuse to write over embeddings; see :func:`claimed`."""
    manifest = _manifest_of(out)
    if force or not out.exists() or (manifest_only and manifest is None):
        return
    raise ConfigError(
        f"{out} exists" + (f", and {manifest} tells how its embeddings were made" if manifest else ""),
        fix="Choose another out=..., or replace it with force=True.",
    )


def _written_by_another(path: Path) -> ConfigError:
    return ConfigError(
        "somebody else has written the output in the meantime",
        where=str(path),
        fix="The trained model is kept: move the file away and go on with resume=True.",
    )


def _manifest_of(out: Path) -> Path | None:
    path = out.with_suffix(".json")
    manifest = read_manifest(path)
    return path if manifest is not None and manifest.embeddings.file == out.name else None
