"""``embed_graph``: a user's files in, embeddings out, with an account of everything in between."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.config import DEFAULT_METHOD
from nodejepa.diagnostics import diagnose
from nodejepa.errors import ConfigError, EvaluationError
from nodejepa.evaluation.clusters import Clusters, agreement, check_count, find_clusters
from nodejepa.files import write_json
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.sparse import to_dense
from nodejepa.progress import progress_bar, timed
from nodejepa.report import write_report
from nodejepa.report.maps import require_umap
from nodejepa.tables import ReadingOptions, StoredGraph, write_embeddings
from nodejepa.training.logger import Logging
from nodejepa.workflow.inspect import Inspection, inspect_graph, make_trainable
from nodejepa.workflow.page import graph_report
from nodejepa.workflow.places import Places, input_files
from nodejepa.workflow.run_schema import RunSchema, make_manifest, train_into
from nodejepa.workflow.scores import Found, Scores, score_embeddings

_BYTES_PER_VALUE = 4


@dataclass(frozen=True, eq=False)
class EmbeddedGraph:
    """What :func:`embed_graph` made and where it is; ``manifest`` is the content of the JSON file."""

    embeddings: npt.NDArray[np.float32]
    inspection: Inspection
    scores: Scores | None
    manifest: dict[str, Any]
    places: Places
    clusters: Clusters | None = None

    @property
    def labels(self) -> npt.NDArray[np.int64] | None:
        """The class of every node, -1 where unknown."""
        return self.inspection.loaded.labels


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
    umap: bool = False,
    finetune: bool = True,
    resume: bool = False,
    force: bool = False,
    memory_limit: float | None = None,
    announce: Callable[[Inspection], None] | None = None,
    logging: Logging | None = None,
    **options: Any,
) -> EmbeddedGraph:
    """Read a graph from files, train an encoder on it without labels, write its embeddings.

    Args:
        edges: a file of edges, as in :func:`nodejepa.read_graph`.
        nodes: a file of nodes; without one they are described by their place in the graph.
        reading: how the files are read; see :class:`nodejepa.tables.ReadingOptions`.
        out: the embeddings, ``.parquet`` (with ids) or ``.npy``. The manifest (``.json``, written last) and
            the report (``.html``) go beside it.
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
        umap: whether its map has a UMAP as well; needs the extra ``nodejepa[umap]``.
        finetune: whether to fine-tune where there are labels.
        resume: go on with a run that was killed.
        force: replace what is there.
        memory_limit: gigabytes the process may take; what is available if not given.
        announce: called with the data report before training begins.
        logging: how often to checkpoint.
        options: single options of ``reading`` by their names: ``source``, ``labels``, ``directed``, ...
    """
    if StoredGraph.is_at(edges):
        raise ConfigError(
            "this is a graph store, which is not read into memory",
            where=str(edges),
            fix="Call nodejepa.workflow.embed_stored_graph(store, out=...).",
        )
    if umap:
        require_umap()
    places, reading = Places.beside(out, run), (reading or ReadingOptions()).changed(options)
    estimator = make_trainable(method, preset=preset, settings=settings, seed=seed, device=device, dim=dim)
    check_count(clusters)
    places.require_column(clusters)
    places.check(input_files(edges, nodes), resume=resume, force=force)
    seconds: dict[str, float] = {}
    with places.owned(), _heard() as said:
        # again, now that nobody else writes there
        places.check(input_files(edges, nodes), resume=resume, force=force)
        before = places.state()
        inspection = inspect_graph(
            edges, nodes, reading, estimator=estimator, memory_limit=memory_limit, seconds=seconds
        )
        if announce is not None:
            announce(inspection)
        inspection.require_usable()
        inspection.plan.require_fit()
        graph, schema = inspection.loaded.graph, RunSchema.of(inspection.loaded, reading)
        width = min(estimator.width(graph), dim or estimator.width(graph))
        places.refuse_full_disk(_BYTES_PER_VALUE * graph.num_nodes * width)
        places.begin(force=force)
        train_into(estimator, graph, schema, places, seconds, resume=resume, logging=logging)
        with timed(seconds, "embedding"), progress_bar("Embedding"):
            z = estimator.transform(graph)
            embeddings = z if isinstance(z, np.ndarray) else to_dense(z)
            diagnostics = diagnose(embeddings)
        groups = None
        if clusters is not None:
            with timed(seconds, "clustering"):
                groups = find_clusters(embeddings, clusters, seed=seed)
        scores, problem = None, None
        if inspection.loaded.labels is not None:
            with timed(seconds, "scoring"):
                scores, problem = _score(estimator, inspection, embeddings, finetune)
        found = Found(estimator, diagnostics, scores, [*said, *([problem] if problem else [])])
        with timed(seconds, "writing"):
            places.require_unchanged(before)
            places.manifest.unlink(missing_ok=True)  # until the new one is there, nothing counts as finished
            places.page.unlink(missing_ok=True)
            with progress_bar("Writing embeddings"):
                columns = dict(inspection.loaded.more_columns)
                if groups is not None:
                    columns["cluster"] = groups.assigned.tolist()
                write_embeddings(places.embeddings, graph, embeddings, columns)
            if report:
                with progress_bar("Writing the report"):
                    page = graph_report(found, inspection, embeddings, groups, places.embeddings, umap=umap)
                    write_report(page, places.page)
        labels = inspection.loaded.labels
        agreed = {} if groups is None or labels is None else agreement(groups, labels)
        manifest = make_manifest(
            found,
            places,
            schema,
            embeddings.shape,
            read=inspection.to_dict(),
            preset=preset,
            seconds=seconds,
            more={
                "clusters": None if groups is None else groups.to_dict() | agreed,
                "warnings": [*inspection.warnings(), *found.warnings],
            },
        )
        write_json(places.manifest, manifest)
    return EmbeddedGraph(embeddings, inspection, scores, manifest, places, groups)


def _score(
    estimator: Estimator, inspection: Inspection, embeddings: npt.NDArray[np.float32], tune: bool
) -> tuple[Scores | None, str | None]:
    """The scores, or why there are none: too few labels must not cost anybody the embeddings."""
    loaded = inspection.loaded
    assert loaded.labels is not None
    try:
        names = loaded.class_names or ()
        return score_embeddings(estimator, loaded.graph, embeddings, loaded.labels, names, tune=tune), None
    except EvaluationError as error:
        return None, f"No scores: {error}"


@contextmanager
def _heard() -> Iterator[list[str]]:
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
