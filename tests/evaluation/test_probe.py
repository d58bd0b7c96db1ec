"""The fair probe equals a naive loop over scikit-learn, reads test labels once and refuses nonsense."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from nodejepa.data import Dataset
from nodejepa.data.splits import Split, per_class_split
from nodejepa.errors import EvaluationError
from nodejepa.evaluation import linear_probe
from nodejepa.evaluation.logistic import RoughFit, scale
from nodejepa.evaluation.probe import RELATIVE_STRENGTHS, balanced_accuracy, macro_f1, roc_auc, strength_grid
from nodejepa.evaluation.scoring import score_method, score_run
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, SupervisedGCN
from reference.evaluation import fair_probe


@pytest.fixture(scope="module")
def task():
    """900 nodes, 4 classes, 24 correlated dimensions; three splits."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 4, size=900)
    hidden = 0.6 * rng.normal(size=(4, 24))[labels] + rng.normal(size=(900, 24))
    mix = rng.normal(size=(24, 24)) * np.linspace(1, 0.1, 24)[:, None]
    splits = [per_class_split(labels, seed=seed) for seed in (42, 43, 44)]
    return (hidden @ mix).astype(np.float32), labels, splits


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_fair_probe_equals_the_naive_loop(task, kind):
    z, labels, splits = task
    if kind == "sparse":
        z = sp.csr_array(np.where(z > 0.3, z, 0))
    result = linear_probe(z, labels, splits)
    for score, split in zip(result.scores, splits, strict=True):
        accuracy, test, scaling, strength = fair_probe(z, labels, split, strength_grid)
        assert score.val_accuracy == pytest.approx(accuracy, abs=0.1)
        assert score.test_accuracy == pytest.approx(test, abs=0.1)
        assert (score.scaling, score.C) == (scaling, pytest.approx(strength, rel=1e-6))
        assert score.converged


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_rough_fit_first_changes_no_choice(task, kind, monkeypatch):
    z, labels, splits = task
    if kind == "sparse":
        z = sp.csr_array(np.where(z > 0.3, z, 0))
    usual = linear_probe(z, labels, splits)
    monkeypatch.setattr("nodejepa.evaluation.logistic._COSTLY", 10)
    refined = []
    refine = RoughFit.refined
    monkeypatch.setattr(RoughFit, "refined", lambda self, near: refined.append(near) or refine(self, near))
    quick = linear_probe(z, labels, splits)
    assert [(s.scaling, s.C) for s in quick.scores] == [(s.scaling, s.C) for s in usual.scores]
    assert [s.test_accuracy for s in quick.scores] == pytest.approx(
        [s.test_accuracy for s in usual.scores], abs=0.3
    )
    assert 0 < sum(map(len, refined)) < len(splits) * 2 * len(RELATIVE_STRENGTHS)


def test_paper_mode_is_scikit_learn_on_raw_embeddings(task):
    z, labels, splits = task
    result = linear_probe(z, labels, splits, mode="paper", return_predictions=True)
    for score, split, guess in zip(result.scores, splits, result.predictions, strict=True):
        model = LogisticRegression(C=1.0, max_iter=1000).fit(
            z[split.train].astype(np.float64), labels[split.train]
        )
        assert np.array_equal(guess, model.predict(z[split.test]))
        assert score.test_accuracy == pytest.approx(100 * model.score(z[split.test], labels[split.test]))
        assert (score.scaling, score.C, score.converged) == ("none", 1.0, True)


