"""``embed_stored_graph``: a graph on disk in, embeddings out, as ``embed_graph`` does it for files."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.config import DEFAULT_METHOD
from nodejepa.data.stored import StoredDataset
from nodejepa.diagnostics import diagnose
from nodejepa.errors import EvaluationError
from nodejepa.evaluation.clusters import COMPONENT_BYTES, Clusters, agreement, check_count, find_clusters
from nodejepa.files import refusals, write_json
from nodejepa.progress import progress_bar, timed
from nodejepa.report import write_report
from nodejepa.report.maps import require_umap
from nodejepa.tables import StoredGraph
from nodejepa.tables.embeddings import stream_embeddings
from nodejepa.tables.store import stored_labels
from nodejepa.training.logger import Logging
from nodejepa.workflow.apply import blocks, sample, schema_of
from nodejepa.workflow.inspect import make_trainable
from nodejepa.workflow.places import Places
from nodejepa.workflow.run_schema import make_manifest, train_into
from nodejepa.workflow.scores import Found, Scores, score_stored
from nodejepa.workflow.stored_page import stored_report
from nodejepa.workflow.stored_plan import require_room

_BYTES_PER_VALUE = 4


@dataclass(frozen=True, eq=False)
class EmbeddedStore:
    """What :func:`embed_stored_graph` made; the embeddings, ``shape`` large, are in their file only."""

    shape: tuple[int, int]
    scores: Scores | None
    manifest: dict[str, Any]
    places: Places
    clusters: Clusters | None = None
    labels: npt.NDArray[np.int32] | None = None


def embed_stored_graph(
    store: str | os.PathLike[str],
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
    resume: bool = False,
    force: bool = False,
    memory_limit: float | None = None,
    logging: Logging | None = None,
) -> EmbeddedStore:
    """Train an encoder on a graph on disk, write its embeddings, score them where there are labels.

    Args:
        store: a folder that `nodejepa prepare` wrote; scores need one that was made with labels.
        out: the embeddings, ``.parquet`` (with ids, sides and labels) or ``.npy``; the manifest (``.json``,
            written last) and the report (``.html``) go beside it.
        run: folder of the model; beside ``out`` if not given.
        method: a name in :data:`nodejepa.METHODS` of a method that needs no labels.
        preset: of the method.
        settings: changes by dotted name, such as ``{"training.parts": 100}``.
        seed: of everything random.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        dim: columns; of wider embeddings the leading principal components are kept, and by the model, too.
        clusters: also put every node into one of so many groups (``"auto"``: a number chosen without
            labels): a column ``cluster`` of the parquet file.
        report: whether to write the HTML report.
        umap: whether its map has a UMAP as well; needs the extra ``nodejepa[umap]``.
        resume: go on with a run that was killed.
        force: replace what is there.
        memory_limit: gigabytes that may be taken; what is available if not given.
        logging: how often to checkpoint.
    """
    if umap:
        require_umap()
    places, graph = Places.beside(out, run), StoredGraph(Path(store))
    estimator = make_trainable(method, preset=preset, settings=settings, seed=seed, device=device, dim=dim)
    check_count(clusters)
    places.require_column(clusters)
    places.check([], resume=resume, force=force)
    require_room(estimator, graph, memory_limit)
    estimator.memory_limit = memory_limit
    seconds, schema = dict[str, float](), schema_of(graph)
    with places.owned(), refusals(places.embeddings):
        places.check([], resume=resume, force=force)  # now that nobody else writes there
        before = places.state()
        places.refuse_full_disk(graph.num_nodes * _bytes_per_node(estimator.width(graph), dim, clusters))
        places.begin(force=force)
        train_into(estimator, graph, schema, places, seconds, resume=resume, logging=logging)
        with timed(seconds, "embedding"), progress_bar("Embedding"):
            z = estimator.transform(graph, scratch=places.embeddings.parent)
            diagnostics = diagnose(sample(z))
        groups, labels = None, stored_labels(graph)
        if clusters is not None:
            with timed(seconds, "clustering"):
                groups = find_clusters(z, clusters, seed=seed, scratch=places.embeddings.parent)
        data, scores, warnings = None, None, list[str]()
        if labels is not None:
            with timed(seconds, "scoring"):
                try:
                    data = StoredDataset.of(graph)
                    scores = score_stored(estimator, data, z[data.nodes])
                # too few labels, or a disk too small for the floors, must not cost anybody the embeddings
                except (EvaluationError, OSError) as error:
                    warnings.append(f"No scores: {error}")
        with timed(seconds, "writing"):
            places.require_unchanged(before)
            places.manifest.unlink(missing_ok=True)  # until the new one is there, nothing counts as finished
            places.page.unlink(missing_ok=True)
            more = {} if groups is None else {"cluster": groups.assigned}
            stream_embeddings(places.embeddings, z.shape, blocks(graph, z, more))
            found = Found(estimator, diagnostics, scores, warnings)
            if report:
                page = stored_report(found, graph, z, data, places.embeddings, clusters=groups, umap=umap)
                write_report(page, places.page)
        agreed = {} if groups is None or labels is None else agreement(groups, labels.codes)
        manifest = make_manifest(
            found,
            places,
            schema,
            z.shape,
            read={
                "inputs": {"store": {"path": str(graph.folder), "content_hash": graph.content_hash}},
                "read": dict(graph.manifest.report),
            },
            preset=preset,
            seconds=seconds,
            more={
                "clusters": None if groups is None else groups.to_dict() | agreed,
                "warnings": warnings,
            },
        )
        write_json(places.manifest, manifest)
    return EmbeddedStore(z.shape, scores, manifest, places, groups, labels and labels.codes)


def _bytes_per_node(width: int, dim: int | None, clusters: Any) -> int:
    """On disk: the embeddings, all columns beside them where few are kept, and what clusters are found in."""
    kept = min(width, dim or width)
    beside = width if kept < width else 0
    return _BYTES_PER_VALUE * (kept + beside) + (COMPONENT_BYTES if clusters is not None else 0)
