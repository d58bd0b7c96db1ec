"""The HTML report on a graph on disk: of embeddings that nobody holds, a sample is shown."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from nodejepa.config import flatten
from nodejepa.diagnostics import Diagnostics
from nodejepa.io import FeatureSchema
from nodejepa.io.reading_options import ReadReport
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.stored import TallRows
from nodejepa.owngraph.apply import store_facts
from nodejepa.owngraph.page import beats_the_floors, columns_table, floor_words, largest_words, score_sections
from nodejepa.owngraph.scores import Scores
from nodejepa.report import Report, footer
from nodejepa.report.charts import training_curves, verdict, what_was_found
from nodejepa.report.maps import MAX_POINTS, SampledNodes, embedding_map, error_sections
from nodejepa.report.sections import Chapter, Facts, Section, Text
from nodejepa.store import StoredGraph
from nodejepa.store.dataset import StoredDataset

_SEED = 0


def stored_report(
    graph: StoredGraph,
    estimator: Estimator,
    z: TallRows,
    diagnostics: Diagnostics,
    data: StoredDataset | None,
    scores: Scores | None,
    *,
    out: Path,
    warnings: Sequence[str] = (),
) -> Report:
    """What :func:`nodejepa.owngraph.page.graph_report` shows, as far as it needs no graph in memory.

    Args:
        graph: on disk.
        estimator: fitted.
        z: its embeddings.
        diagnostics: of them.
        data: the labelled nodes, if there are labels.
        scores: what they say, if they are enough.
        out: where the embeddings are written.
        warnings: what was said on the way.
    """
    report, name = ReadReport(**graph.manifest.report), estimator.name
    words = () if scores is None else (floor_words(scores, name), *largest_words(scores))
    doubtful = scores is not None and not beats_the_floors(scores, name)
    sections: list[Section] = [verdict(diagnostics, *words, doubtful=doubtful)]
    said = [*report.warnings, *warnings]
    if said:
        sections.append(Text(tuple(said), tone="warning"))
    if scores is not None:
        sections += score_sections(scores, name)
    sections.append(_map(graph, z, data, scores))
    if scores is not None and data is not None:
        sections += error_sections(data.labels, scores.predicted, data.class_names)
    sections.append(Facts("The graph", store_facts(graph)))
    if report.notes:
        sections.append(Text(("While reading:", *report.notes)))
    sections.append(columns_table(FeatureSchema.from_dict(dict(graph.manifest.schema)), report))
    sections += [*what_was_found(estimator), *training_curves(estimator.history_)]
    settings = {key: str(value) for key, value in flatten(estimator.config).items()}
    sections.append(Facts("Settings", {"seed": str(estimator.seed), **settings}, folded=True))
    chapter = Chapter(f"{name} on {graph.folder.name}", tuple(sections), subtitle=str(out))
    return Report(chapter.title, (chapter,), footer=footer())


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
