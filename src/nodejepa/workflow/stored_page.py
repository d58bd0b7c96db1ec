"""The HTML report on a graph on disk: of embeddings that nobody holds, a sample is shown."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from nodejepa.data.stored import StoredDataset
from nodejepa.diagnostics import RowArray
from nodejepa.evaluation.clusters import Clusters
from nodejepa.report import Report
from nodejepa.report.maps import MAX_POINTS, SampledNodes, embedding_map
from nodejepa.report.sections import Section, Text
from nodejepa.tables import FeatureSchema, StoredGraph
from nodejepa.tables.options import ReadReport
from nodejepa.tables.store import stored_labels
from nodejepa.workflow.apply import store_facts
from nodejepa.workflow.page import cluster_words, report_on
from nodejepa.workflow.scores import Found, Scores

_SEED = 0


def stored_report(
    found: Found,
    graph: StoredGraph,
    z: RowArray,
    data: StoredDataset | None,
    out: Path,
    *,
    clusters: Clusters | None = None,
    umap: bool = False,
) -> Report:
    """As :func:`nodejepa.workflow.page.graph_report`; ``data`` are the labelled nodes, if there are some."""
    read, labels = ReadReport(**graph.manifest.report), stored_labels(graph)
    words = () if clusters is None else (Text((cluster_words(clusters, labels and labels.codes),)),)
    return report_on(
        found,
        graph.folder.name,
        out,
        (*words, _map(graph, z, data, found.scores, clusters, umap)),
        warnings=read.warnings,
        labels=None if data is None else data.labels,
        class_names=None if data is None else data.class_names,
        facts=store_facts(graph),
        schema=FeatureSchema.from_dict(dict(graph.manifest.schema)),
        read=read,
    )


def _map(
    graph: StoredGraph,
    z: RowArray,
    data: StoredDataset | None,
    scores: Scores | None,
    clusters: Clusters | None,
    umap: bool,
) -> Section:
    """Of a sample of the nodes, of those that are scored where some are."""
    among = np.arange(graph.num_nodes) if data is None else data.nodes
    size = min(len(among), MAX_POINTS)
    drawn = np.sort(np.random.default_rng(_SEED).choice(len(among), size, replace=False))
    nodes = among[drawn]
    found = z[nodes]
    return embedding_map(
        SampledNodes(_ids(graph, nodes), graph.row_lengths[nodes], graph.num_nodes),
        found,
        labels=None if data is None else data.labels[drawn],
        class_names=None if data is None else data.class_names,
        predicted=None if scores is None else scores.predicted[drawn],
        clusters=None if clusters is None else clusters.assigned[nodes],
        umap=umap,
    )


def _ids(graph: StoredGraph, nodes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    found: list[str] = []
    for low, high in graph.spans():
        first, last = np.searchsorted(nodes, (low, high))
        if first < last:
            found += map(str, graph.ids(low, high).take(pa.array(nodes[first:last] - low)).to_pylist())
    return found
