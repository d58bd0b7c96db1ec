"""The supervised GCN: naive twin, what it may see of labels, stopping, resuming, saving."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from tests.interrupted import interrupted_after

from nodejepa.data import Split, per_class_split
from nodejepa.errors import CheckpointError, ConfigError, EvaluationError, GraphError
from nodejepa.graph import Graph
from nodejepa.methods import SupervisedGCN, load_method
from nodejepa.methods.supervised import Classifier, ClassifierTask, supervise
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.logger import Logging
from nodejepa.training.run import load_tensors, save_tensors
from nodejepa.training.task import StepContext
from reference.encoders import assert_same_gradients, encode_graph
from reference.matrices import propagation_tensor

LABELS = np.repeat([0, 1], 30)  # the communities of toy_graph
SPLIT = per_class_split(LABELS, train=5, val=5, seed=0)
VAL = SPLIT.val.copy()  # torch wants to index with what it may write to
SMALL = {"encoder.hidden": 8, "epochs": 12}


def fitted(graph, labels=LABELS, split=SPLIT, seed=0, **changes):
    return SupervisedGCN(seed=seed, **(SMALL | changes)).fit(graph, labels=labels, split=split)


def weights(model):
    return model.encoder_.state_dict()


def same(one, other):
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def task_of(graph, *, hidden=8, layers=2, labels=LABELS, split=SPLIT, head=None, encoder=None, **settings):
    torch.manual_seed(0)
    encoder = encoder or GCN(graph.num_features, hidden=hidden, layers=layers, norm="none")
    classifier = Classifier(encoder, 2, **(head or {}))
    inputs = WholeGraph(graph)
    task = ClassifierTask(inputs, classifier, supervise(labels, split, 60, "test"), **settings)
    task.inputs = inputs  # what its steps are handed here
    return task


# ------------------------------------------------------------------ the naive twin


def naive_loss(task, graph, *, propagate, l2):
    """Dense matrices and indexing, straight from the formula."""
    net = task.classifier
    s = propagation_tensor(graph.adjacency)
    h = encode_graph(net.encoder, graph)
    logits = (s @ h if propagate else h) @ net.weight + net.bias
    chosen = torch.log_softmax(logits, dim=1)[SPLIT.train.copy(), LABELS[SPLIT.train]]
    return -chosen.mean() + l2 / 2 * (net.encoder.first.weight**2).sum()


@pytest.mark.parametrize("propagate", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_loss_and_gradients_equal_the_dense_twin(toy_graph, propagate, l2):
    task = task_of(toy_graph, head={"propagate": propagate}, l2=l2)
    loss = task.losses(task.inputs, StepContext(0, 0, 0, 0.0))["loss"]
    twin = naive_loss(task, toy_graph, propagate=propagate, l2=l2)
    torch.testing.assert_close(loss, twin)
    parameters = list(task.classifier.parameters())
    assert_same_gradients(loss, twin, parameters, atol=1e-5, rtol=1.3e-6)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_validation_equals_the_dense_twin(toy_graph, l2):
    task = task_of(toy_graph, l2=l2)
    with torch.no_grad():
        logits = task.classifier.logits(task.inputs)[VAL]
        penalty = l2 / 2 * task.classifier.encoder.first.weight.square().sum().item()
    wanted = torch.from_numpy(LABELS[VAL])
    loss = torch.nn.functional.cross_entropy(logits, wanted).item() + penalty
    found = task.validate(task.inputs)
    assert found["val_loss"] == pytest.approx(loss, rel=1e-5)
    assert found["val_accuracy"] == 100 * (logits.argmax(1) == wanted).double().mean().item()


@pytest.mark.parametrize("sparse", [False, True])
def test_feature_dropout_drops_entries_scales_the_others_and_leaves_the_graph(sparse):
    x = np.random.default_rng(0).random((40, 30)).astype(np.float32) * (np.arange(30) < 3)  # density 0.1
    graph = Graph.from_edges([0, 1], [1, 2], features=sp.csr_array(x) if sparse else x, num_nodes=40)
    inputs = WholeGraph(graph)
    torch.manual_seed(0)
    dropped = inputs.with_dropout(0.5)
    seen = dropped.transform_features(torch.eye(30)).numpy()
    kept = seen != 0
    np.testing.assert_allclose(seen[kept], 2 * x[kept], rtol=1e-6)
    assert 0.3 < kept.sum() / np.count_nonzero(x) < 0.7
    np.testing.assert_array_equal(inputs.transform_features(torch.eye(30)).numpy(), x)
    np.testing.assert_array_equal(graph.features.toarray() if sparse else graph.features, x)


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_rows_change_nothing_but_the_work(toy_graph, norm):
    encoder = GCN(8, hidden=8, layers=2, norm=norm)
    for propagate in (False, True):
        net = Classifier(encoder, 2, propagate=propagate)
        rows = np.zeros(60, dtype=bool)
        rows[SPLIT.train] = True
        inputs = WholeGraph(toy_graph)
        torch.testing.assert_close(net.logits(inputs, rows), net.logits(inputs)[rows])


# ------------------------------------------------------------------ what it learns


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["paper", "official"])
def test_it_learns_the_communities(toy_graph, preset):
    small = {"encoder.hidden": 32, "epochs": 100, "lr": 0.01}
    model = SupervisedGCN(preset=preset, **small).fit(toy_graph, labels=LABELS, split=SPLIT)
    right = model.predict(toy_graph) == LABELS
    assert right[SPLIT.test].mean() > 0.85


# ------------------------------------------------------------------ what it may see


@pytest.mark.slow
def test_labels_of_test_nodes_change_no_weight_and_those_of_the_others_do(toy_graph):
    secret, training, validation = LABELS.copy(), LABELS.copy(), LABELS.copy()
    secret[SPLIT.test] = np.random.default_rng(0).integers(-1, 9, SPLIT.test.size)
    training[SPLIT.train[0]] = 1 - LABELS[SPLIT.train[0]]
    validation[SPLIT.val] = 1 - LABELS[SPLIT.val]
    base, blind, taught, judged = (fitted(toy_graph, y) for y in (LABELS, secret, training, validation))
    assert same(weights(base), weights(blind))
    assert not same(weights(base), weights(taught))
    losses = [[record["val_loss"] for record in model.history_] for model in (base, judged)]
    assert losses[0] != losses[1]


@pytest.mark.parametrize("names", [[3, 7], ["ape", "bee"]], ids=["with gaps", "text"])
def test_labels_are_named_as_they_were_also_when_saved_and_loaded(toy_graph, tmp_path, names):
    plain, named = fitted(toy_graph), fitted(toy_graph, np.array(names)[LABELS])
    assert same(weights(plain), weights(named))
    named.save(tmp_path)
    for model in (named, SupervisedGCN.load(tmp_path), load_method(tmp_path)):
        assert model.classes_.tolist() == names
        np.testing.assert_array_equal(model.predict(toy_graph), np.array(names)[plain.predict(toy_graph)])


def test_a_series_of_labels_goes_by_the_ids(toy_graph):
    names = np.array([f"n{i}" for i in range(toy_graph.num_nodes)])
    graph, known = dataclasses.replace(toy_graph, node_ids=names), pd.Series(LABELS, index=names)
    wanted = fitted(graph)
    assert same(weights(fitted(graph, known.sample(frac=1, random_state=0))), weights(wanted))
    with pytest.raises(GraphError, match="index of the labels"):
        fitted(graph, known.iloc[1:])


def test_no_labels_are_kept(toy_graph):
    assert set(vars(fitted(toy_graph))) == {
        "config", "seed", "device", "classes_", "encoder_", "in_dim_", "history_", "reduction_",
        "only_for_", "feature_names_", "encoding_", "edges_",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "split", "error", "what"),
    [
        (None, SPLIT, ConfigError, r"missing.*supervised.*labels=dataset\.labels, split="),
        (LABELS, None, ConfigError, "missing"),
        (LABELS, "20-30", ConfigError, "missing"),
        (LABELS[:50], SPLIT, EvaluationError, "50 labels for 60 nodes"),
        (LABELS + 0.5, SPLIT, EvaluationError, "float64"),
        (LABELS, dataclasses.replace(SPLIT, val=[]), EvaluationError, "no validation nodes"),
        (LABELS, dataclasses.replace(SPLIT, train=[]), EvaluationError, "no training nodes"),
        (LABELS, Split("x", 0, [0, 40], [60], []), EvaluationError, "node 60 does not exist"),
        (np.full(60, -1), SPLIT, EvaluationError, "has no label"),
        (np.zeros(60, dtype=int), SPLIT, EvaluationError, "one class"),
    ],
)
def test_what_does_not_fit_is_explained(toy_graph, labels, split, error, what):
    with pytest.raises(error, match=what) as caught:
        fitted(toy_graph, labels, split)
    assert caught.value.fix


# ------------------------------------------------------------------ stopping, saving


@pytest.mark.slow
def test_the_weights_with_the_lowest_validation_loss_are_kept(toy_graph):
    model = fitted(toy_graph, epochs=100, lr=0.05, patience=10)
    losses = [record["val_loss"] for record in model.history_]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + 10 < 100
    inputs = WholeGraph(toy_graph)
    with torch.no_grad():
        logits = model.encoder_.eval().logits(inputs)[VAL]
    found = torch.nn.functional.cross_entropy(logits, torch.from_numpy(LABELS[SPLIT.val])).item()
    assert found == pytest.approx(losses[best], rel=1e-5)
    assert found < losses[-1]


def test_resuming_with_other_labels_is_refused(toy_graph, tmp_path):
    def fit(split, **arguments):
        return SupervisedGCN(**SMALL).fit(
            toy_graph,
            labels=LABELS,
            split=split,
            out=tmp_path,
            logging=Logging(checkpoint_epochs=1),
            **arguments,
        )

    with interrupted_after(3):
        fit(SPLIT)
    with pytest.raises(CheckpointError, match=r"another graph: labels"):
        fit(per_class_split(LABELS, train=5, val=5, seed=1), resume=True)


def test_a_model_without_its_classes_is_refused_and_one_that_was_not_fitted(toy_graph, tmp_path):
    with pytest.raises(ConfigError, match="not been fitted"):
        SupervisedGCN().predict(toy_graph)
    fitted(toy_graph).save(tmp_path)
    tensors, facts = load_tensors(tmp_path / "model.safetensors")
    del facts["classes"]
    save_tensors(tmp_path / "model.safetensors", tensors, facts)
    with pytest.raises(CheckpointError, match="classes"):
        load_method(tmp_path)
