"""Which labels may be learned from, tuned on and tested on. A split is its name, its seed and its hash.

Unlabelled nodes carry the label -1 and are in no part of any split.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from nodejepa.errors import EvaluationError

Indices: TypeAlias = npt.NDArray[np.int64]

SPLIT_SEEDS = (42, 43, 44, 45, 46)
TRAIN, VALIDATION = 20, 30  # labels per class
SCORED_NODES = 1 << 18  # whose embeddings are read to score them: 270 MB at 256 columns
_SPLIT_NAMES = '"20-30" (any "TRAIN-VAL" labels per class), "random-10-10-80" (percent), "official"'


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of node positions, each sorted and read-only.

    >>> Split("mine", 0, train=[2, 0], val=[1], test=[3, 4]).train.tolist()
    [0, 2]
    """

    name: str
    seed: int
    train: Indices
    val: Indices
    test: Indices

    def __post_init__(self) -> None:
        for part in ("train", "val", "test"):
            object.__setattr__(
                self, part, _positions(getattr(self, part), f"{part} part of split {self.name}")
            )
        everything = np.concatenate([self.train, self.val, self.test])
        if np.unique(everything).size != everything.size:
            raise EvaluationError(
                "a node is listed twice",
                where=f"split {self.name}",
                fix="Training, validation and test nodes must be disjoint.",
            )

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits that change with the name, the seed or any node of any part."""
        sha = hashlib.sha256(f"{self.name}|{self.seed}".encode())
        for part in (self.train, self.val, self.test):
            sha.update(f"|{part.size}|".encode())
            sha.update(part.astype("<i8").tobytes())
        return sha.hexdigest()[:16]

    def check(self, codes: Indices, *parts: str, may_lack: str = "") -> None:
        """Refuse an empty part (but for the one it ``may_lack``), or one with nodes that have no class.

        Args:
            codes: class of each node, -1 where it is unknown.
            parts: of ``"training"``, ``"validation"`` and ``"test"``, which are looked at; all if not given.
            may_lack: the part that may be empty.
        """
        where = f"split {self.name}, seed {self.seed}"
        known = {"training": self.train, "validation": self.val, "test": self.test}
        for name in parts or known:
            nodes = known[name]
            if nodes.size == 0:
                if name == may_lack:
                    continue
                fix = "Use a split that leaves some: validation nodes choose settings and say when to stop."
                raise EvaluationError(f"there are no {name} nodes", where=where, fix=fix)
            there = nodes < len(codes)
            without = nodes[~there | (codes[np.where(there, nodes, 0)] < 0)]
            if without.size:
                first = without.min()
                why = "has no label" if first < len(codes) else "does not exist"
                raise EvaluationError(
                    f"{name} node {first} {why}",
                    where=where,
                    fix="Make the split from the labels of the same graph, and leave unlabelled nodes out.",
                )
        if len(np.unique(codes[self.train])) < 2:
            raise EvaluationError(
                "all training nodes are of one class",
                where=where,
                fix="Use more training labels: a classifier needs at least two classes.",
            )

    def __repr__(self) -> str:
        sizes = f"train={self.train.size}, val={self.val.size}, test={self.test.size}"
        return f"Split({self.name!r}, seed={self.seed}, {sizes})"


def per_class_split(labels: npt.ArrayLike, *, train: int = 20, val: int = 30, seed: int) -> Split:
    """``train`` and ``val`` labels of every class, the rest for testing (the paper: 20 and 30, seeds 42-46).

    A class too small for that gives at most 40 % of its members (rounded up, so at least one) to training and
    at most half of what is then left to validation: 20/30 is exact from 80 members on, a class of two
    has one training and one test node, and a class of one is trained on only. The rule has no jumps.

    >>> per_class_split(np.repeat([0, 1], [100, 5]), seed=42)
    Split('20-30', seed=42, train=22, val=31, test=52)
    """
    if train < 1 or val < 0:
        raise EvaluationError(
            f"{train} training and {val} validation labels per class",
            where="split",
            fix="At least one training label per class is needed, and no negative numbers.",
        )
    classes, labelled = _labelled(labels)
    shuffled = _generator(seed).permutation(labelled)
    _, group, sizes = np.unique(classes[shuffled], return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    # the position of each node in the shuffled order of its own class
    rank = np.empty(group.size, dtype=np.int64)
    rank[order] = np.arange(group.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    for_train = np.minimum(train, -(-2 * sizes // 5))
    for_val = np.minimum(val, (sizes - for_train) // 2)
    in_train = rank < for_train[group]
    in_val = ~in_train & (rank < (for_train + for_val)[group])
    return Split(f"{train}-{val}", seed, shuffled[in_train], shuffled[in_val], shuffled[~in_train & ~in_val])


def default_splits(labels: npt.ArrayLike) -> list[Split]:
    """Five draws of 20 training and 30 validation labels per class, fewer of classes that are smaller.

    >>> len(default_splits(np.repeat([0, 1], 100)))
    5
    """
    classes, labelled = _labelled(labels)
    sizes = np.unique(classes[labelled], return_counts=True)[1]
    # 3 labels are the fewest of which one is for training, one for validation and one for testing
    if np.count_nonzero(sizes >= 3) < 2:
        raise EvaluationError(
            f"{labelled.size} labels in {sizes.size} classes are too few for a score",
            where="labels",
            fix="At least two classes need three labelled nodes each.",
        )
    return [per_class_split(labels, train=TRAIN, val=VALIDATION, seed=seed) for seed in SPLIT_SEEDS]


def scored_nodes(labels: npt.NDArray[np.integer[Any]], most: int = SCORED_NODES) -> Indices:
    """The nodes whose embeddings are scored: all of a graph, or, of a large one, labelled nodes at random."""
    if len(labels) <= most:
        return np.arange(len(labels))
    known = np.flatnonzero(labels >= 0)
    return np.sort(np.random.default_rng(0).choice(known, min(most, len(known)), replace=False))


def describe_scored(nodes: Indices, total: int) -> str:
    """Which nodes are scored, in words; empty where all are."""
    return "" if len(nodes) == total else f"scored on {len(nodes):,} labelled nodes, drawn at random"


def random_split(labels: npt.ArrayLike, *, train: float = 0.1, val: float = 0.1, seed: int) -> Split:
    """Shares of the labelled nodes drawn without regard to class, as most of the literature does.

    Shares are rounded down, but training gets at least one node. A rare class may be missing from training.

    >>> random_split(np.arange(100) % 3, seed=0)
    Split('random-10-10-80', seed=0, train=10, val=10, test=80)
    """
    if not (0 < train <= 1 and 0 <= val <= 1 and train + val <= 1 + 1e-9):
        raise EvaluationError(
            f"shares {train} for training and {val} for validation",
            where="split",
            fix="Give a positive training share; both together are at most 1.",
        )
    _, labelled = _labelled(labels)
    shuffled = _generator(seed).permutation(labelled)
    first = max(1, _share(train, labelled.size))
    second = min(first + _share(val, labelled.size), labelled.size)
    rest = abs(1 - train - val)  # abs: a rest of -1e-17 is not "-0"
    name = "random-" + "-".join(f"{100 * share:.4g}" for share in (train, val, rest))
    return Split(name, seed, shuffled[:first], shuffled[first:second], shuffled[second:])


def make_split(name: str, labels: npt.ArrayLike, seed: int, official: Split | None = None) -> Split:
    """The split called ``name``.

    Args:
        name: ``"20-30"`` or any other ``"TRAIN-VAL"`` labels per class, ``"random-10-10-80"`` or other
            percentages that add up to 100, or ``"official"``.
        labels: one label per node, -1 where unknown.
        seed: of the draw; the official split was drawn once by its authors and is the same for every seed.
        official: the split that came with the data, if any.
    """
    if name == "official":
        if official is None:
            raise EvaluationError(
                "this graph has no official split", where="split", fix='Use "20-30" or "random-10-10-80".'
            )
        return official
    numbers = parse_split_name(name)
    if len(numbers) == 2:
        return per_class_split(labels, train=int(numbers[0]), val=int(numbers[1]), seed=seed)
    return random_split(labels, train=numbers[0] / 100, val=numbers[1] / 100, seed=seed)


def parse_split_name(name: str) -> tuple[float, ...]:
    """Labels per class of ``"TRAIN-VAL"``, the percentages of ``"random-TRAIN-VAL-TEST"``, else an error.

    >>> parse_split_name("20-30"), parse_split_name("random-10-10-80")
    ((20.0, 30.0), (10.0, 10.0, 80.0))
    """
    name = str(name)
    if match := re.fullmatch(r"(\d{1,9})-(\d{1,9})", name):
        return float(match[1]), float(match[2])
    if match := re.fullmatch(r"random-(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", name):
        train, val, test = (float(percent) for percent in match.groups())
        if abs(train + val + test - 100) > 1e-3:
            raise EvaluationError(f"split {name!r} does not add up to 100 percent", where="split")
        return train, val, test
    raise EvaluationError(f"split {name!r} is unknown", where="split", fix=f"Use {_SPLIT_NAMES}.")


def _share(share: float, count: int) -> int:
    return int(share * count + 1e-9)  # 0.29 * 100 is 28.999999999999996


def _generator(seed: int) -> np.random.Generator:
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise EvaluationError(f"seed is {seed!r}", where="split", fix="Use a whole number, 0 or more.")
    return np.random.default_rng(seed)


def label_classes(labels: npt.ArrayLike) -> tuple[npt.NDArray[Any], Indices]:
    """The classes there are, sorted, and the position of each node's among them; -1 where it is unknown.

    Labels are whole numbers (-1: unknown), truth values or text, one for every node; None, NaN and "" are
    unknown. Whole numbers may be floats: data frames make these of them where one is missing.

    >>> label_classes(["b", None, "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([ 1, -1,  0,  1]))
    """
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] > 1:
        _refuse_labels(array, "Score several labels of a node one at a time: linear_probe(z, y[:, 0]).")
    if array.ndim == 1 and array.dtype.kind in "bfO":
        array = _whole_numbers(array)
    if array.dtype.kind in "OU" and array.ndim == 1:
        known = np.array([isinstance(label, str) and label != "" for label in array.tolist()], dtype=bool)
        if not all(_is_missing(label) for label in array[~known].tolist()):
            _refuse_labels(array, "Give text alone, or whole numbers alone.")
        array = np.where(known, array, "").astype(np.str_)
    elif array.dtype.kind in "iu" and array.ndim == 1:
        known = array >= 0
        array = array.astype(np.int64)
        if array.min(initial=0) < -1:
            raise EvaluationError(
                f"label {array.min()} is negative", where="labels", fix="Only -1 (unknown) may be."
            )
    else:
        _refuse_labels(
            array,
            "Give one whole number or text per node. Numbers to predict are no classes: group them "
            "(np.digitize), or fit a regression of scikit-learn on the embeddings.",
        )
    classes, positions = np.unique(array[known], return_inverse=True)
    codes = np.full(array.shape, -1, dtype=np.int64)
    codes[known] = positions
    return classes, codes


def _whole_numbers(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as whole numbers, -1 where missing, if all of them are such; else as they are."""
    lost = np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    known = labels[~lost].tolist()
    if not known or not all(isinstance(one, int | float) and float(one).is_integer() for one in known):
        return labels
    return np.where(lost, -1, labels).astype(np.int64)


def _is_missing(label: Any) -> bool:
    """None, NaN, pandas' NA or no text at all."""
    return label is None or label == "" or type(label).__name__ == "NAType" or label != label


def _refuse_labels(labels: npt.NDArray[Any], fix: str) -> NoReturn:
    raise EvaluationError(f"labels are {labels.dtype} with shape {labels.shape}", where="labels", fix=fix)


def _labelled(labels: npt.ArrayLike) -> tuple[Indices, Indices]:
    """The class of each node and the positions of the labelled nodes."""
    codes = label_classes(labels)[1]
    labelled = np.flatnonzero(codes >= 0)
    if labelled.size == 0:
        raise EvaluationError("no node has a label", where="labels", fix="A split needs labelled nodes.")
    return codes, labelled


def _positions(values: npt.ArrayLike, where: str) -> Indices:
    array = np.asarray(values)
    if array.size == 0:
        array = np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min(initial=0) < 0:
        raise EvaluationError("these are no node positions", where=where, fix="Give whole numbers from 0 on.")
    out = np.sort(array.astype(np.int64))
    out.flags.writeable = False
    return out
