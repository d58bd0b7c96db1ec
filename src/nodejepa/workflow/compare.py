"""``compare``: several methods on one graph, a score each that needs no labels, and which one to take."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.errors import ConfigError, DataError, EvaluationError
from nodejepa.files import write_json
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, UNTRAINED, find_method, load_method
from nodejepa.methods.estimator import Estimator
from nodejepa.nn.sparse import to_dense
from nodejepa.progress import progress_bar
from nodejepa.report import write_report
from nodejepa.tables import ReadingOptions, StoredGraph, as_graph, write_embeddings
from nodejepa.tables.inputs import refuse_replacing
from nodejepa.training.run import Run
from nodejepa.workflow.bench import VERSION, Bench
from nodejepa.workflow.compare_page import comparison_report
from nodejepa.workflow.inspect import Inspection, inspect_graph, make_trainable
from nodejepa.workflow.outputs import input_files, refuse_both
from nodejepa.workflow.recommend import COMPARED_PRESETS, DEFAULT, MethodRow, Recommendation, recommend
from nodejepa.workflow.scores import describe_split

COMPARED = (DEFAULT, *UNTRAINED, "nodejepa", "patchjepa")
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
    announce: Callable[[MethodRow], None] | None = None,
) -> Comparison:
    """Embed a graph with several methods, score each and say which one to take.

    Args:
        graph: a :class:`Graph`, PyG ``Data``, NetworkX or SciPy object with features.
        labels: a whole number a node, -1 where unknown; scored, never trained on.
        class_names: of the classes 0, 1, ...
        methods: names in :data:`nodejepa.METHODS`; LinearJEPA is always among them. NodeJEPA is the paper's,
            as its default is LinearJEPA's solution.
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
        announce: called with each method's result as soon as it is there.
    """
    graph = as_graph(graph)
    asked = list(dict.fromkeys([DEFAULT, *methods]))
    estimators = [
        make_trainable(
            name,
            preset=COMPARED_PRESETS.get(name, "default"),
            settings=_epochs(name, epochs),
            seed=seed,
            device=device,
        )
        for name in asked
    ]
    known, names = _check_labels(labels, class_names, graph)
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
        for estimator in sorted(estimators, key=_order):
            rows.append(bench.row(estimator, deadline, memory_limit))
            if announce is not None:
                announce(rows[-1])
        found = recommend(rows)
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
                write_report(comparison_report(made, graph, bench.drawn, known, names), folder / PAGE)
            write_json(folder / RESULT, {"format": _FORMAT, "version": VERSION, **made.to_dict()})
    return made


def _order(estimator: Estimator) -> tuple[bool, bool]:
    """The default first, whatever is trained by gradient descent last; else as asked."""
    return estimator.name != DEFAULT, find_method(estimator.name).by_gradient


def _epochs(method: str, epochs: int | None) -> dict[str, Any]:
    return {} if epochs is None or not find_method(method).by_gradient else {"training.epochs": epochs}


def _check_labels(
    labels: npt.ArrayLike | None, names: Sequence[str] | None, graph: Graph
) -> tuple[npt.NDArray[np.int64] | None, Sequence[str]]:
    if labels is None:
        return None, ()
    array = np.asarray(labels)
    if array.shape != (graph.num_nodes,) or array.dtype.kind not in "iu":
        raise EvaluationError(
            f"labels are {array.dtype} of shape {array.shape} for {graph.num_nodes} nodes",
            where="labels",
            fix="Give one whole number per node, in the graph's order; -1 where none is known.",
        )
    known: npt.NDArray[np.int64] = array.astype(np.int64)
    count = int(known.max(initial=-1)) + 1
    return known, tuple(names or ()) + tuple(str(i) for i in range(len(names or ()), count))


def _check_folder(folder: Path, *, resume: bool, force: bool) -> None:
    refuse_both(resume=resume, force=force)
    ours = [folder / "runs", *(folder / name for name in (RESULT, PAGE, EMBEDDINGS))]
    there = [str(path) for path in ours if path.exists()]
    if there and not (resume or force):
        raise ConfigError(
            f"{', '.join(there)} exist{'s' if len(there) == 1 else ''}",
            fix="Go on with resume=True, choose another out=... or replace them with force=True.",
        )
    if force:
        for path in ours[:0:-1]:
            path.unlink(missing_ok=True)
        for name in METHODS:  # ours, and nothing else that somebody has put there
            shutil.rmtree(folder / "runs" / name, ignore_errors=True)


def compare_files(
    edges: Any,
    nodes: Any = None,
    reading: ReadingOptions | None = None,
    *,
    out: str | os.PathLike[str],
    memory_limit: float | None = None,
    inspected: Callable[[Inspection], None] | None = None,
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
    found = inspect_graph(edges, nodes, reading, estimator=default, memory_limit=memory_limit)
    if inspected is not None:
        inspected(found)
    found.require_usable()
    data, notes = found.data, found.warnings()
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
        if row.problem is None:
            data.schema.save(folder / "runs" / row.method)
    return made
