"""``compare``: several methods on one graph, a score each that needs no labels, and which one to take."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.config import of_type, to_dict
from nodejepa.diagnostics import Diagnostics, diagnose
from nodejepa.errors import CheckpointError, DataError, EvaluationError, NodeJEPAError
from nodejepa.evaluation import SplitScore
from nodejepa.evaluation.links import LinkSplit, score_links, split_links
from nodejepa.files import parse_json, write_json
from nodejepa.graph import Graph
from nodejepa.graph_checks import Features, in_node_order
from nodejepa.machine import gigabytes, peak_memory_mb, progress_bar, reset_peak_memory
from nodejepa.methods import METHODS, UNTRAINED, find_method, load_method
from nodejepa.methods.estimator import Estimator
from nodejepa.report import write_report
from nodejepa.report.maps import neighbour_plane
from nodejepa.tables import ReadingOptions, as_graph, is_store
from nodejepa.tables.options import ADJACENCY_UP_TO
from nodejepa.tables.table import refuse_replacing
from nodejepa.training.logger import Logging
from nodejepa.training.run import Run
from nodejepa.workflow import node2vec
from nodejepa.workflow.compare_page import comparison_report
from nodejepa.workflow.embed import embedded, refuse_existing, train
from nodejepa.workflow.plan import make_plan
from nodejepa.workflow.read import Inspection, UserGraph, input_files, inspect_graph, make_trainable
from nodejepa.workflow.recommend import DEFAULT, FAR_BELOW, MethodRow, Recommendation, recommend
from nodejepa.workflow.scores import Labelled
from nodejepa.workflow.use import choose_features, made_of

VERSION = 3  # of what is measured: rows of another one are measured again
COMPARED = (DEFAULT, *UNTRAINED, "nodejepa", "patchjepa")
EDGES_ONLY = "edges-only"  # the row that has no columns
NODE2VEC = "node2vec"  # the row of random walks, where asked
RESULT, PAGE, EMBEDDINGS = "compare.json", "report.html", "embeddings.parquet"
_FORMAT = "nodejepa comparison"
_MAP_NODES = 1000  # of each small map


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was found of each method, which one to take and its embeddings."""

    rows: tuple[MethodRow, ...]
    recommendation: Recommendation
    embeddings: Features
    split: str | None  # the labels' draws in words; None without labels
    notes: tuple[str, ...] = ()
    made_of: str = "columns"  # what the methods were given: "columns", "structure" or "both"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the maps are left out."""
        rows = [{k: v for k, v in row.to_dict().items() if k != "plane"} for row in self.rows]
        chosen = asdict(self.recommendation)
        said = {"split": self.split, "made_of": self.made_of, "notes": list(self.notes)}
        return {"recommendation": chosen, **said, "methods": rows}


