"""``embed_graph``: a user's files or graph store in, embeddings out; and where all that is written goes.

Nothing that is there is lost unasked.
"""

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from nodejepa.config import DEFAULT_METHOD
from nodejepa.diagnostics import Diagnostics, RowArray, diagnose, sampled_rows
from nodejepa.errors import ConfigError, NodeJEPAError
from nodejepa.files import output_owned, refusals, remove_leftovers
from nodejepa.graph_checks import Features
from nodejepa.machine import announce_duration, progress_bar, timed
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.sparse import to_dense
from nodejepa.report.runs import read_manifest
from nodejepa.tables import ReadingOptions, StoredGraph, is_store
from nodejepa.tables.embeddings import check_ending
from nodejepa.tables.table import refuse_replacing
from nodejepa.training.distributed import SINGLE, ProcessGroup
from nodejepa.training.logger import Logging
from nodejepa.training.run import Run
from nodejepa.workflow.read import Inspection, UserGraph, input_files, inspect_graph, make_trainable
from nodejepa.workflow.scores import EmbeddedGraph, GraphMap, help_to_score, score_embeddings

_NOT_SCORED = (
    "Not scored: the embeddings were written first, and scoring had not ended when this was. "
    "Go on with resume=True, or leave scores out with score=False."
)


class ScoringInterrupted(KeyboardInterrupt):
    """Ctrl-C while embeddings were scored: they, the model and the report are written."""


def embed_graph(
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    out: str | os.PathLike[str],
    method: str = DEFAULT_METHOD,
    preset: str = "default",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    dim: int | None = None,
    report: bool = True,
    score: bool = True,
    resume: bool = False,
    force: bool = False,
    memory_limit: float | None = None,
    use: str | None = None,
    announce: Callable[[Inspection], None] | None = None,
    logging: Logging | None = None,
    group: ProcessGroup = SINGLE,
    **options: Any,
) -> EmbeddedGraph:
    """Read a graph, train an encoder on it without labels, write its embeddings, then score them.

    The embeddings, the model, the report with its map and the manifest are written before the first
    classifier is fitted. Scores are added to report and manifest.

    Args:
        edges: a file of edges, as in :func:`nodejepa.read_graph`, or a graph store that `nodejepa prepare`
            wrote. A store stays on disk and is scored if it has labels.
        nodes: a file of nodes. Without one, nodes get structural features.
        reading: how the files are read; see :class:`nodejepa.tables.ReadingOptions`.
        out: the embeddings, ``.parquet`` (with ids, sides and labels) or ``.npy``. The manifest (``.json``),
            the report (``.html``) and the folder of the model (``.run``) go beside it.
        method: a name in :data:`nodejepa.METHODS` of a method that needs no labels.
        preset: a named set of settings of the method.
        settings: changes by dotted name, such as ``{"epochs": 100}``.
        seed: the random seed.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        dim: number of columns; the leading principal components of wider embeddings are kept.
        report: whether to write the HTML report.
        score: whether to score the embeddings where there are labels.
        resume: continue a run that was killed.
        force: replace existing output files.
        memory_limit: most memory to use, in GB; by default the free memory.
        use: the input features: ``"columns"`` of the node table, ``"structure"`` of the graph, ``"both"`` or
            ``"auto"``, the default for files: validation labels choose, or a rule if there are no labels
            (:func:`nodejepa.choose_features`). The features of a graph store are fixed.
        announce: called with the data report before training begins, in place of its warnings.
        logging: how often to checkpoint.
        group: processes that fit and embed a graph store together; the others call :func:`help_to_embed`.
        options: single options of ``reading`` by their names: ``source``, ``labels``, ``directed``, ...
    """
    paths, reading = OutputPaths.beside(out), (reading or ReadingOptions()).changed(options)
    estimator = make_trainable(method, preset=preset, settings=settings, seed=seed, device=device, dim=dim)
    estimator.memory_limit, estimator.process_group = memory_limit, group
    seconds: dict[str, float] = {}
    stored = is_store(edges)
    inputs, use = ([], use) if stored else (input_files(edges, nodes), use or "auto")
    with paths.held(inputs, resume=resume, force=force), _kept_warnings() as said:
        found = inspect_graph(
            edges,
            nodes,
            reading,
            estimator=estimator,
            memory_limit=memory_limit,
            seconds=seconds,
            score=score,
            use=use,
        )
        if announce is not None:
            announce(found)
        found.require_usable()
        if announce is None:
            warn_of(found.warnings())
        data = found.data
        paths.refuse_full_disk(
            np.dtype(np.float32).itemsize * data.graph.num_nodes * estimator.width(data.graph)
        )
        paths.begin(force=force)
        train(estimator, data, paths.run, seconds, resume=resume, logging=logging)
        with refusals(paths.embeddings):
            with timed(seconds, "embedding"):
                z, diagnostics = embedded(estimator, data, paths.embeddings.parent)
            estimator.process_group = SINGLE  # the others have done their share
            made = EmbeddedGraph(z, found, estimator, preset, paths, diagnostics, seconds=seconds)
            scored = score and data.labels is not None
            made.warnings = (*said, *([_NOT_SCORED] if scored else []))
            drawn = None
            with timed(seconds, "writing"):
                paths.replace(resume=resume, force=force)
                data.write_embeddings(paths.embeddings, z)
                if report:
                    with progress_bar("Drawing the map"):
                        drawn = GraphMap.of(made)
        made.write(drawn)
        if not scored:
            return made
        announce_duration("Scoring (embeddings are written; Ctrl-C keeps them)", found.plan.scoring_seconds)
        try:
            with timed(seconds, "scoring"):
                made.scores = score_embeddings(estimator, data, z, group=group)
            made.warnings = tuple(said)
        except KeyboardInterrupt:
            kept = f"{paths.embeddings}, the model and the report are written and stay."
            raise ScoringInterrupted(f"Stopped while scoring: {kept}") from None
        except (NodeJEPAError, OSError, MemoryError) as error:  # too few labels, a full disk
            made.warnings = (*said, f"No scores: {error}")
        made.write(drawn)
        if announce is None:
            warn_of(made.warnings[len(said) :])
        return made