def test_paper_mode_needs_no_validation_nodes_and_does_two_classes(task):
    z, labels, _ = task
    split = Split("mine", 0, train=np.arange(50), val=[], test=np.arange(50, 900))
    result = linear_probe(z, labels // 2, [split], mode="paper")
    assert result.scores[0].val_accuracy is result.val_accuracy_mean is result.val_accuracy_std is None
    model = LogisticRegression(max_iter=1000).fit(z[:50].astype(np.float64), labels[:50] // 2)
    assert result.test_accuracy_mean == pytest.approx(100 * model.score(z[50:], labels[50:] // 2))


def test_a_constant_offset_changes_nothing_once_standardised(task):
    z, _, splits = task
    for shift in (0.0, 7.0, -300.0):
        view = scale((z + shift).astype(np.float64), "standardise")
        assert view.rows(splits[0].train) == pytest.approx(
            scale(z.astype(np.float64), "standardise").rows(splits[0].train), abs=1e-3
        )
        assert view.spread == 24


@pytest.mark.slow
def test_the_choice_does_not_see_test_labels(task):
    z, labels, splits = task
    poisoned = labels.copy()
    poisoned[splits[0].test] = np.random.default_rng(0).permutation(labels[splits[0].test])
    honest, blind = (linear_probe(z, y, splits[:1]).scores[0] for y in (labels, poisoned))
    read = {"test_accuracy": 0.0, "balanced_accuracy": 0.0, "macro_f1": 0.0}  # of the test labels
    assert replace(honest, **read) == replace(blind, **read)
    assert honest.test_accuracy > blind.test_accuracy + 10


def test_test_nodes_are_predicted_once(task, monkeypatch):
    from nodejepa.evaluation.logistic import ScaledEmbeddings

    z, labels, splits = task
    asked = []
    logits = ScaledEmbeddings.logits

    def spy(self, weights, intercepts, positions):
        asked.append((len(weights), positions))
        return logits(self, weights, intercepts, positions)

    monkeypatch.setattr(ScaledEmbeddings, "logits", spy)
    linear_probe(z, labels, splits[:1])
    touching = [(n, p) for n, p in asked if np.isin(p, splits[0].test).any()]
    assert [(n, p.tolist()) for n, p in touching] == [(1, splits[0].test.tolist())]


def test_ties_go_to_the_strongest_regularisation():
    z = np.repeat(np.eye(3), 60, axis=0)
    labels = np.repeat([0, 1, 2], 60)
    score = linear_probe(z, labels, [per_class_split(labels, seed=0)]).scores[0]
    assert score.test_accuracy == score.val_accuracy == 100
    assert score.scaling == "standardise"
    assert pytest.approx(RELATIVE_STRENGTHS[0] / 3) == score.C


@pytest.mark.slow
def test_one_matrix_a_split(task):
    z, labels, splits = task
    noise = np.random.default_rng(0).normal(size=z.shape).astype(np.float32)
    mixed = linear_probe([z, noise, z], labels, splits)
    shared = linear_probe(z, labels, splits)
    assert mixed.scores[0] == shared.scores[0]
    assert mixed.scores[2] == shared.scores[2]
    assert mixed.scores[1].test_accuracy < 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [np.array([3, 13, 23, 33]), np.array(["ape", "bee", "cat", "dog"])], ids=["gaps", "text"]
)
def test_labels_need_not_be_contiguous_and_may_be_unknown_outside_splits(task, names):
    z, labels, splits = task
    whole, odd = splits[0], names[labels]
    split = Split("part", 0, whole.train, whole.val, whole.test[:300])
    odd[whole.test[300:]] = -1 if odd.dtype.kind == "i" else ""
    plain = linear_probe(z, labels, [split])
    named = linear_probe(z, odd, [split], return_predictions=True)
    assert named.scores == plain.scores
    assert named.test_accuracy_mean == pytest.approx(100 * np.mean(named.predictions[0] == odd[split.test]))


def test_unknown_labels_of_either_kind_give_the_same_splits():
    numbers = np.arange(400) % 4
    some = [None, "", float("nan"), *np.array(["ape", "bee", "cat", "dog"])[numbers[3:]]]
    assert per_class_split(some, seed=1).hash == per_class_split([-1, -1, -1, *numbers[3:]], seed=1).hash


@pytest.mark.slow
def test_a_class_without_training_labels_is_simply_never_predicted(task):
    z, labels, splits = task
    train = splits[0].train[labels[splits[0].train] != 2]
    split = Split("three of four", 0, train, splits[0].val, splits[0].test)
    for mode in ("fair", "paper"):
        result = linear_probe(z, labels, [split], mode=mode, return_predictions=True)
        assert 2 not in result.predictions[0]


@pytest.mark.parametrize("mode", ["fair", "paper"])
def test_constant_embeddings_predict_one_class(mode):
    labels = np.arange(300) % 3
    result = linear_probe(np.ones((300, 5)), labels, [per_class_split(labels, seed=1)], mode=mode)
    assert result.test_accuracy_mean == pytest.approx(100 / 3)


def test_mean_and_sample_std(task):
    z, labels, splits = task
    result = linear_probe(z, labels, splits, mode="paper")
    accuracies = [s.test_accuracy for s in result.scores]
    assert result.test_accuracy_mean == pytest.approx(np.mean(accuracies))
    assert result.test_accuracy_std == pytest.approx(np.std(accuracies, ddof=1))
    assert linear_probe(z, labels, splits[:1], mode="paper").test_accuracy_std is None
    told = json.loads(json.dumps(result.to_dict()))
    assert told["probe"] == "paper"
    assert told["scores"][1]["split_hash"] == splits[1].hash


def with_value(z, value):
    return np.where(np.arange(z.size).reshape(z.shape) == 17, np.float32(value), z)


BROKEN = {
    "NaN or infinite": lambda z, y, s: (with_value(z, np.nan), y, s),
    "1 of the values": lambda z, y, s: (sp.csr_array(with_value(z, np.inf)), y, s),
    "899 rows for 900 labels": lambda z, y, s: (z[:-1], y, s),
    "no table of rows": lambda z, y, s: (z[:, 0], y, s),
    r"shape \(900, 0\)": lambda z, y, s: (z[:, :0], y, s),
    "not real numbers": lambda z, y, s: (z.astype(str), y, s),
    "labels are float64": lambda z, y, s: (z, y + 0.5, s),
    r"labels are int64 with shape \(900, 1\)": lambda z, y, s: (z, y[:, None], s),
    r"one at a time: linear_probe\(z, y\[:, 0\]\)": lambda z, y, s: (z, np.eye(4, dtype=int)[y], s),
    "regression of scikit-learn": lambda z, _, s: (z, z[:, 0], s),
    "text alone": lambda z, _, s: (z, np.array(["a", 1] * 450, dtype=object), s),
    "there are 1 classes": lambda z, y, s: (z, np.zeros_like(y), s),
    "there are 0 classes": lambda z, y, s: (z, np.full_like(y, -1), s),
    "has no label": lambda z, y, s: (z, np.where(np.arange(900) == s[0].test[0], -1, y), s),
    "no split was given": lambda z, y, s: (z, y, s[:0]),
    "no test nodes": lambda z, y, s: (z, y, [Split("x", 0, s[0].train, s[0].val, [])]),
    "no training nodes": lambda z, y, s: (z, y, [Split("x", 0, [], s[0].val, s[0].test)]),
    "no validation nodes": lambda z, y, s: (z, y, [Split("x", 0, s[0].train, [], s[0].test)]),
    "node 900 does not exist": lambda z, y, s: (z, y, [Split("x", 0, s[0].train, s[0].val, [900])]),
    "of one class": lambda z, y, s: (
        z,
        y,
        [Split("x", 0, s[0].train[y[s[0].train] == 1], s[0].val, s[0].test)],
    ),
    "2 embedding matrices for 3 splits": lambda z, y, s: ([z, z], y, s),
}


@pytest.mark.parametrize("message", BROKEN)
def test_bad_input_is_refused(task, message):
    with pytest.raises(EvaluationError, match=message):
        linear_probe(*BROKEN[message](*task))


def test_unknown_mode_is_refused(task):
    with pytest.raises(EvaluationError, match="paper"):
        linear_probe(*task, mode="best")


@pytest.mark.slow
def test_propagated_features_of_photo_score_as_measured_elsewhere(data_root):
    with np.load(data_root / "Amazon" / "Photo" / "raw" / "amazon_electronics_photo.npz") as file:
        parts = {
            name: sp.csr_array(
                (file[f"{name}_data"], file[f"{name}_indices"], file[f"{name}_indptr"]),
                shape=file[f"{name}_shape"],
            )
            for name in ("adj", "attr")
        }
        labels = file["labels"].astype(np.int64)
    graph = Graph.from_scipy(parts["adj"], parts["attr"], direction="symmetrize")
    smooth = graph.normalized_adjacency
    propagated = (smooth @ (smooth @ graph.features)).toarray()
    splits = [per_class_split(labels, seed=seed) for seed in (42, 43)]
    assert 90 <= linear_probe(propagated, labels, splits).test_accuracy_mean <= 92.5


# ---------------------------------------------------------------- measures


def test_the_largest_class_flatters_accuracy_only():
    truth = np.array([0] * 90 + [1] * 10)
    guesses = np.zeros(100, dtype=np.int64)
    assert balanced_accuracy(guesses, truth) == 50
    assert macro_f1(guesses, truth) == pytest.approx(100 * (2 * 0.9 / 1.9) / 2)
    rng = np.random.default_rng(0)
    guesses, truth = rng.integers(0, 4, (2, 200))
    assert balanced_accuracy(guesses, truth) == pytest.approx(100 * balanced_accuracy_score(truth, guesses))


def test_ranking_of_two_classes():
    truth = np.array([0, 0, 1, 1])
    logits = np.array([[0.0, -1], [0, 3], [0, 2], [0, 4]])
    assert roc_auc(logits, truth) == 75
    assert roc_auc(np.zeros((4, 3)), truth) is None
    assert roc_auc(logits, np.zeros(4, dtype=np.int64)) is None


def test_a_probe_gives_them():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [150, 50])
    z = rng.normal(size=(200, 4)) + labels[:, None]
    order = rng.permutation(200)
    split = Split("mine", 0, train=order[:40], val=order[40:80], test=order[80:])
    (score,) = linear_probe(z, labels, [split]).scores
    assert 50 < score.roc_auc <= 100
    assert 0 < score.macro_f1 <= 100
    assert score.balanced_accuracy != score.test_accuracy


# ---------------------------------------------------------------- methods by seeds


SMALL = {"encoder.hidden": 8, "training.epochs": 3}


@pytest.fixture(scope="module")
def dataset(toy_graph):
    return Dataset("toy", toy_graph, np.repeat([0, 1], 30))


@pytest.mark.slow
def test_every_seed_trains_on_its_own_split(dataset):
    score = score_method(dataset, "supervised-gcn", [3, 4], settings=SMALL, split="5-5")
    written = json.loads(json.dumps(score.to_dict()))
    assert [row["seed"] for row in written["head"]["scores"]] == [3, 4]
    for row in written["head"]["scores"]:
        split = dataset.split("5-5", seed=row["seed"])
        made = SupervisedGCN(seed=row["seed"], **SMALL).fit(dataset.graph, labels=dataset.labels, split=split)
        right = made.predict(dataset.graph) == dataset.labels
        assert row["test_accuracy"] == pytest.approx(100 * right[split.test].mean())
        assert row["val_accuracy"] == pytest.approx(100 * right[split.val].mean())
        assert row["epochs"] == 3
    tests = [row["test_accuracy"] for row in written["head"]["scores"]]
    assert written["head"]["test_accuracy_mean"] == pytest.approx(np.mean(tests))
    assert written["head"]["test_accuracy_std"] == pytest.approx(np.std(tests, ddof=1))
    assert written["config"]["training"]["epochs"] == 3


def test_a_run_trained_with_labels_is_not_probed_on_other_splits(dataset, tmp_path):
    split = dataset.split("5-5", seed=0)
    SupervisedGCN(**SMALL).fit(dataset.graph, labels=dataset.labels, split=split, out=tmp_path)
    with pytest.raises(EvaluationError, match=r'test labels of other splits.*method="supervised-gcn"'):
        score_run(dataset, tmp_path, [1], split="5-5")


@pytest.mark.parametrize(("method", "fits"), [("sgc", 1), ("random-gcn", 2)])
def test_only_methods_with_a_seed_are_embedded_again(method, fits, dataset, monkeypatch):
    baseline, seen = METHODS[method], []
    fit = baseline.fit
    monkeypatch.setattr(
        baseline, "fit", lambda self, *given, **named: seen.append(self) or fit(self, *given, **named)
    )
    score = score_method(dataset, method, [1, 2], split="5-5")
    assert len(score.result.scores) == 2
    assert len(seen) == fits
    assert "head" not in score.to_dict()


def test_labels_of_a_series_follow_the_index_of_the_embeddings(task):
    """Labels in another order scored near chance, and nothing said why."""
    z, labels, splits = task
    names = [f"n{i}" for i in range(len(z))]
    rows = pd.DataFrame(z, index=names)
    known = pd.Series(labels, index=names)
    wanted = linear_probe(rows, labels, splits)
    assert wanted.test_accuracy_mean == linear_probe(z, labels, splits).test_accuracy_mean
    for given in (known.sample(frac=1, random_state=0), pd.Series(labels)):  # a default index says nothing
        assert linear_probe(rows, given, splits).test_accuracy_mean == wanted.test_accuracy_mean
    with pytest.raises(EvaluationError, match="of different nodes, by their indexes"):
        linear_probe(rows, known.rename(lambda name: name.upper()), splits)
    assert linear_probe(z, pd.Series(labels), splits).test_accuracy_mean == wanted.test_accuracy_mean
    assert linear_probe([rows] * 3, known[::-1], splits).test_accuracy_mean == wanted.test_accuracy_mean


@pytest.mark.parametrize(
    "rows", [lambda z: z, pd.DataFrame, lambda z: [z] * 3, lambda z: [pd.DataFrame(z)] * 3]
)
@pytest.mark.parametrize("names", ["words", "numbers in another order", "numbers with a name"])
def test_an_index_of_ids_is_never_ignored(task, rows, names):
    """Scored by position, labels that were listed in another order gave 48 % in place of 100."""
    z, labels, splits = task
    numbers = np.arange(len(z))
    index = {
        "words": [f"n{i}" for i in numbers],
        "numbers in another order": np.random.default_rng(0).permutation(numbers),
        "numbers with a name": pd.RangeIndex(len(z), name="id"),
    }[names]
    with pytest.raises(EvaluationError, match=r"by their indexes.*embeddings_frame.*labels\.to_numpy"):
        linear_probe(rows(z), pd.Series(labels, index=index), splits)


def test_the_default_index_of_labels_does_not_hide_numbers_that_name_the_rows(task):
    """It may be the ids, or nothing; and frames in two orders have no one order of labels."""
    z, labels, splits = task
    rows = pd.DataFrame(z, index=np.random.default_rng(0).permutation(len(z)))
    for given, known in (
        (rows, pd.Series(labels)),
        ([rows, rows[::-1], rows], pd.Series(labels, rows.index)),
    ):
        with pytest.raises(EvaluationError, match="by their indexes"):
            linear_probe(given, known, splits)


@pytest.mark.parametrize("split", [(np.arange(9) > 4, np.arange(9) < 3), {"train": [0], "test": [1]}, [0]])
def test_what_is_no_split_is_refused_and_how_to_make_one_is_said(task, split):
    z, labels, _ = task
    for given in ([split], split):
        with pytest.raises(EvaluationError, match=r'not a Split.*Split\("mine".*per_class_split'):
            linear_probe(z, labels, given)


@pytest.mark.parametrize("lost", ["nan", "None", "NA"])
def test_classes_that_say_missing_are_warned_of(task, lost):
    """NumPy makes text of NaN, and it was scored as a class."""
    z, labels, splits = task
    words = np.array(["a", "b", "c", "d"])[labels]
    with pytest.warns(UserWarning, match=f"{lost!r} is taken for a class.*give None"):
        linear_probe(z, np.where(words == "d", lost, words), splits)
    linear_probe(z, words, splits)


def test_whole_numbers_that_became_floats_are_classes(task):
    """A data frame has floats where one label is missing; pandas' own integers come as objects."""
    z, labels, splits = task
    free = np.setdiff1d(np.arange(len(z)), np.concatenate([splits[0].train, splits[0].val, splits[0].test]))
    lost = pd.Series(labels).where(~np.isin(np.arange(len(z)), free[:5]))
    wanted = linear_probe(z, np.where(lost.isna(), -1, labels), splits[:1]).test_accuracy_mean
    for given in (lost, lost.astype("Int64"), lost.to_list()):
        assert linear_probe(z, given, splits[:1]).test_accuracy_mean == wanted
    first = linear_probe(z, labels == 0)
    assert first.test_accuracy_mean == linear_probe(z, (labels == 0).astype(int)).test_accuracy_mean
