"""Where embeddings and what goes with them are written; nothing that is there is lost unasked."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from nodejepa.errors import ConfigError, NodeJEPAError
from nodejepa.files import output_owned, refusals, remove_leftovers
from nodejepa.progress import progress_bar
from nodejepa.report.runs import read_manifest
from nodejepa.tables.embeddings import check_ending
from nodejepa.tables.table import refuse_replacing
from nodejepa.training.run import Run

_HASHED_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class OutputPaths:
    """The files of one graph: ``z.parquet``, and beside it ``z.json``, ``z.html`` and the folder ``z.run``.

    The manifest is written last and names the SHA-256 of the embeddings: without it, or with another digest
    in it, the embeddings are not finished.
    """

    embeddings: Path

    @classmethod
    def beside(cls, out: str | os.PathLike[str]) -> Self:
        """The paths that go with that of the embeddings; its ending is checked."""
        check_ending(out)
        return cls(Path(out))

    @property
    def manifest(self) -> Path:
        """What was done, as JSON."""
        return self.embeddings.with_suffix(".json")

    @property
    def page(self) -> Path:
        """The same for people, as HTML."""
        return self.embeddings.with_suffix(".html")

    @property
    def run(self) -> Path:
        """Folder of the model."""
        return self.embeddings.with_suffix(".run")

    @property
    def written(self) -> tuple[Path, ...]:
        """The files beside the run folder, in the order in which they are written."""
        return (self.embeddings, self.page, self.manifest)

    @property
    def begun(self) -> bool:
        """Whether there is anything in the run folder to go on with."""
        return Run(self.run).model.exists() or Run(self.run).checkpoint.exists()

    @contextmanager
    def held(self, inputs: Sequence[Path], *, resume: bool | None, force: bool) -> Iterator[None]:
        """Check the paths before any work and hold them; ``resume`` is None where nothing is trained."""
        for path in self.written:
            with refusals(path):  # a name that is too long, a folder that is closed
                refuse_replacing(path, *inputs)
            if path.is_dir():
                raise ConfigError("the output is a folder", where=str(path), fix="Name a file.")
        if resume is not None and self.run.exists() and not self.run.is_dir():
            raise ConfigError("the run folder is a file", where=str(self.run), fix="Choose another out=....")
        _check_writable(self.embeddings.parent)
        with output_owned(self.run):  # one lock for all that share the name
            self.require_free(resume=resume, force=force)
            yield

    def require_free(self, *, resume: bool | None, force: bool) -> None:
        """Refuse to lose what is there, or to go on with a run that is not."""
        if resume and not self.begun and any(path.exists() for path in self.written):
            raise ConfigError(
                "there is no run to go on with, but there are files of its name",
                where=str(self.run),
                fix="Choose another out=..., or replace them with force=True.",
            )
        files = self.written[:1] if resume is None else (*self.written, *([self.run] if self.begun else ()))
        refuse_existing(files, resume=resume, force=force)

    def begin(self, *, force: bool) -> None:
        """Clear away what killed processes left half-written and, if asked, the run itself."""
        for path in self.written:
            remove_leftovers(path)
        if force:
            run = Run(self.run)
            # the model first: whatever else is left of it then, nothing can be taken for a finished run
            for file in (run.model, run.checkpoint, self.run / "history.jsonl", self.run / "config.json"):
                file.unlink(missing_ok=True)

    def replace(self, *, resume: bool | None, force: bool) -> None:
        """To be called before the embeddings are written: until there is a new manifest, none counts.

        A file that another program has put there in the meantime is not replaced.
        """
        refuse_existing(self.written[: 1 if resume is None else 3], resume=resume, force=force)
        told = None if resume is not None else read_manifest(self.manifest)
        if resume is not None or (told is not None and told.embeddings.file == self.embeddings.name):
            self.manifest.unlink(missing_ok=True)
            self.page.unlink(missing_ok=True)

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