def warn_of(said: Iterable[str]) -> None:
    """Show warnings of a report at the line that called the function that calls this."""
    for warning in said:
        warnings.warn(warning, stacklevel=3)


@contextmanager
def _kept_warnings() -> Iterator[list[str]]:
    """Warnings are shown as ever, and collected for the manifest."""
    said: list[str] = []
    shown = warnings.showwarning

    def keep(message: Warning | str, *rest: Any, **more: Any) -> None:
        if str(message) not in said:
            said.append(str(message))
        shown(message, *rest, **more)

    warnings.showwarning = keep
    try:
        yield said
    finally:
        warnings.showwarning = shown


def help_to_embed(
    store: Path,
    group: ProcessGroup,
    *,
    out: Path,
    memory_limit: float | None = None,
    score: bool = True,
    **trained: Any,
) -> None:
    """Do a share of :func:`embed_graph`, which the first process of the group calls, and which writes.

    ``trained``: the arguments of :func:`nodejepa.workflow.make_trainable`, the same in all processes.
    """
    estimator = make_trainable(**trained)
    estimator.memory_limit, estimator.process_group = memory_limit, group
    paths, graph = OutputPaths.beside(out), StoredGraph(store)
    paths.embeddings.parent.mkdir(parents=True, exist_ok=True)
    estimator.fit(graph, out=paths.run).transform(graph, scratch=paths.embeddings.parent)
    if score:
        help_to_score(estimator, graph, group)


def train(
    estimator: Estimator,
    data: UserGraph,
    run: Path,
    seconds: dict[str, float] | None = None,
    *,
    resume: bool = False,
    logging: Logging | None = None,
) -> None:
    """Learn in a run folder, which says how the graph was read; the seconds are those of all processes."""
    seconds = {} if seconds is None else seconds
    with timed(seconds, "structure"):
        estimator.prepare(data.graph)
    if data.schema is not None and estimator.process_group.leads:
        if Run(run).refuse_begun(resume=True):
            data.schema.require_same(run)  # beside graph and settings, it is what makes two runs the same
        else:
            data.schema.save(run)  # before training: no model is ever without it
    estimator.fit(data.graph, out=run, resume=resume, logging=logging)
    # of the whole training, also that of a process that was killed
    seconds["training"] = round(sum(record["seconds"] for record in estimator.history_), 3)


def embedded(
    estimator: Estimator, data: UserGraph, scratch: Path | None = None
) -> tuple[Features | RowArray, Diagnostics]:
    """Embeddings of all nodes, by rows where the graph is on disk, and whether they are sound."""
    with progress_bar("Embedding"):
        z = estimator.transform(data.graph, scratch=scratch)
        if isinstance(data.graph, StoredGraph):
            return z, diagnose(sampled_rows(z))
        dense: Features = z if isinstance(z, np.ndarray) else to_dense(z)
        return dense, diagnose(dense)


# ---------------------------------------------------------------- where it is written


@dataclass(frozen=True)
class OutputPaths:
    """The files of one graph: ``z.parquet``, and beside it ``z.json``, ``z.html`` and the folder ``z.run``.

    The manifest is written last and names the SHA-256 of the embeddings: without it, or with another digest
    in it, the embeddings are not finished.
    """

    embeddings: Path
    page: Path  # what was done, for people
    manifest: Path  # the same as JSON
    run: Path  # the folder of the model

    @classmethod
    def beside(cls, out: str | os.PathLike[str]) -> Self:
        """The paths that go with that of the embeddings; its ending is checked."""
        check_ending(out)
        return cls(Path(out), *(Path(out).with_suffix(ending) for ending in (".html", ".json", ".run")))

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
        folder = self.embeddings.parent
        with refusals(folder):  # said now, not after the work
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
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
