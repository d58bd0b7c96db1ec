"""``embed_graph``: a user's files or graph store in, embeddings out, with an account of what was done."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.config import DEFAULT_METHOD, to_dict
from nodejepa.diagnostics import Diagnostics, RowArray, diagnose, sampled_rows
from nodejepa.errors import NodeJEPAError
from nodejepa.files import refusals, versions, write_json
from nodejepa.graph_checks import Features
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.sparse import to_dense
from nodejepa.progress import announce_duration, progress_bar, timed
from nodejepa.report import write_report
from nodejepa.tables import ReadingOptions, StoredGraph
from nodejepa.tables.embeddings import MANIFEST_FORMAT
from nodejepa.training.distributed import SINGLE, ProcessGroup
from nodejepa.training.logger import Logging
from nodejepa.training.run import Run
from nodejepa.workflow.outputs import OutputPaths, described, input_files
from nodejepa.workflow.page import GraphMap, graph_report
from nodejepa.workflow.read import Inspection, UserGraph, inspect_graph, make_trainable
from nodejepa.workflow.scores import Scores, help_to_score, score_embeddings

_VERSION = 1  # of the manifest
_NOT_SCORED = (
    "Not scored: the embeddings were written first, and scoring had not ended when this was. "
    "Go on with resume=True, or leave scores out with score=False."
)


@dataclass(eq=False)
class EmbeddedGraph:
    """What :func:`nodejepa.workflow.embed_graph` made and where it is.

    ``embeddings`` is an array, or read by rows (``z[low:high]``) where the graph is on disk; ``manifest`` is
    the content of the JSON file.
    """

    embeddings: Features | RowArray
    inspection: Inspection
    estimator: Estimator
    preset: str
    paths: OutputPaths
    diagnostics: Diagnostics
    scores: Scores | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> npt.NDArray[np.integer[Any]] | None:
        """The class of every node, -1 where unknown."""
        return self.inspection.data.labels

    def write(self, drawn: GraphMap | None) -> None:
        """The report, if it has a map, and last the manifest, which has the digests of all other files."""
        if drawn is not None:
            with progress_bar("Writing the report"):
                write_report(graph_report(self, drawn), self.paths.page)
        self.manifest = self._make_manifest()
        write_json(self.paths.manifest, self.manifest)

    def _make_manifest(self) -> dict[str, Any]:
        estimator, data, paths = self.estimator, self.inspection.data, self.paths
        written: dict[str, Any] = {
            name: self.manifest[name] for name in ("embeddings", "run") if name in self.manifest
        }
        if not written:  # else they were hashed before, and have not changed
            nodes, dimensions = self.embeddings.shape
            written = {
                "embeddings": described(paths.embeddings) | {"nodes": nodes, "dimensions": dimensions},
                "run": {"folder": str(paths.run), "model": described(paths.run / "model.safetensors")},
            }
        return {
            "format": MANIFEST_FORMAT,
            "version": _VERSION,
            **written,
            "report": described(paths.page) if paths.page.exists() else None,
            **self.inspection.to_dict(),
            "features": None if data.schema is None else data.schema.summary(),
            "use": None if data.choice is None else data.choice.to_dict(),
            "method": estimator.name,
            "preset": self.preset,
            "config": to_dict(estimator.config),
            "dim": estimator.max_columns,
            "seed": estimator.seed,
            "epochs": sum("loss" in record for record in estimator.history_),
            "found": estimator.describe() or None,
            "threads": torch.get_num_threads(),
            "versions": versions(),
            "seconds": dict(self.seconds),
            "diagnostics": self.diagnostics.to_dict(),
            "scores": None if self.scores is None else self.scores.to_dict(),
            "warnings": [*self.inspection.warnings(), *self.warnings],
        }


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
        edges: a file of edges, as in :func:`nodejepa.read_graph`, or a folder that `nodejepa prepare` wrote:
            a graph store, which stays on disk and is scored if it was made with labels.
        nodes: a file of nodes; without one they are described by their place in the graph.
        reading: how the files are read; see :class:`nodejepa.tables.ReadingOptions`.
        out: the embeddings, ``.parquet`` (with ids, sides and labels) or ``.npy``. The manifest (``.json``),
            the report (``.html``) and the folder of the model (``.run``) go beside it.
        method: a name in :data:`nodejepa.METHODS` of a method that needs no labels.
        preset: of the method.
        settings: changes by dotted name, such as ``{"epochs": 100}``.
        seed: of everything random.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        dim: columns; of wider embeddings the leading principal components are kept, and by the model, too.
        report: whether to write the HTML report.
        score: whether to score the embeddings where there are labels.
        resume: go on with a run that was killed.
        force: replace what is there.
        memory_limit: gigabytes the process may take; what is available if not given.
        use: what embeddings are made of: the ``"columns"`` of the nodes, the ``"structure"`` of the graph,
            ``"both"``, or ``"auto"``, which is the default of files: validation labels choose, or a rule
            where there are none (:func:`nodejepa.choose_features`). A graph store has its features.
        announce: called with the data report before training begins.
        logging: how often to checkpoint.
        group: processes that fit and embed a graph store together; the others call :func:`help_to_embed`.
        options: single options of ``reading`` by their names: ``source``, ``labels``, ``directed``, ...
    """
    paths, reading = OutputPaths.beside(out), (reading or ReadingOptions()).changed(options)
    estimator = make_trainable(method, preset=preset, settings=settings, seed=seed, device=device, dim=dim)
    estimator.memory_limit, estimator.process_group = memory_limit, group
    seconds: dict[str, float] = {}
    stored = StoredGraph.is_at(edges)
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
        return made


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
