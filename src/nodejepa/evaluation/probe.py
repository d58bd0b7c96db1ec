"""What are frozen embeddings worth? A linear classifier on few labels answers; test labels are read once.

* ``fair`` (default): scaling (standardised columns or L2-normalised rows) and C are chosen on the validation
  accuracy; test accuracy is computed for the chosen classifier only. All of them are solved together.
* ``paper``: scikit-learn's logistic regression on the embeddings as they are, C = 1, as the paper does.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from nodejepa.data.splits import Split, default_splits, label_classes
from nodejepa.diagnostics import Embeddings, check_embeddings
from nodejepa.errors import EvaluationError
from nodejepa.evaluation.logistic import (
    LinearClassifiers,
    Matrix,
    RoughFit,
    ScaledEmbeddings,
    Scaling,
    TrainingSet,
    fit_logistic,
    is_costly,
    scale,
)
from nodejepa.machine import progress_bar, side_by_side
from nodejepa.tables.cells import MISSING

ProbeMode: TypeAlias = Literal["fair", "paper"]

SCALINGS: tuple[Scaling, ...] = ("standardise", "l2")

# What C means depends on how far rows lie apart: standardised rows of 256 dimensions have squared length 256,
# unit rows at most 1. The grid is therefore laid out for rows of mean squared distance 1 from their mean,
# C = c / spread, in whole decades wide enough that the baselines' best c lies inside. Range and step were
# set after sweeps of raw and S^2 X on Photo, Computers and CS in which test curves were in view beside the
# validation curves (docs/log.md); Physics was not swept.
RELATIVE_STRENGTHS: tuple[float, ...] = tuple(10.0**power for power in range(-2, 5))

_EVERY = range(len(RELATIVE_STRENGTHS))
_ROUGH_ERROR = 0.5, 2  # points of accuracy, or validation nodes if they are more, that a rough fit may be off

_T = TypeVar("_T")
Codes = npt.NDArray[np.int64]
JSONValue: TypeAlias = str | int | float | bool | None
MEASURES = {  # of a SplitScore, and what tables call them
    "test_accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
    "roc_auc": "ROC-AUC",
}


def measure_guesses(guesses: Codes, logits: npt.NDArray[np.floating], truth: Codes) -> dict[str, Any]:
    """All of them by the names that a ``SplitScore`` has for them."""
    return {
        "test_accuracy": accuracy(guesses, truth),
        "balanced_accuracy": balanced_accuracy(guesses, truth),
        "macro_f1": macro_f1(guesses, truth),
        "roc_auc": roc_auc(logits, truth),
    }


def accuracy(guesses: Codes, truth: Codes) -> float:
    """Share of right guesses."""
    return float(100 * np.mean(guesses == truth))


def balanced_accuracy(guesses: Codes, truth: Codes) -> float:
    """Mean over the classes that occur of the share of their nodes that are guessed right."""
    return float(100 * np.mean([np.mean(guesses[truth == code] == code) for code in np.unique(truth)]))


def macro_f1(guesses: Codes, truth: Codes) -> float:
    """Mean over the classes that occur of the harmonic mean of precision and recall."""
    from sklearn.metrics import f1_score  # takes seconds to import: only what scores needs it

    return float(100 * f1_score(truth, guesses, average="macro", labels=np.unique(truth), zero_division=0.0))


def roc_auc(logits: npt.NDArray[np.floating], truth: Codes) -> float | None:
    """For two classes: how often a node of the second is ranked above one of the first; else none."""
    if logits.shape[1] != 2 or len(np.unique(truth)) != 2 or not np.isfinite(logits).all():
        return None
    from sklearn.metrics import roc_auc_score

    return float(100 * roc_auc_score(truth == 1, logits[:, 1] - logits[:, 0]))


@dataclass(frozen=True)
class SplitScore:
    """Accuracies (percent) on one split, and the classifier they belong to."""

    split: str
    seed: int
    split_hash: str
    val_accuracy: float | None  # None where the split has no validation nodes
    test_accuracy: float
    scaling: str
    C: float
    converged: bool  # False: the optimiser gave up before its tolerance, the score may move a little
    balanced_accuracy: float  # this and what follows: on the test nodes
    macro_f1: float
    roc_auc: float | None  # of two classes only


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """Scores of all splits; ``predictions`` (on request) has the predicted label of each test node."""

    mode: str
    scores: tuple[SplitScore, ...]
    predictions: tuple[npt.NDArray[Any], ...] | None = None

    @property
    def test_accuracy_mean(self) -> float:
        """Mean test accuracy over splits, percent."""
        return float(np.mean([score.test_accuracy for score in self.scores]))

    @property
    def balanced_accuracy_mean(self) -> float:
        """As :attr:`test_accuracy_mean`, of the balanced accuracy."""
        return float(np.mean([score.balanced_accuracy for score in self.scores]))

    @property
    def test_accuracy_std(self) -> float | None:
        """Sample standard deviation (n - 1) over splits; None for a single split."""
        return mean_std([score.test_accuracy for score in self.scores])[1]

    @property
    def val_accuracy_mean(self) -> float | None:
        """Mean validation accuracy over splits, percent; None if a split has no validation nodes."""
        return mean_std([score.val_accuracy for score in self.scores])[0]

    @property
    def val_accuracy_std(self) -> float | None:
        """As :attr:`test_accuracy_std`, of the validation accuracy."""
        return mean_std([score.val_accuracy for score in self.scores])[1]

    def to_dict(self) -> dict[str, JSONValue | list[dict[str, JSONValue]]]:
        """Plain values, ready for JSON; predictions are left out."""
        return {
            "probe": self.mode,
            "test_accuracy_mean": self.test_accuracy_mean,
            "test_accuracy_std": self.test_accuracy_std,
            "val_accuracy_mean": self.val_accuracy_mean,
            "val_accuracy_std": self.val_accuracy_std,
            "scores": [asdict(score) for score in self.scores],
        }


def mean_std(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (n - 1, none of one value); neither if one is missing."""
    if any(value is None for value in values):
        return None, None
    known = np.asarray(values, dtype=np.float64)
    return float(np.mean(known)), float(np.std(known, ddof=1)) if len(known) > 1 else None


