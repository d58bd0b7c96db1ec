"""What embeddings are made of: the columns of the nodes, the structure of the graph, or both.

Where columns are rich they say what edges do and more. Where they are few and weak the structure says nearly
everything, and a node table makes embeddings worse. With labels, validation labels pick. Without, a rule that
was chosen on graphs with labels decides (docs/own-graph.md; ``python -m benchmarks.practice`` measures it).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split, default_splits, label_classes, scored_nodes
from nodejepa.errors import ConfigError, EvaluationError
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, in_node_order
from nodejepa.machine import Room, progress_bar
from nodejepa.methods.linear_jepa import LinearJEPA
from nodejepa.nn.sparse import to_dense
from nodejepa.structure.laplacian import EXACT_UP_TO
from nodejepa.tables import FeatureSchema
from nodejepa.tables.options import ADJACENCY_UP_TO, ReadReport, structure_alone
from nodejepa.tables.schema import add_structure

Use: TypeAlias = Literal["auto", "columns", "structure", "both"]
Array: TypeAlias = npt.NDArray[np.float64]

MADE_OF = {"columns": "the columns", "structure": "the structure", "both": "columns and structure"}
_POINT = 1.0  # of validation accuracy: closer is as good, and a model of columns serves other graphs too
_PREDICTED = 0.05  # share of the columns' variance that the structure predicts, from which on it is taken in
_UNRELATED = 0.2  # |rho|: columns that neighbours predict less well say nothing of the graph
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
_FEWEST = 200  # nodes, at least, that anything can be chosen by
_FEWEST_LABELS = 20  # for validation, in a split
_SAMPLE, _COLUMNS = 8000, 1000  # nodes and columns that the share of variance is measured on, at most


def made_of(graph: Graph) -> str:
    """What its features are: a key of ``MADE_OF``."""
    if not graph.structural:
        return "columns"
    return "both" if graph.structural < graph.num_features else "structure"


@dataclass(frozen=True)
class Choice:
    """What was taken, who chose it, and what is known of the others."""

    asked: str | None
    taken: str
    by: Literal["request", "labels", "rule", "nothing else"]
    words: str = ""  # one line: what was taken, and what the other would be
    validation: Mapping[str, float] = field(default_factory=dict)  # accuracy in percent, where labels chose

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Material:
    """A graph with the columns of its nodes alone, and what its structure can add."""

    graph: Graph
    schema: FeatureSchema
    names: tuple[str, ...]  # of the structural features
    room: Room

    @property
    def is_described(self) -> bool:
        """Whether the structure is described in seconds; that of larger graphs has to be asked for."""
        return self.graph.num_nodes <= ADJACENCY_UP_TO

    def made_of(self, taken: str, report: ReadReport | None = None) -> tuple[Graph, FeatureSchema]:
        """The graph with the features that are taken, and how they are made."""
        graph, schema = self.graph, self.schema
        if taken == "columns":
            return graph, schema
        if taken == "structure":
            bare = np.zeros((graph.num_nodes, 0), dtype=np.float32)
            graph = graph.with_features(bare)
            schema = FeatureSchema()
        return add_structure(graph, schema, self.names, report or ReadReport(), self.room)

    def embedded(self, taken: str) -> Features:
        """Embeddings by LinearJEPA, whatever method is trained later: it takes seconds."""
        graph, _ = self.made_of(taken)
        with progress_bar(f"Evaluating {MADE_OF[taken]}"):
            return LinearJEPA().fit(graph).transform(graph)


def choose(material: Material, use: str, labels: npt.NDArray[np.integer[Any]] | None) -> Choice:
    """What to make embeddings of, as asked or, for ``"auto"``, by validation labels or by the rule."""
    if use not in get_args(Use):
        raise ConfigError(
            f"use is {use!r}", where="use", fix=f"Use one of {', '.join(map(repr, get_args(Use)))}."
        )
    if not material.graph.num_features:
        if use in ("columns", "both"):
            raise ConfigError(
                "the nodes have no columns", where="use", fix='Give a node table, or say use="structure".'
            )
        return Choice(use, "structure", "nothing else")
    if use != "auto":
        return Choice(use, use, "request")
    if not material.names or not material.graph.num_edges or material.graph.num_nodes < _FEWEST:
        return Choice(use, "columns", "nothing else")
    if material.graph.num_nodes > EXACT_UP_TO:
        words = f"input features: the columns, because the graph has more than {EXACT_UP_TO:,} nodes."
        return Choice(use, "columns", "nothing else", f"{words} {_other('columns')}")
    if labels is not None:
        nodes = scored_nodes(labels)
        try:
            return _by_labels(material, nodes, labels[nodes].astype(np.int64))
        except EvaluationError:  # too few labels to choose by
            pass
    encoder = LinearJEPA().fit(material.graph)
    evidence = Evidence.of(material.graph.features, encoder.spectrum(), material.embedded("structure"))
    words = f"input features: {MADE_OF[evidence.taken]}, because {evidence.why}."
    words = f"{words} {_other(evidence.taken)} With labels, accuracy would decide."
    return Choice("auto", evidence.taken, "rule", words)


def _by_labels(material: Material, nodes: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> Choice:
    splits = default_splits(labels)
    if len(splits[0].val) < _FEWEST_LABELS:
        raise EvaluationError("too few validation labels to choose by")
    found = {taken: validation_accuracy(material.embedded(taken)[nodes], labels, splits) for taken in MADE_OF}
    taken = best_of(found)
    said = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
    words = f"input features: {MADE_OF[taken]}, chosen by validation accuracy (%: {said})."
    return Choice("auto", taken, "labels", f"{words} {_other(taken)}", found)


def best_of(validation: Mapping[str, float]) -> str:
    """What validation accuracy picks: the best, but the columns where they are nearly as good."""
    best = max(validation, key=lambda taken: validation[taken])
    return "columns" if validation["columns"] >= validation[best] - _POINT else best


@dataclass(frozen=True)
class Evidence:
    """What the rule looks at where there are no labels."""

    predicted: float  # share of the columns' variance that the structure predicts
    related: float  # |rho| of the direction of the columns that neighbours predict best

    @classmethod
    def of(cls, columns: Features, spectrum: Sequence[float], structure: Features) -> Self:
        """From the columns, the spectrum of LinearJEPA on them, and its embeddings of the structure."""
        return cls(share_predicted(columns, structure), max(map(abs, spectrum), default=0.0))

    @property
    def taken(self) -> str:
        """Columns, structure or both."""
        return "both" if self.predicted >= _PREDICTED or self.related < _UNRELATED else "columns"

    @property
    def why(self) -> str:
        """The reason, as a clause."""
        said = f"the structure predicts {100 * max(0.0, self.predicted):.0f} % of the columns' variance"
        if self.predicted < _PREDICTED and self.taken == "both":
            said += f" and neighbours predict the columns badly (|rho| {self.related:.2f})"
        return said


def _other(taken: str) -> str:
    if taken == "columns":
        return 'use="both" adds the structure, use="structure" takes the edges only.'
    return 'This model cannot be applied to other graphs; one with use="columns" can.'


def validation_accuracy(z: Features, labels: npt.NDArray[np.int64], splits: Sequence[Split]) -> float:
    """Percent of validation nodes that a ridge classifier gets right, the ridge chosen on them.

    Solved in closed form: milliseconds where the probe, which scores embeddings, takes seconds. Test labels
    of a split are not looked at.
    """
    found = []
    for split in splits:
        targets = np.eye(labels.max() + 1)[labels[split.train]]
        guesses = _ridge_guesses(z[split.train], targets, z[split.val], _RIDGES)
        found.append(max(float(100 * np.mean(g.argmax(axis=1) == labels[split.val])) for g in guesses))
    return float(np.mean(found))


def share_predicted(columns: Features, z: Features) -> float:
    """Share of the columns' variance that a ridge regression on embeddings predicts for held-out nodes.

    At most 1; 0 or less where embeddings say nothing about the columns.
    """
    rng = np.random.default_rng(0)
    drawn = rng.permutation(columns.shape[0])[:_SAMPLE]
    if columns.shape[1] > _COLUMNS:
        columns = columns[:, np.sort(rng.permutation(columns.shape[1])[:_COLUMNS])]
    seen, held = np.array_split(drawn, 2)
    known, wanted = (to_dense(columns[part]).astype(np.float64) for part in (seen, held))
    guesses = _ridge_guesses(z[seen], known, z[held], [ridge / z.shape[1] for ridge in _RIDGES])
    lost = min(float(np.sum((wanted - guess) ** 2)) for guess in guesses)
    total = float(np.sum((wanted - known.mean(axis=0)) ** 2))
    return 1 - lost / total if total > 0 else 0.0


def _ridge_guesses(seen: Features, known: Array, asked: Features, ridges: Sequence[float]) -> Iterator[Array]:
    """What is known of the rows ``seen``, predicted for other rows: once for each ridge."""
    rows, others = _unit(seen), _unit(asked)
    mean, average = rows.mean(axis=0), known.mean(axis=0)
    rows, others = rows - mean, others - mean
    values, vectors = np.linalg.eigh(rows.T @ rows)
    rotated, onto = vectors.T @ (rows.T @ (known - average)), others @ vectors
    spread = max(float(values.sum()), 1e-12)
    for ridge in ridges:
        yield onto @ (rotated / (values[:, None].clip(0) + ridge * spread)) + average


def _unit(rows: Any) -> Array:
    dense = to_dense(rows).astype(np.float64)
    length = np.linalg.norm(dense, axis=1, keepdims=True)
    unit: Array = dense / np.where(length > 0, length, 1.0)
    return unit


def choose_features(graph: Graph, use: str = "auto", labels: npt.ArrayLike | None = None) -> Graph:
    """A graph with the chosen input features: columns, structure or both.

    Args:
        graph: a graph whose features are the columns of the node table.
        use: ``"columns"``, ``"structure"``, ``"both"`` or ``"auto"``: validation labels choose, or a rule if
            there are no labels. Graphs of fewer than 200 or more than 50,000 nodes keep their columns.
        labels: classes of the nodes, as in :func:`nodejepa.linear_probe`, or a pandas Series with the ids as
            index. They are used only to choose.

    >>> from nodejepa import LinearJEPA, load_dataset
    >>> graph = choose_features(load_dataset("digits").graph, "both")
    >>> LinearJEPA().fit(graph).transform(graph).shape
    (1797, 200)
    """
    own = graph.num_features - graph.structural
    graph = graph.with_features(graph.features[:, :own]) if graph.structural else graph
    material = Material(
        graph, FeatureSchema(matrix_width=own or None), structure_alone(graph.num_nodes), Room.of()
    )
    codes = (
        None
        if labels is None
        else label_classes(in_node_order(labels, graph.node_ids, graph.num_nodes, "labels"))[1]
    )
    return material.made_of(choose(material, use, codes).taken)[0]
