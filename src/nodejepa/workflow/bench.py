"""One method after another on the same graph: learned, scored, learned again without the hidden links."""

import hashlib
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.config import to_dict
from nodejepa.data.splits import Split, default_splits
from nodejepa.diagnostics import diagnose
from nodejepa.errors import CheckpointError, EvaluationError, NodeJEPAError
from nodejepa.evaluation import SplitScore, linear_probe
from nodejepa.evaluation.links import LinkSplit, score_links, split_links
from nodejepa.files import parse_json, write_json
from nodejepa.graph import Graph
from nodejepa.memory import gigabytes
from nodejepa.methods.estimator import Estimator
from nodejepa.progress import in_words, progress_bar
from nodejepa.report.maps import neighbour_plane
from nodejepa.training.logger import Logging, peak_memory_mb, reset_peak_memory
from nodejepa.training.run import Run
from nodejepa.validation import of_type
from nodejepa.workflow.plan import make_plan
from nodejepa.workflow.recommend import DEFAULT, MethodRow

VERSION = 3  # of what is measured: rows of another one are measured again


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

    def row(self, estimator: Estimator, deadline: float | None, memory_limit: float | None) -> MethodRow:
        """Read back if it is there, else measured; a method that fails or does not fit is a row, too."""
        identity = self.identity | {"config": to_dict(estimator.config), "seed": estimator.seed}
        path = self.runs / estimator.name / "scores.json"
        if (there := _read(path)) and there.identity == identity:
            return there.row
        fits = 1 if self.held is None else 2
        plan = make_plan(estimator, self.graph, memory_limit)
        needed, left = fits * plan.seconds, None if deadline is None else deadline - time.monotonic()
        if estimator.name != DEFAULT and left is not None and not needed < left:
            runs = "one run" if fits == 1 else f"{fits} runs"
            why = f"not begun: about {in_words(needed)} for {runs}, {in_words(max(left, 0.0))} were left"
            return MethodRow(estimator.name, why)
        if not plan.fits:
            needs, there_is = gigabytes(plan.peak_bytes), gigabytes(plan.limit_bytes)
            return MethodRow(estimator.name, f"not begun: it needs {needs} of memory, {there_is} are there")
        try:
            row = self._measure(estimator)
        except CheckpointError:
            raise  # what is in the folder belongs to something else
        except NodeJEPAError as error:
            return MethodRow(estimator.name, error.what)
        write_json(path, {"identity": identity, "row": row.to_dict()})
        return row

    def _measure(self, estimator: Estimator) -> MethodRow:
        name, folder = estimator.name, self.runs / estimator.name
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
