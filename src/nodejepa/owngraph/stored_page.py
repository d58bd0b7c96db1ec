"""The HTML report on a graph on disk: of embeddings that nobody holds, a sample is shown."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from nodejepa.io import FeatureSchema
from nodejepa.io.reading_options import ReadReport
from nodejepa.nn.stored import TallRows
from nodejepa.owngraph.apply import store_facts
from nodejepa.owngraph.page import report_on
from nodejepa.owngraph.scores import Found, Scores
from nodejepa.report import Report
from nodejepa.report.maps import MAX_POINTS, SampledNodes, embedding_map
from nodejepa.report.sections import Section
from nodejepa.store import StoredGraph
from nodejepa.store.dataset import StoredDataset

_SEED = 0


def stored_report(
    found: Found, graph: StoredGraph, z: TallRows, data: StoredDataset | None, out: Path
) -> Report:
    """As :func:`nodejepa.owngraph.page.graph_report`; ``data`` are the labelled nodes, if there are some."""
    read = ReadReport(**graph.manifest.report)
    return report_on(
        found,
        graph.folder.name,
        out,
        [_map(graph, z, data, found.scores)],
        warnings=read.warnings,
        labels=None if data is None else data.labels,
        class_names=None if data is None else data.class_names,
        facts=store_facts(graph),
        schema=FeatureSchema.from_dict(dict(graph.manifest.schema)),
        read=read,
    )


def _map(graph: StoredGraph, z: TallRows, data: StoredDataset | None, scores: Scores | None) -> Section:
    """Of a sample of the nodes, of those that are scored where some are."""
    among = np.arange(graph.num_nodes) if data is None else data.nodes
    size = min(len(among), MAX_POINTS)
    drawn = np.sort(np.random.default_rng(_SEED).choice(len(among), size, replace=False))
    nodes = among[drawn]
    found = z.at(nodes)
    return embedding_map(
        SampledNodes(_ids(graph, nodes), graph.row_lengths[nodes], graph.num_nodes),
        found,
        labels=None if data is None else data.labels[drawn],
        class_names=None if data is None else data.class_names,
        predicted=None if scores is None else scores.predicted[drawn],
    )


def _ids(graph: StoredGraph, nodes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    found: list[str] = []
    for low, high in graph.spans():
        first, last = np.searchsorted(nodes, (low, high))
        if first < last:
            found += map(str, graph.ids(low, high).take(pa.array(nodes[first:last] - low)).to_pylist())
    return found
