"""``embed_graph``: a user's files or graph store in, embeddings out, with an account of what was done."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.config import DEFAULT_METHOD, to_dict
from nodejepa.diagnostics import Diagnostics, RowArray, diagnose, sampled_rows
from nodejepa.errors import ConfigError, NodeJEPAError
from nodejepa.evaluation.clusters import Clusters, agreement, check_count, find_clusters
from nodejepa.files import refusals, write_json
from nodejepa.graph_checks import Features
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.sparse import to_dense
from nodejepa.progress import announce_duration, progress_bar, timed
from nodejepa.provenance import versions
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
_BYTES_PER_VALUE = 4
_NOT_SCORED = (
    "Not scored: the embeddings were written first, and scoring had not ended when this was. "
    "Go on with resume=True, or leave scores out with score=False."
)


@dataclass(frozen=True, eq=False)
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
    clusters: Clusters | None = None
    scores: Scores | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> npt.NDArray[np.integer[Any]] | None:
        """The class of every node, -1 where unknown."""
        return self.inspection.data.labels

    def make_manifest(self) -> dict[str, Any]:
        """Plain values, ready for JSON; all files it names must be written."""
        estimator, paths, groups = self.estimator, self.paths, self.clusters
        agreed = {} if groups is None or self.labels is None else agreement(groups, self.labels)
        names = ("embeddings", "run")
        written: dict[str, Any] = {name: self.manifest[name] for name in names if name in self.manifest}
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
            "features": self.inspection.data.schema.summary(),
            "use": None if self.inspection.data.choice is None else self.inspection.data.choice.to_dict(),
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
            "clusters": None if groups is None else groups.to_dict() | agreed,
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
    run: str | os.PathLike[str] | None = None,
    method: str = DEFAULT_METHOD,
    preset: str = "default",
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    dim: int | None = None,
    clusters: int | str | None = None,
    report: bool = True,
    score: bool = True,
    finetune: bool = True,
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
        out: the embeddings, ``.parquet`` (with ids, sides and labels) or ``.npy``. The manifest (``.json``)
            and the report (``.html``) go beside it.
        run: folder of the model; beside ``out`` if not given.
        method: a name in :data:`nodejepa.METHODS` of a method that needs no labels.
        preset: of the method.
        settings: changes by dotted name, such as ``{"epochs": 100}``.
        seed: of everything random.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        dim: columns; of wider embeddings the leading principal components are kept, and by the model, too.
        clusters: also put every node into one of so many groups (``"auto"``: a number chosen without
            labels): a column ``cluster`` of the parquet file.
        report: whether to write the HTML report.
        score: whether to score the embeddings where there are labels.
        finetune: whether scoring also fine-tunes the encoder of a graph in memory.
        resume: go on with a run that was killed.
        force: replace what is there.
        memory_limit: gigabytes the process may take; what is available if not given.
        use: what embeddings are made of: the ``"columns"`` of the nodes, the ``"structure"`` of the graph,
            ``"both"``, or ``"auto"``: validation labels choose, or a rule where there are none. If not
            given, the columns where there are some.
        announce: called with the data report before training begins.
        logging: how often to checkpoint.
        group: processes that fit and embed a graph store together; the others call :func:`help_to_embed`.
        options: single options of ``reading`` by their names: ``source``, ``labels``, ``directed``, ...
    """
    paths, reading = OutputPaths.beside(out, run), (reading or ReadingOptions()).changed(options)
    estimator = make_trainable(method, preset=preset, settings=settings, seed=seed, device=device, dim=dim)
    estimator.memory_limit, estimator.process_group = memory_limit, group
    if clusters is not None:
        check_count(clusters)
        if paths.embeddings.suffix.lower() != ".parquet":
            fix = "Name a file that ends in .parquet."
            raise ConfigError("an array has no column for clusters", where=str(out), fix=fix)
    seconds: dict[str, float] = {}
    inputs = [] if StoredGraph.is_at(edges) else input_files(edges, nodes)
    with paths.held(inputs, resume=resume, force=force) as require_unchanged, _kept_warnings() as said:
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
        paths.refuse_full_disk(found.data.graph.num_nodes * _bytes_per_node(estimator, found.data))
        paths.begin(force=force)
        _train(estimator, found.data, paths, seconds, resume=resume, logging=logging)
        graph, scratch = found.data.graph, paths.embeddings.parent
        with refusals(paths.embeddings):
            with timed(seconds, "embedding"), progress_bar("Embedding"):
                z = estimator.transform(graph, scratch=scratch)
                estimator.process_group = SINGLE  # the others have done their share
                if not isinstance(graph, StoredGraph) and not isinstance(z, np.ndarray):
                    z = to_dense(z)
                diagnostics = diagnose(sampled_rows(z) if isinstance(graph, StoredGraph) else z)
            groups = None
            if clusters is not None:
                with timed(seconds, "clustering"):
                    groups = find_clusters(z, clusters, seed=seed)
            scored = score and found.data.labels is not None
            made = EmbeddedGraph(z, found, estimator, preset, paths, diagnostics, groups, seconds=seconds)
            made = replace(made, warnings=(*said, *([_NOT_SCORED] if scored else [])))
            with timed(seconds, "writing"):
                require_unchanged()
                # until the new one is there, nothing counts as finished
                paths.manifest.unlink(missing_ok=True)
                paths.page.unlink(missing_ok=True)
                found.data.write_embeddings(
                    paths.embeddings, z, {} if groups is None else {"cluster": groups.assigned}
                )
                shown = None
                if report:
                    with progress_bar("Drawing the map"):
                        shown = GraphMap.of(made)
        made = _written(made, shown)
        if not scored:
            return made
        made = replace(made, warnings=tuple(said))
        with timed(seconds, "scoring"):
            made = _scored(made, finetune, group)
        return _written(made, shown)


