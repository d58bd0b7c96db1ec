"""``compare``: several methods on one graph, a score each that needs no labels, and which one to take."""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.config import to_dict
from nodejepa.data.splits import Split, default_splits
from nodejepa.diagnostics import diagnose
from nodejepa.errors import CheckpointError, ConfigError, DataError, EvaluationError, NodeJEPAError
from nodejepa.evaluation import SplitScore, linear_probe
from nodejepa.evaluation.links import LinkSplit, score_links, split_links
from nodejepa.files import parse_json, write_json
from nodejepa.graph import Graph
from nodejepa.memory import gigabytes, peak_memory_mb, reset_peak_memory
from nodejepa.methods import METHODS, UNTRAINED, find_method, load_method
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.sparse import to_dense
from nodejepa.progress import in_words, progress_bar
from nodejepa.report import write_report
from nodejepa.report.maps import neighbour_plane
from nodejepa.tables import ReadingOptions, StoredGraph, as_graph, write_embeddings
from nodejepa.tables.inputs import refuse_replacing
from nodejepa.tables.options import ADJACENCY_UP_TO
from nodejepa.training.logger import Logging
from nodejepa.training.run import Run
from nodejepa.validation import of_type
from nodejepa.workflow.compare_page import comparison_report
from nodejepa.workflow.outputs import input_files, refuse_existing
from nodejepa.workflow.plan import make_plan
from nodejepa.workflow.read import Inspection, inspect_graph, make_trainable
from nodejepa.workflow.recommend import DEFAULT, MethodRow, Recommendation, recommend
from nodejepa.workflow.scores import describe_split
from nodejepa.workflow.use import choose_features

VERSION = 3  # of what is measured: rows of another one are measured again
COMPARED = (DEFAULT, *UNTRAINED, "nodejepa", "patchjepa")
EDGES_ONLY = "edges-only"  # the row that has no columns
RESULT, PAGE, EMBEDDINGS = "compare.json", "report.html", "embeddings.parquet"
_FORMAT = "nodejepa comparison"
_MAP_NODES = 1000  # of each small map


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was found of each method, which one to take and its embeddings."""

    rows: tuple[MethodRow, ...]
    recommendation: Recommendation
    embeddings: npt.NDArray[np.float32]
    split: str | None  # the labels' draws in words; None without labels
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the maps are left out."""
        rows = [{k: v for k, v in row.to_dict().items() if k != "plane"} for row in self.rows]
        chosen = asdict(self.recommendation)
        return {"recommendation": chosen, "split": self.split, "notes": list(self.notes), "methods": rows}


def compare(
    graph: Any,
    labels: npt.ArrayLike | None = None,
    *,
    class_names: Sequence[str] | None = None,
    methods: Sequence[str] = COMPARED,
    epochs: int | None = None,
    seed: int = 0,
    device: str = "auto",
    minutes: float | None = None,
    memory_limit: float | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    columns: Mapping[str, Sequence[Any]] | None = None,
    notes: Sequence[str] = (),
    use: str | None = None,
    announce: Callable[[MethodRow], None] | None = None,
) -> Comparison:
    """Embed a graph with several methods, score each and say which one to take.

    Args:
        graph: a :class:`Graph`, PyG ``Data``, NetworkX or SciPy object with features.
        labels: a whole number per node, -1 where unknown; scored, never trained on.
        class_names: of the classes 0, 1, ...
        methods: names in :data:`nodejepa.METHODS`; LinearJEPA is always among them.
        epochs: of every method that is trained by gradient descent; its own number if not given.
        seed: of everything random.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        minutes: begin no method that, by estimate, would not be done in this time.
        memory_limit: gigabytes the process may take; what is available if not given.
        out: folder for models, results, the report and the embeddings of the recommended method, keyed by
            the graph's ids; nowhere if not given.
        resume: go on with the comparison in ``out``: methods that are done are not measured again.
        force: replace it.
        columns: more columns of the embeddings' file.
        notes: what a reader of the report should know of the graph.
        use: what embeddings are made of, as in :func:`nodejepa.choose_features`; the features as they are
            if not given.
        announce: called with each method's result as soon as it is there.
    """
    graph = as_graph(graph)
    # the default first, what is trained by gradient descent last, else as asked
    asked = sorted(dict.fromkeys([DEFAULT, *methods]), key=lambda name: find_method(name).by_gradient)
    estimators = [
        make_trainable(
            name,
            settings={"training.epochs": epochs} if epochs is not None and METHODS[name].by_gradient else {},
            seed=seed,
            device=device,
        )
        for name in asked
    ]
    known = _check_labels(labels, graph)
    if use is not None:
        graph = choose_features(graph, use, known)
    if minutes is not None and not 0 < minutes < 1e9:
        raise ConfigError(f"minutes is {minutes!r}", where="minutes", fix="Give a positive number.")
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    with ExitStack() as held_open:
        folder = Path(held_open.enter_context(tempfile.TemporaryDirectory()) if out is None else out)
        if out is not None:
            held_open.enter_context(Run(folder).owned(".compare.lock"))
            _check_folder(folder, resume=resume, force=force)
        bench = Bench(graph, known, folder / "runs", seed, 0 if out is None else _MAP_NODES)
        notes = [*notes, *([bench.problem] if bench.problem else [])]
        rows = []
        for estimator in estimators:
            rows.append(bench.row(estimator, deadline, memory_limit))
            if announce is not None:
                announce(rows[-1])
        found = recommend(rows)
        if graph.structural < graph.num_features:
            rows.append(bench.edges_only(make_trainable(DEFAULT, device=device), deadline, memory_limit))
            if announce is not None:
                announce(rows[-1])
            notes = [*notes, *edges_words(rows, found)]
        if found is None:
            raise EvaluationError(
                f"no method could be measured; {rows[0].method}: {rows[0].problem}", where="compare"
            )
        z = load_method(bench.runs / found.method, device=device).transform(graph)
        embeddings = z if isinstance(z, np.ndarray) else to_dense(z)
        split = describe_split(bench.splits[0]) if bench.splits else None
        made = Comparison(tuple(rows), found, embeddings, split, tuple(notes))
        if out is not None:
            # until the new one is there, nothing counts as finished
            (folder / RESULT).unlink(missing_ok=True)
            with progress_bar("Writing embeddings and report"):
                write_embeddings(folder / EMBEDDINGS, graph, embeddings, columns)
                trained = [
                    load_method(bench.runs / row.method, device="cpu")
                    for row in rows
                    if row.problem is None and row.method != EDGES_ONLY and METHODS[row.method].by_gradient
                ]
                page = comparison_report(made, graph, bench.drawn, known, class_names, trained)
                write_report(page, folder / PAGE)
            write_json(folder / RESULT, {"format": _FORMAT, "version": VERSION, **made.to_dict()})
    return made


