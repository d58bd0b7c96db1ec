"""From a graph and its embeddings to the sections that show them: map, errors, confusion, scores by class."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import Embeddings, PrincipalAxes, check_embeddings
from nodejepa.errors import EvaluationError
from nodejepa.graph import Graph
from nodejepa.report.sections import (
    Column,
    ConfusionMatrix,
    EmbeddingMap,
    ReportTable,
    Section,
    SortableTable,
    TableCell,
)

Plane = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_TSNE_COLUMNS = 50  # leading components that t-SNE measures distances in
_TSNE_STEPS = 500
MAX_POINTS = 5000
MAX_NEIGHBOUR_POINTS = 3000  # t-SNE beyond this takes longer than a reader waits
_PCA, _TSNE = "principal components", "neighbours (t-SNE)"


def principal_plane(embeddings: Embeddings) -> Plane:
    """Centred rows on their two leading principal axes, ``[N, 2]``.

    Each axis points to where its largest entry is positive, so that the same embeddings always give the same
    picture. One column gives a line, constant embeddings a point.
    """
    return _principal_components(embeddings, 2)


def neighbour_plane(embeddings: Embeddings, *, seed: int = 0) -> Plane:
    """t-SNE (van der Maaten & Hinton 2008) of the leading principal components, started at the first two."""
    from sklearn.manifold import TSNE

    leading = _principal_components(embeddings, min(_TSNE_COLUMNS, embeddings.shape[1]))
    start = leading[:, :2]
    size = float(start[:, 0].std())
    if len(leading) < 4 or size == 0:
        return start  # too few or too equal to have neighbourhoods
    tsne = TSNE(
        init=(start / size * 1e-4).astype(np.float32),
        perplexity=min(30.0, (len(leading) - 1) / 3),
        max_iter=_TSNE_STEPS,
        random_state=seed,
    )
    return np.asarray(tsne.fit_transform(leading.astype(np.float32)), dtype=np.float64)


def _principal_components(embeddings: Embeddings, count: int) -> Plane:
    """``[N, max(count, 2)]``; axes that do not exist are zero."""
    found = PrincipalAxes.of(embeddings, count).project(embeddings)
    plane = np.zeros((len(found), max(count, 2)))
    plane[:, : found.shape[1]] = found
    return plane


@dataclass(frozen=True, eq=False)
class SampledNodes:
    """Some nodes of a graph that is not held: their ids and, where known, how many neighbours they have."""

    ids: list[str]
    neighbours: npt.NDArray[np.int64] | None
    total: int  # nodes of the graph

    @property
    def num_nodes(self) -> int:
        """How many were drawn."""
        return len(self.ids)


def embedding_map(
    graph: Graph | SampledNodes,
    embeddings: Embeddings,
    *,
    title: str = "Map of the embeddings",
    labels: Labels | None = None,
    class_names: Sequence[str] | None = None,
    predicted: Labels | None = None,
    neighbours: bool = True,
    seed: int = 0,
) -> EmbeddingMap:
    """An interactive map of a graph's embeddings ``[nodes, d]``, dense or SciPy sparse.

    Of a graph that is not held, ``graph`` is a sample of nodes. ``labels`` and ``predicted`` are -1 where
    nothing is known. ``neighbours`` is a t-SNE beside the principal components.
    """
    matrix = check_embeddings(embeddings)
    given = {"embeddings": matrix, "labels": labels, "predictions": predicted}
    for name, array in given.items():
        if array is not None and array.shape[0] != graph.num_nodes:
            raise EvaluationError(
                f"{array.shape[0]} {name} for {graph.num_nodes} nodes",
                where=name,
                fix="Give one row per node.",
            )
    rng = np.random.default_rng(seed)
    drawn = sample(graph.num_nodes, MAX_POINTS, rng)
    planes = {_PCA: principal_plane(matrix)[drawn]}
    notes = []
    total = graph.total if isinstance(graph, SampledNodes) else graph.num_nodes
    if len(drawn) < total:
        notes.append(f"A random sample of {len(drawn):,} of {total:,} nodes is drawn.")
    if neighbours:
        near = sample(len(drawn), MAX_NEIGHBOUR_POINTS, rng)
        planes[_TSNE] = np.full((len(drawn), 2), np.nan)
        planes[_TSNE][near] = neighbour_plane(matrix[drawn[near]], seed=seed)
        if len(near) < len(drawn):
            notes.append(f"The t-SNE shows {len(near):,} of them.")
        notes.append(
            "Principal components keep large distances; t-SNE keeps neighbours together, and its distances "
            "between groups mean little."
        )
    if isinstance(graph, SampledNodes):
        ids, degrees = [graph.ids[i] for i in drawn.tolist()], graph.neighbours
    else:
        ids = drawn.tolist() if graph.node_ids is None else graph.node_ids[drawn].tolist()
        degrees = np.diff(graph.adjacency.indptr).astype(np.int64)
    return EmbeddingMap(
        title,
        [str(node) for node in ids],
        None if degrees is None else degrees[drawn].astype(np.int64),
        planes,
        labels=None if labels is None else labels[drawn],
        predicted=None if predicted is None else predicted[drawn],
        names=names_of_classes(class_names, labels, predicted),
        notes=tuple(notes),
    )


def names_of_classes(class_names: Sequence[str] | None, *labels: Labels | None) -> tuple[str, ...]:
    """The names given; the number of every further class that occurs.

    >>> names_of_classes(["cat"], np.array([0, 2]))
    ('cat', '1', '2')
    """
    given = [str(name) for name in class_names or ()]
    count = max((int(part.max(initial=-1)) + 1 for part in labels if part is not None), default=0)
    return (*given, *(str(i) for i in range(len(given), count)))


def error_sections(
    labels: Labels, predicted: Labels, class_names: Sequence[str] | None = None
) -> tuple[Section, ...]:
    """Confusion matrix and scores by class, over the nodes with a label and a prediction."""
    names = names_of_classes(class_names, labels, predicted)
    tested = (labels >= 0) & (predicted >= 0)
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, (labels[tested], predicted[tested]), 1)
    right, true, guessed = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    rows = tuple(
        (
            TableCell.name(name),
            TableCell.number(float(true[i]), decimals=0),
            TableCell.number(_percent(right[i], guessed[i]), decimals=1),
            TableCell.number(_percent(right[i], true[i]), decimals=1),
            TableCell.number(_percent(2 * right[i], true[i] + guessed[i]), decimals=1),
        )
        for i, name in enumerate(names)
    )
    columns = (Column.name("class"), *map(Column, ("test nodes", "precision %", "recall %", "F1 %")))
    caption = "Rows: true classes, columns: predicted ones. The stronger, the larger the share of the row."
    return (
        ConfusionMatrix("Which classes are confused", names, counts, caption),
        SortableTable(ReportTable("classes", "Scores by class", columns, (rows,), ())),
    )


def _percent(part: np.int64, whole: np.int64) -> float | None:
    return 100 * float(part) / float(whole) if whole else None


def sample(total: int, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """All of ``total`` places, or ``most`` of them, ascending."""
    if total <= most:
        return np.arange(total)
    return np.sort(rng.choice(total, size=most, replace=False))