def class_codes(labels: npt.ArrayLike) -> tuple[npt.NDArray[Any], Codes]:
    """As :func:`label_classes`; a single class is refused."""
    classes, codes = label_classes(labels)
    if len(classes) < 2:
        raise EvaluationError(
            f"there are {len(classes)} classes", where="labels", fix="A classifier needs at least two."
        )
    lost = [repr(str(name)) for name in classes if str(name) in MISSING]  # np.asarray makes text of NaN
    if lost and classes.dtype.kind == "U":
        warnings.warn(
            f"labels: {', '.join(lost)} is taken for a class. If it means a missing label, give None.",
            stacklevel=3,
        )
    return classes, codes


def _in_row_order(labels: Any, embeddings: Any) -> Any:
    """Labels of a pandas Series in the order of a frame of embeddings, by index; anything else as it is.

    The default index (0, 1, 2, ... without a name) says nothing of the rows. Any other names nodes, and is
    never ignored.
    """
    index: Any = getattr(labels, "index", None)
    if not hasattr(index, "is_unique"):
        return labels
    each = embeddings if isinstance(embeddings, list | tuple) else [embeddings]
    indexes: list[Any] = [getattr(one, "index", None) for one in each]
    rows, *others = indexes or [None]
    named = hasattr(rows, "is_unique") and not _says_nothing(rows)
    if named and all(hasattr(other, "is_unique") and rows.equals(other) for other in others):
        if rows.equals(index):
            return labels
        if index.is_unique and rows.is_unique and rows.isin(index).all():
            if not _says_nothing(index) or len(rows) < len(index):
                return labels.loc[rows]
        elif _says_nothing(index):
            return labels
    elif not named and _says_nothing(index):
        return labels
    raise EvaluationError(
        "labels and embeddings may be of different nodes, by their indexes",
        where="labels",
        fix="Give both one index: embeddings_frame(graph, z). If the labels are in the order of the rows: "
        "labels.to_numpy().",
    )


def _says_nothing(index: Any) -> bool:
    return index.name is None and index.tolist() == list(range(len(index)))


def _one_each(
    embeddings: Embeddings | Sequence[Embeddings], num_splits: int, num_nodes: int
) -> list[Embeddings]:
    """One checked matrix for every split; the same object is checked once and stays one object."""
    if not isinstance(embeddings, (list, tuple)):
        embeddings = [embeddings] * num_splits
    if len(embeddings) != num_splits:
        raise EvaluationError(
            f"{len(embeddings)} embedding matrices for {num_splits} splits",
            where="probe",
            fix="Give one matrix for all splits, or exactly one a split.",
        )
    checked = {id(matrix): check_embeddings(matrix) for matrix in {id(m): m for m in embeddings}.values()}
    for matrix in checked.values():
        if matrix.shape[0] != num_nodes:
            raise EvaluationError(
                f"embeddings have {matrix.shape[0]} rows for {num_nodes} labels",
                where="probe",
                fix="Give one row and one label for every node.",
            )
    return [checked[id(matrix)] for matrix in embeddings]