def compare(
    graph: Any,
    labels: npt.ArrayLike | None = None,
    *,
    class_names: Sequence[str] | None = None,
    methods: Sequence[str] = COMPARED,
    epochs: int | None = None,
    seed: int = 0,
    device: str = "auto",
    memory_limit: float | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    notes: Sequence[str] = (),
    use: str | None = None,
    random_walks: bool = False,
    announce: Callable[[MethodRow], None] | None = None,
) -> Comparison:
    """Embed a graph with several methods, score each and recommend one.

    Args:
        graph: a :class:`Graph`, PyG ``Data``, NetworkX or SciPy object with features.
        labels: a whole number per node, -1 where unknown; scored, never trained on. A pandas Series is
            aligned by its index of ids.
        class_names: of the classes 0, 1, ...
        methods: names in :data:`nodejepa.METHODS`; LinearJEPA is always among them.
        epochs: number of epochs of every trained method; by default that of its preset.
        seed: the random seed.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        memory_limit: most memory to use, in GB; by default the free memory.
        out: folder for models, results, the report and the embeddings of the recommended method, keyed by
            the graph's ids; nowhere if not given.
        resume: continue the comparison in ``out``; methods that are done are not measured again.
        force: replace the comparison in ``out``.
        notes: what a reader of the report should know of the graph.
        use: the input features, as in :func:`nodejepa.choose_features`; by default the features of the
            graph.
        random_walks: add a row of node2vec (extra ``node2vec``), with 256 columns.
        announce: called with each method's result as soon as it is there.
    """
    data = graph if isinstance(graph, UserGraph) else _labelled_graph(graph, labels, class_names, use)
    # the default first, what is trained by gradient descent last, else as asked
    asked = sorted(dict.fromkeys([DEFAULT, *methods]), key=lambda name: find_method(name).by_gradient)
    estimators = []
    for name in asked:
        steps = {"training.epochs": epochs} if epochs is not None and METHODS[name].by_gradient else {}
        estimators.append(make_trainable(name, settings=steps, seed=seed, device=device))
    if random_walks:
        node2vec.require()
    with ExitStack() as held_open:
        folder = Path(held_open.enter_context(tempfile.TemporaryDirectory()) if out is None else out)
        if out is not None:
            held_open.enter_context(Run(folder).owned(".compare.lock"))
            _clear(folder, resume=resume, force=force)
        bench = Bench(data, folder / "runs", seed, memory_limit, 0 if out is None else _MAP_NODES)
        begun: list[Callable[[], MethodRow]] = [partial(bench.row, estimator) for estimator in estimators]
        if bench.graph.structural < bench.graph.num_features:  # else the methods have seen the edges alone
            begun.append(partial(bench.edges_only, device))
        if random_walks:
            begun.append(bench.node2vec)
        rows = []
        for measure in begun:
            rows.append(measure())
            if announce is not None:
                announce(rows[-1])
        chosen = recommend([row for row in rows if row.method in METHODS])
        if chosen is None:
            raise EvaluationError(
                f"no method could be measured; {rows[0].method}: {rows[0].problem}", where="compare"
            )
        trained = {
            row.method: load_method(bench.runs / row.method, device=device)
            for row in rows
            if row.problem is None and row.method in METHODS
        }
        z, _ = embedded(trained[chosen.method], data)
        assert isinstance(z, np.ndarray)
        split = None if bench.labelled is None else bench.labelled.words
        said = (*notes, *([bench.problem] if bench.problem else []), *edges_words(rows, chosen))
        made = Comparison(tuple(rows), chosen, z, split, said, made_of(bench.graph))
        if out is not None:
            # until the new one is there, nothing counts as finished
            (folder / RESULT).unlink(missing_ok=True)
            data.write_embeddings(folder / EMBEDDINGS, z)
            by_gradient = [one for name, one in trained.items() if METHODS[name].by_gradient]
            with progress_bar("Writing the report"):
                write_report(comparison_report(made, data, bench.drawn, by_gradient), folder / PAGE)
            write_json(folder / RESULT, {"format": _FORMAT, "version": VERSION, **made.to_dict()})
    return made


def _labelled_graph(
    graph: Any, labels: npt.ArrayLike | None, class_names: Sequence[str] | None, use: str | None
) -> UserGraph:
    graph = as_graph(graph)
    known: Any = (
        None
        if labels is None
        else np.asarray(in_node_order(labels, graph.node_ids, graph.num_nodes, "labels"))
    )
    if known is not None and (known.shape != (graph.num_nodes,) or known.dtype.kind not in "iu"):
        raise EvaluationError(
            f"labels are {known.dtype} of shape {known.shape} for {graph.num_nodes} nodes",
            where="labels",
            fix="Give one whole number per node, in the graph's order; -1 where none is known.",
        )
    return UserGraph.of_graph(
        graph if use is None else choose_features(graph, use, known), known, class_names
    )