def help_to_embed(
    store: Path,
    group: ProcessGroup,
    *,
    out: Path,
    run: Path | None = None,
    memory_limit: float | None = None,
    score: bool = True,
    **trained: Any,
) -> None:
    """Do a share of :func:`embed_graph`, which the first process of the group calls, and which writes.

    ``trained``: the arguments of :func:`nodejepa.workflow.make_trainable`, the same in all processes.
    """
    estimator = make_trainable(**trained)
    estimator.memory_limit, estimator.process_group = memory_limit, group
    paths, graph = OutputPaths.beside(out, run), StoredGraph(store)
    paths.embeddings.parent.mkdir(parents=True, exist_ok=True)
    estimator.fit(graph, out=paths.run).transform(graph, scratch=paths.embeddings.parent)
    if score:
        help_to_score(estimator, graph, group)


def _train(
    estimator: Estimator,
    data: UserGraph,
    paths: OutputPaths,
    seconds: dict[str, float],
    *,
    resume: bool,
    logging: Logging | None,
) -> None:
    """Train in the run folder, which says how the graph was read; the seconds are those of all processes."""
    with timed(seconds, "structure"):
        estimator.prepare(data.graph)
    if Run(paths.run).refuse_begun(resume=True):
        data.schema.require_same(paths.run)  # beside graph and settings, it is what makes two runs the same
    else:
        data.schema.save(paths.run)  # before training: no model is ever without it
    logging = logging or Logging(description=f"Training {estimator.name}")
    with paths.abandoned_if_refused():
        estimator.fit(data.graph, out=paths.run, resume=resume, logging=logging)
    # of the whole training, also that of a process that was killed
    seconds["training"] = round(sum(record["seconds"] for record in estimator.history_), 3)


def _scored(made: EmbeddedGraph, tune: bool, group: ProcessGroup) -> EmbeddedGraph:
    """With scores, or with the reason why there are none."""
    plan = made.inspection.plan
    announce_duration("Scoring (the embeddings are written; Ctrl-C keeps them)", plan.scoring_seconds)
    try:
        data = made.inspection.data
        found = score_embeddings(made.estimator, data, made.embeddings, tune=tune, group=group)
        return replace(made, scores=found)
    except KeyboardInterrupt:
        kept = f"{made.paths.embeddings}, the model and the report are written and stay."
        raise ScoringInterrupted(f"Stopped while scoring: {kept}") from None
    except (NodeJEPAError, OSError, MemoryError) as error:  # too few labels, a full disk
        return replace(made, warnings=(*made.warnings, f"No scores: {error}"))


def _written(made: EmbeddedGraph, shown: GraphMap | None) -> EmbeddedGraph:
    """Report, if there is one, and then the manifest, which has its digest."""
    if shown is not None:
        with progress_bar("Writing the report"):
            write_report(graph_report(made, shown), made.paths.page)
    made = replace(made, manifest=made.make_manifest())
    write_json(made.paths.manifest, made.manifest)
    return made


def _bytes_per_node(estimator: Estimator, data: UserGraph) -> int:
    """On disk: the embeddings; of a store all columns where few are kept."""
    width = estimator.width(data.graph)
    kept = min(width, estimator.max_columns or width)
    if not isinstance(data.graph, StoredGraph):
        return _BYTES_PER_VALUE * kept
    beside = width if kept < width else 0
    return _BYTES_PER_VALUE * (kept + beside)


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