def linear_probe(
    embeddings: Embeddings | Sequence[Embeddings],
    labels: npt.ArrayLike,
    splits: Sequence[Split] | None = None,
    *,
    mode: ProbeMode = "fair",
    return_predictions: bool = False,
) -> ProbeResult:
    """Score embeddings with a multinomial logistic regression.

    Args:
        embeddings: ``[nodes, d]``, dense or SciPy sparse, or one such matrix a split (for methods whose
            embeddings depend on the seed).
        labels: the class of each node: whole numbers (-1: unknown) or text (None or "": unknown). A pandas
            Series is aligned with a frame of embeddings by its index; with an array, an index of ids is
            refused.
        splits: which nodes to learn from, tune on and test on; if not given, five draws of 20 training and
            30 validation labels per class (:func:`nodejepa.data.splits.default_splits`).
        mode: ``"fair"`` or ``"paper"``.
        return_predictions: keep the predicted label of each test node, in the order of ``split.test``.

    >>> z = np.repeat(np.eye(3), 50, axis=0)
    >>> split = Split("mine", 0, train=[0, 50, 100], val=[1, 51, 101], test=[2, 52, 102])
    >>> linear_probe(z, np.repeat([0, 1, 2], 50), [split]).test_accuracy_mean
    100.0
    """
    if mode not in get_args(ProbeMode):
        raise EvaluationError(f"probe mode {mode!r} is unknown", where="probe", fix='Use "fair" or "paper".')
    labels = _in_row_order(labels, embeddings)
    classes, codes = class_codes(labels)
    splits = default_splits(labels) if splits is None else splits
    splits = [splits] if isinstance(splits, Split) else list(splits)
    if not splits:
        raise EvaluationError("no split was given", where="probe", fix="Give at least one split.")
    for split in splits:
        if not isinstance(split, Split):
            raise EvaluationError(
                f"a split is a {type(split).__name__}, not a Split",
                where="probe",
                fix='Make one of row numbers: Split("mine", 0, train=[...], val=[...], test=[...]), with '
                "np.flatnonzero(mask) of a mask. Or draw one: per_class_split(labels, seed=42).",
            )
    matrices = _one_each(embeddings, len(splits), len(codes))
    for split in splits:
        split.check(codes, may_lack="" if mode == "fair" else "validation")
    chosen = (_fair if mode == "fair" else _paper)(matrices, splits, codes, len(classes))
    scores, predictions = [], []
    for pick, split in zip(chosen, splits, strict=True):
        logits = pick.logits(split.test)  # the only place where test nodes are looked at
        guesses, truth = logits.argmax(axis=1), codes[split.test]
        predictions.append(classes[guesses])
        scores.append(
            SplitScore(
                split=split.name,
                seed=split.seed,
                split_hash=split.hash,
                val_accuracy=pick.val_accuracy,
                scaling=pick.scaling,
                C=pick.strength,
                converged=pick.converged,
                **measure_guesses(guesses, logits, truth),
            )
        )
    return ProbeResult(mode, tuple(scores), tuple(predictions) if return_predictions else None)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The classifier that is to be tested on one split."""

    embeddings: ScaledEmbeddings
    weights: Matrix  # [k, d]
    intercepts: Matrix  # [k]
    scaling: str
    strength: float
    val_accuracy: float | None
    converged: bool

    def logits(self, nodes: npt.NDArray[np.int64]) -> Matrix:
        return self.embeddings.logits(self.weights[None], self.intercepts[None], nodes)[:, 0]


_Candidate: TypeAlias = tuple[tuple[float, int, int], _Chosen]  # the lowest key is the best


def strength_grid(spread: float) -> list[float]:
    """Values of C for rows with this mean squared distance from their mean (none: any C does)."""
    return [c / spread if spread > 1e-12 else c for c in RELATIVE_STRENGTHS]


@dataclass(frozen=True, eq=False)
class _Case:
    """One split with one scaling."""

    split: Split
    order: int  # of the scaling
    view: ScaledEmbeddings
    codes: Codes

    @property
    def training(self) -> TrainingSet:
        rows, labels = self.view.rows(self.split.train), self.codes[self.split.train]
        return TrainingSet(rows, labels, strength_grid(self.view.spread))

    def judged(self, fit: LinearClassifiers, positions: Sequence[int] = _EVERY) -> list[_Candidate]:
        """Classifiers with the values of C at ``positions``, and their accuracy on validation nodes."""
        truth, grid = self.codes[self.split.val], strength_grid(self.view.spread)
        guesses = self.view.predict(fit.weights, fit.intercepts, self.split.val)
        candidates = []
        for i, position in enumerate(positions):
            pick = _Chosen(
                self.view,
                fit.weights[i],
                fit.intercepts[i],
                SCALINGS[self.order],
                grid[position],
                accuracy(guesses[i], truth),
                bool(fit.converged[i]),
            )
            candidates.append(((-(pick.val_accuracy or 0.0), position, self.order), pick))
        return candidates


def _fair(
    matrices: Sequence[Embeddings], splits: Sequence[Split], codes: Codes, classes: int
) -> Iterator[_Chosen]:
    """Fit every split, scaling and C, then choose for each split on its validation nodes."""
    # splits often share one matrix: it is scaled once
    distinct = {id(matrix): matrix for matrix in matrices}
    views = {key: [scale(matrix, scaling) for scaling in SCALINGS] for key, matrix in distinct.items()}
    cases = [
        _Case(split, order, view, codes)
        for split, matrix in zip(splits, matrices, strict=True)
        for order, view in enumerate(views[id(matrix)])
    ]
    if any(is_costly(len(s.train), m.shape[1], classes) for s, m in zip(splits, matrices, strict=True)):
        found = _contenders(cases, classes)
    else:
        fits = fit_logistic((case.training for case in cases), classes)
        found = (case.judged(fit) for case, fit in zip(cases, fits, strict=True))
    for of_split in _by_split(found):
        # ties go to the stronger regularisation, then to the first scaling
        yield min((c for candidates in of_split for c in candidates), key=lambda candidate: candidate[0])[1]


def _contenders(cases: Sequence[_Case], classes: int) -> Iterator[list[_Candidate]]:
    """The candidates of every case where all of them would take minutes (many classes).

    All are fitted roughly, and exactly only those whose validation accuracy is near the best of their split.
    """
    with progress_bar("Fitting classifiers", total=2 * len(cases)) as advance:
        rough = []
        for fit in side_by_side(partial(_fit_roughly, case, classes) for case in cases):
            rough.append(fit)
            advance()
        best = [max(score for _, scores in pair for score in scores) for pair in _by_split(rough)]
        jobs = (partial(_refine, case, *rough[i], best[i // len(SCALINGS)]) for i, case in enumerate(cases))
        for candidates in side_by_side(jobs):
            advance()
            yield candidates


def _fit_roughly(case: _Case, classes: int) -> tuple[RoughFit, list[float]]:
    """The fit, and the validation accuracy for every value of C."""
    fit = RoughFit(case.training, classes)
    return fit, [pick.val_accuracy or 0.0 for _, pick in case.judged(fit.classifiers)]


def _refine(case: _Case, fit: RoughFit, scores: Sequence[float], best: float) -> list[_Candidate]:
    points, nodes = _ROUGH_ERROR
    error = max(points, 100 * nodes / len(case.split.val))
    near = [position for position, score in enumerate(scores) if score >= best - error]
    return case.judged(fit.refined(near), near) if near else []


def _by_split(values: Iterable[_T]) -> Iterator[tuple[_T, ...]]:
    """Those of every case, a tuple with one for each scaling per split."""
    return zip(*[iter(values)] * len(SCALINGS), strict=True)


def _paper(
    matrices: Sequence[Embeddings], splits: Sequence[Split], codes: Codes, classes: int
) -> Iterator[_Chosen]:
    """Scikit-learn on the raw embeddings, C = 1. Training rows are float64: in float32 L-BFGS stops early."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    for matrix, split in zip(matrices, splits, strict=True):
        view = scale(matrix, "none")
        model = LogisticRegression(C=1.0, max_iter=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` says it
            model.fit(view.rows(split.train), codes[split.train])
        weights, intercepts = _all_classes(model, classes)
        pick = _Chosen(
            view, weights, intercepts, "none", 1.0, None, int(model.n_iter_.max()) < model.max_iter
        )
        if split.val.size:
            guesses = pick.logits(split.val).argmax(axis=1)
            pick = replace(pick, val_accuracy=accuracy(guesses, codes[split.val]))
        yield pick


def _all_classes(model: Any, num_classes: int) -> tuple[Matrix, Matrix]:
    """Scikit-learn leaves out absent classes, and one row of two: put them back."""
    coefficients, offsets = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        coefficients, offsets = np.vstack([-coefficients, coefficients]), np.concatenate([-offsets, offsets])
    weights = np.zeros((num_classes, coefficients.shape[1]))
    intercepts = np.full(num_classes, -np.inf)
    weights[model.classes_], intercepts[model.classes_] = coefficients, offsets
    return weights, intercepts