def compare_files(
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    out: str | os.PathLike[str],
    memory_limit: float | None = None,
    use: str | None = None,
    inspected: Callable[[Inspection], None] | None = None,
    notes: Sequence[str] = (),
    **arguments: Any,
) -> Comparison:
    """Read a graph from files (as :func:`nodejepa.read_graph` does) and :func:`compare` methods on it.

    ``inspected`` is called with the data report before the first method begins. With labels and without
    ``use`` validation labels choose what embeddings are made of; without labels it is the columns, as links
    that are held out, the only score, cannot be held out of the adjacency.
    """
    if is_store(edges):
        raise DataError(
            "methods are compared on files, not on a graph store",
            where=str(edges),
            fix="Name the files that it was prepared from, or embed it with `nodejepa embed-graph`.",
        )
    for name in (EMBEDDINGS, PAGE, RESULT):
        refuse_replacing(Path(out) / name, *input_files(edges, nodes))
    labelled = reading is not None and reading.labels is not None
    default, use = make_trainable(DEFAULT), use or ("auto" if labelled else None)
    found = inspect_graph(edges, nodes, reading, estimator=default, memory_limit=memory_limit, use=use)
    if inspected is not None:
        inspected(found)
    found.require_usable()
    notes, graph = [*notes, *found.warnings()], found.data.graph
    if found.data.choice is not None and found.data.choice.words:
        notes.append(found.data.choice.words)
    if isinstance(graph, Graph) and graph.structural:
        notes.append(
            "The features are the adjacency's own coordinates, which know every link: no links are held out."
            if graph.incomparable
            else "Structural features saw the links that were then held out: links are scored too kindly."
        )
    return compare(found.data, out=out, memory_limit=memory_limit, notes=notes, **arguments)


def edges_words(rows: Sequence[MethodRow], found: Recommendation) -> list[str]:
    """A word where the edges alone are better than what is recommended."""
    scored = {row.method: row for row in rows if row.accuracy}
    edges, best = scored.get(EDGES_ONLY), scored.get(found.method)
    if edges is None or best is None:
        return []
    theirs, ours = np.mean(edges.accuracy), np.mean(best.accuracy)
    lost = np.mean(best.balanced_accuracy or 0.0) - np.mean(edges.balanced_accuracy or 0.0)
    if theirs <= ours or lost > FAR_BELOW:
        return []
    return [f'The edges alone score {theirs:.1f} %, more than {ours:.1f} %: take them with use="structure".']


def _clear(folder: Path, *, resume: bool, force: bool) -> None:
    """Refuse to lose a comparison that is there; with ``force`` remove it, and nothing else."""
    ours = [folder / "runs", *(folder / name for name in (RESULT, PAGE, EMBEDDINGS))]
    refuse_existing(ours, resume=resume, force=force)
    if force:
        for path in ours[:0:-1]:
            path.unlink(missing_ok=True)
        for name in (*METHODS, EDGES_ONLY, NODE2VEC):
            shutil.rmtree(folder / "runs" / name, ignore_errors=True)