def edges_words(rows: Sequence[MethodRow], found: Recommendation | None) -> list[str]:
    """A word where the edges alone are better than what is recommended."""
    scores = {row.method: float(np.mean(row.accuracy)) for row in rows if row.accuracy}
    edges, best = scores.get(EDGES_ONLY), scores.get(found.method) if found else None
    if edges is None or best is None or edges <= best:
        return []
    return [f'The edges alone score {edges:.1f} %, more than {best:.1f} %: take them with use="structure".']


def _check_labels(labels: npt.ArrayLike | None, graph: Graph) -> npt.NDArray[np.int64] | None:
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.shape != (graph.num_nodes,) or array.dtype.kind not in "iu":
        raise EvaluationError(
            f"labels are {array.dtype} of shape {array.shape} for {graph.num_nodes} nodes",
            where="labels",
            fix="Give one whole number per node, in the graph's order; -1 where none is known.",
        )
    return array.astype(np.int64)


def _check_folder(folder: Path, *, resume: bool, force: bool) -> None:
    ours = [folder / "runs", *(folder / name for name in (RESULT, PAGE, EMBEDDINGS))]
    refuse_existing(ours, resume=resume, force=force)
    if force:
        for path in ours[:0:-1]:
            path.unlink(missing_ok=True)
        for name in (*METHODS, EDGES_ONLY):  # ours, and nothing else that somebody has put there
            shutil.rmtree(folder / "runs" / name, ignore_errors=True)


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

    ``inspected`` is called with the data report before the first method begins.
    """
    if StoredGraph.is_at(edges):
        raise DataError(
            "methods are compared on files, not on a graph store",
            where=str(edges),
            fix="Name the files that it was prepared from, or embed it with `nodejepa embed-graph`.",
        )
    folder, reading = Path(out), reading or ReadingOptions()
    for name in (EMBEDDINGS, PAGE, RESULT):
        refuse_replacing(folder / name, *input_files(edges, nodes))
    default = make_trainable(DEFAULT)
    found = inspect_graph(edges, nodes, reading, estimator=default, memory_limit=memory_limit, use=use)
    if inspected is not None:
        inspected(found)
    found.require_usable()
    data, notes = found.data, [*notes, *found.warnings()]
    assert isinstance(data.graph, Graph)
    if data.schema.features.structural:
        notes.append(
            "The features are the adjacency's own coordinates, which know every link: no links are held out."
            if data.graph.incomparable
            else "Structural features saw the links that were then held out: links are scored too kindly."
        )
    made = compare(
        data.graph,
        data.labels,
        class_names=data.class_names,
        out=folder,
        memory_limit=memory_limit,
        columns=data.sides,
        notes=notes,
        **arguments,
    )
    for row in made.rows:
        if row.problem is None and row.method != EDGES_ONLY:
            data.schema.save(folder / "runs" / row.method)
    return made


class Bench:
    """The graph, what is hidden of it and the labels: everything that rows have in common."""

    def __init__(
        self,
        graph: Graph,
        labels: npt.NDArray[np.int64] | None,
        runs: Path,
        seed: int,
        map_nodes: int = 0,
    ) -> None:
        self.graph, self.labels, self.runs, self.seed = graph, labels, runs, seed
        self.held: LinkSplit | None = None
        with suppress(EvaluationError):  # few links, or features that know them: none are hidden
            self.held = split_links(graph, seed=seed)
        drawn = np.random.default_rng(seed).permutation(graph.num_nodes)[:map_nodes]
        self.drawn: npt.NDArray[np.int64] = np.sort(drawn)
        self.splits: list[Split] = []
        self.problem = ""
        try:
            self.splits = [] if labels is None else default_splits(labels)
        except EvaluationError as error:
            self.problem = f"No scores by labels: {error}"
        digest = hashlib.sha256(b"" if labels is None else labels.tobytes()).hexdigest()
        self.identity = {"graph": graph.content_hash, "labels": digest, "version": VERSION}

    def edges_only(
        self, estimator: Estimator, deadline: float | None, memory_limit: float | None
    ) -> MethodRow:
        """The row of LinearJEPA on the structure alone: what a node table must not fall behind."""
        if self.graph.num_nodes > ADJACENCY_UP_TO:
            return MethodRow(EDGES_ONLY, f"not begun: the graph has more than {ADJACENCY_UP_TO:,} nodes")
        try:
            with progress_bar("Describing the structure"):
                graph = choose_features(self.graph, "structure")
        except NodeJEPAError as error:
            return MethodRow(EDGES_ONLY, error.what)
        bench = Bench(graph, self.labels, self.runs, self.seed, len(self.drawn))
        return bench.row(estimator, deadline, memory_limit, EDGES_ONLY)

    def row(
        self, estimator: Estimator, deadline: float | None, memory_limit: float | None, name: str = ""
    ) -> MethodRow:
        """Read back if it is there, else measured; a method that fails or does not fit is a row, too."""
        name = name or estimator.name
        identity = self.identity | {"config": to_dict(estimator.config), "seed": estimator.seed}
        path = self.runs / name / "scores.json"
        if (there := _read(path)) and there.identity == identity:
            return there.row
        fits = 1 if self.held is None else 2
        plan = make_plan(estimator, self.graph, memory_limit)
        needed, left = fits * plan.seconds, None if deadline is None else deadline - time.monotonic()
        if name != DEFAULT and left is not None and not needed < left:
            runs = "one run" if fits == 1 else f"{fits} runs"
            why = f"not begun: about {in_words(needed)} for {runs}, {in_words(max(left, 0.0))} were left"
            return MethodRow(name, why)
        if not plan.fits:
            needs, there_is = gigabytes(plan.peak_bytes), gigabytes(plan.limit_bytes)
            return MethodRow(name, f"not begun: it needs {needs} of memory, {there_is} are there")
        try:
            row = self._measure(estimator, name)
        except CheckpointError:
            raise  # what is in the folder belongs to something else
        except NodeJEPAError as error:
            return MethodRow(name, error.what)
        write_json(path, {"identity": identity, "row": row.to_dict()})
        return row

    def _measure(self, estimator: Estimator, name: str) -> MethodRow:
        folder = self.runs / name
        restored = Run(folder).model.exists()
        counted, started = reset_peak_memory(), time.perf_counter()
        estimator.fit(self.graph, out=folder, resume=True, logging=Logging(description=f"{name}, the graph"))
        z = estimator.transform(self.graph)
        seconds = time.perf_counter() - started
        memory = round(peak_memory_mb(), 1) if counted and not restored else None
        links = None
        if self.held is not None:
            blind = type(estimator)(estimator.config, seed=self.seed, device=estimator.device)
            blind.fit(self.held.graph, logging=Logging(description=f"{name}, with links hidden"))
            links = score_links(blind.transform(self.held.graph), self.held)
        shape = diagnose(z)
        probed: tuple[SplitScore, ...] = ()
        if self.labels is not None and self.splits:
            probed = linear_probe(z, self.labels, self.splits).scores
        plane: Any = ()
        if len(self.drawn):
            with progress_bar(f"{name}, its map"):
                plane = neighbour_plane(z[self.drawn], seed=self.seed).tolist()
        return MethodRow(
            name,
            columns=int(z.shape[1]),
            epochs=sum("loss" in record for record in estimator.history_),
            # of all of the training, also where a killed process did a part of it
            seconds=round(max(seconds, sum(record["seconds"] for record in estimator.history_)), 3),
            memory_mb=memory,
            links_auc=None if links is None else links.auc,
            links_mrr=None if links is None else links.mrr,
            collapsed=shape.collapsed,
            verdict=shape.verdict,
            accuracy=tuple(score.test_accuracy for score in probed),
            balanced_accuracy=tuple(score.balanced_accuracy for score in probed),
            macro_f1=tuple(score.macro_f1 for score in probed),
            roc_auc=tuple(score.roc_auc for score in probed if score.roc_auc is not None),
            plane=tuple((float(f"{x:.5g}"), float(f"{y:.5g}")) for x, y in plane),
        )


@dataclass(frozen=True)
class _Measured:
    identity: dict[str, Any]
    row: MethodRow


def _read(path: Path) -> _Measured | None:
    """A row that was measured before; whatever cannot be read is measured again."""
    try:
        return of_type(_Measured, parse_json(path.read_bytes()))
    except (OSError, ValueError):
        return None