class Bench:
    """The graph, what is hidden of it and the labels: everything that rows have in common."""

    def __init__(
        self,
        data: UserGraph,
        runs: Path,
        seed: int,
        memory_limit: float | None = None,
        map_nodes: int = 0,
    ) -> None:
        assert isinstance(data.graph, Graph)
        self.data, self.graph, self.runs, self.seed = data, data.graph, runs, seed
        self.memory_limit = memory_limit
        self.held: LinkSplit | None = None
        with suppress(EvaluationError):  # few links, or features that know them: none are hidden
            self.held = split_links(self.graph, seed=seed)
        drawn = np.random.default_rng(seed).permutation(self.graph.num_nodes)[:map_nodes]
        self.drawn: npt.NDArray[np.int64] = np.sort(drawn)
        self.labelled: Labelled | None = None
        self.problem, labels = "", data.labels
        try:
            self.labelled = None if labels is None else Labelled.of(labels)
        except EvaluationError as error:
            self.problem = f"No scores by labels: {error}"
        digest = hashlib.sha256(b"" if labels is None else labels.astype(np.int64).tobytes()).hexdigest()
        self.identity = {"graph": self.graph.content_hash, "labels": digest, "version": VERSION}

    def edges_only(self, device: str) -> MethodRow:
        """The row of LinearJEPA on the structure alone: what a node table must not fall behind."""
        if self.graph.num_nodes > ADJACENCY_UP_TO:
            return MethodRow(EDGES_ONLY, f"not begun: the graph has more than {ADJACENCY_UP_TO:,} nodes")
        try:
            with progress_bar("Computing structural features"):
                graph = choose_features(self.graph, "structure")
        except NodeJEPAError as error:
            return MethodRow(EDGES_ONLY, error.what)
        alone = replace(self.data, graph=graph, schema=None)
        bench = Bench(alone, self.runs, self.seed, self.memory_limit, len(self.drawn))
        return bench.row(make_trainable(DEFAULT, device=device), EDGES_ONLY)

    def node2vec(self) -> MethodRow:
        """The row of node2vec, which sees the edges and their weights alone."""

        def measure() -> MethodRow:
            started = time.perf_counter()
            with progress_bar("Random walks of node2vec"):
                z = node2vec.embed(self.graph, seed=self.seed)
                seconds = time.perf_counter() - started
                blind = self.held and node2vec.embed(self.held.graph, seed=self.seed)
            return self._scored(NODE2VEC, z, diagnose(z), blind, seconds=round(seconds, 3))

        return self._kept(NODE2VEC, {"seed": self.seed}, measure)

    def row(self, estimator: Estimator, name: str = "") -> MethodRow:
        """Read back if it is there, else measured; a method that fails or does not fit is a row, too."""
        name = name or estimator.name
        settings = {"config": to_dict(estimator.config), "seed": estimator.seed}
        return self._kept(name, settings, lambda: self._measure(estimator, name))

    def _kept(self, name: str, settings: dict[str, Any], measure: Callable[[], MethodRow]) -> MethodRow:
        identity, path = self.identity | settings, self.runs / name / "scores.json"
        with suppress(OSError, ValueError):  # whatever cannot be read is measured again
            there = of_type(_Measured, parse_json(path.read_bytes()))
            if there.identity == identity:
                return there.row
        try:
            row = measure()
        except CheckpointError:
            raise  # what is in the folder belongs to something else
        except NodeJEPAError as error:
            return MethodRow(name, error.what)
        if row.problem is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"identity": identity, "row": row.to_dict()})
        return row

    def _measure(self, estimator: Estimator, name: str) -> MethodRow:
        plan = make_plan(estimator, self.graph, self.memory_limit)
        if not plan.fits:
            needs, there_is = gigabytes(plan.peak_bytes), gigabytes(plan.limit_bytes)
            return MethodRow(name, f"not begun: it needs {needs} of memory, {there_is} are there")
        folder = self.runs / name
        restored = Run(folder).model.exists()
        counted, started = reset_peak_memory(), time.perf_counter()
        train(estimator, self.data, folder, resume=True, logging=Logging(description=f"{name}, the graph"))
        z, shape = embedded(estimator, self.data)
        seconds = time.perf_counter() - started
        memory = round(peak_memory_mb(), 1) if counted and not restored else None
        hidden = None
        if self.held is not None:
            blind = type(estimator)(estimator.config, seed=self.seed, device=estimator.device)
            blind.fit(self.held.graph, logging=Logging(description=f"{name}, with links hidden"))
            hidden = blind.transform(self.held.graph)
        return self._scored(
            name,
            z,
            shape,
            hidden,
            epochs=sum("loss" in record for record in estimator.history_),
            # of all of the training, also where a killed process did a part of it
            seconds=round(max(seconds, sum(record["seconds"] for record in estimator.history_)), 3),
            memory_mb=memory,
        )

    def _scored(self, name: str, z: Any, shape: Diagnostics, blind: Any, **known: Any) -> MethodRow:
        """The row of embeddings, and of those of the graph without the hidden links."""
        links = score_links(blind, self.held) if self.held is not None else None
        probed: tuple[SplitScore, ...] = (
            () if self.labelled is None else self.labelled.probe(z[self.labelled.nodes]).scores
        )
        plane: Any = ()
        if len(self.drawn):
            with progress_bar(f"{name}, its map"):
                plane = neighbour_plane(z[self.drawn], seed=self.seed).tolist()
        return MethodRow(
            name,
            columns=int(z.shape[1]),
            links_auc=None if links is None else links.auc,
            links_mrr=None if links is None else links.mrr,
            collapsed=shape.collapsed,
            verdict=shape.verdict,
            accuracy=tuple(score.test_accuracy for score in probed),
            balanced_accuracy=tuple(score.balanced_accuracy for score in probed),
            macro_f1=tuple(score.macro_f1 for score in probed),
            roc_auc=tuple(score.roc_auc for score in probed if score.roc_auc is not None),
            plane=tuple((float(f"{x:.5g}"), float(f"{y:.5g}")) for x, y in plane),
            **known,
        )


@dataclass(frozen=True)
class _Measured:
    identity: dict[str, Any]
    row: MethodRow
