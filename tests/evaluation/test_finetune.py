"""Fine-tuning: the estimator stays, test labels choose nothing, every encoder can be tuned."""

import copy
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from nodejepa.config import flatten
from nodejepa.data import Split, per_class_split
from nodejepa.errors import ConfigError, EvaluationError, GraphError
from nodejepa.evaluation import FinetuneConfig, finetune
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, NodeJEPA, make_method
from nodejepa.methods.estimator import Estimator
from nodejepa.methods.supervised import Classifier
from nodejepa.training.task import TrainingConfig

pytestmark = pytest.mark.filterwarnings("ignore::nodejepa.training.logger.CollapseWarning")

LABELS = np.repeat([0, 1], 30)  # the communities of toy_graph
SPLIT = per_class_split(LABELS, train=5, val=5, seed=0)
SHORT = FinetuneConfig(training=TrainingConfig(epochs=4, lr=0.01, patience=3))
SMALL = {"encoder.hidden": 16, "predictor.hidden": 16, "training.epochs": 2, "encoder.out_dim": 16}


def fitted(name, graph, preset="default", **changes):
    known = flatten(make_method(name, preset=preset).config)
    settings = {key: value for key, value in (SMALL | changes).items() if key in known}
    method = make_method(name, preset=preset, settings=settings)
    if METHODS[name].supervised:
        return method.fit(graph, labels=LABELS, split=SPLIT)
    return method.fit(graph)


@pytest.fixture(scope="module")
def jepa(toy_graph):
    return NodeJEPA(preset="paper", epochs=3, **{"encoder.hidden": 16, "predictor.hidden": 16}).fit(toy_graph)


TRAINED = [name for name, entry in METHODS.items() if entry.trained and entry.by_gradient]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "preset"), [*((name, "paper") for name in TRAINED), ("bgrl", "official")])
def test_every_method_can_be_tuned_and_stays_as_it_was(toy_graph, name, preset):
    method = fitted(name, toy_graph, preset)
    before = {key: value.clone() for key, value in method.encoder_.state_dict().items()}
    frozen = [p.requires_grad for p in method.encoder_.parameters()]
    z = method.transform(toy_graph)
    result = finetune(method, toy_graph, LABELS, SPLIT, config=SHORT)
    assert 1 <= result.epochs <= 4
    assert 0 <= result.test_accuracy <= 100
    assert 1 <= result.scratch_epochs <= 4
    assert all(value.equal(before[key]) for key, value in method.encoder_.state_dict().items())
    assert [p.requires_grad for p in method.encoder_.parameters()] == frozen
    np.testing.assert_array_equal(method.transform(toy_graph), z)


@pytest.mark.slow
def test_it_learns_the_communities_and_says_what_scratch_gives(toy_graph, jepa):
    config = FinetuneConfig(training=TrainingConfig(epochs=60, lr=0.01, patience=30))
    result = finetune(jepa, toy_graph, LABELS, SPLIT, config=config, seed=3)
    assert result.test_accuracy > 85
    assert result.scratch_test_accuracy > 85
    written = json.loads(json.dumps(result.to_dict()))
    assert {"test_accuracy", "val_accuracy", "epochs"} <= written.keys()
    assert {"scratch_test_accuracy", "scratch_val_accuracy", "scratch_epochs"} <= written.keys()
    assert written["split_hash"] == SPLIT.hash


def test_the_encoder_itself_is_trained(toy_graph, jepa, monkeypatch):
    seen = []
    logits = Classifier.logits

    def spy(net, *arguments):
        seen.append((net, net.encoder.first.weight.detach().clone()))
        return logits(net, *arguments)

    monkeypatch.setattr(Classifier, "logits", spy)
    finetune(jepa, toy_graph, LABELS, SPLIT, config=SHORT)
    start = jepa.encoder_.first.weight
    assert seen[0][1].equal(start), "training begins with the pretrained weights"
    assert not seen[2][1].equal(start), "and moves them"


def test_scratch_begins_elsewhere(toy_graph, jepa):
    config = FinetuneConfig(training=TrainingConfig(epochs=0))
    both = [finetune(jepa, toy_graph, LABELS, SPLIT, config=config, seed=seed) for seed in (0, 0, 1)]
    assert both[0] == both[1]
    assert both[0] != both[2]


def test_labels_of_test_nodes_choose_nothing(toy_graph, jepa):
    secret = LABELS.copy()
    secret[SPLIT.test] = 1 - secret[SPLIT.test]
    one, other = (finetune(jepa, toy_graph, labels, SPLIT, config=SHORT) for labels in (LABELS, secret))
    assert (one.val_accuracy, one.epochs) == (other.val_accuracy, other.epochs)
    assert one.test_accuracy == pytest.approx(100 - other.test_accuracy)


def test_dropout_is_that_of_the_fine_tuning(toy_graph, jepa):
    still = FinetuneConfig(dropout=0.0, training=SHORT.training)
    one, other = (finetune(jepa, toy_graph, LABELS, SPLIT, config=c) for c in (SHORT, still))
    assert one.to_dict() != other.to_dict()
    assert jepa.encoder_.dropout == 0


def test_mistakes_are_explained(toy_graph, jepa):
    for method in (
        make_method("sgc").fit(toy_graph),
        make_method("linear-jepa").fit(toy_graph),
        NodeJEPA(preset="paper"),
    ):
        with pytest.raises(ConfigError, match="fitted method whose encoder is trained"):
            finetune(method, toy_graph, LABELS, SPLIT)
    with pytest.raises(EvaluationError, match="4 labels for 60 nodes"):
        finetune(jepa, toy_graph, LABELS[:4], SPLIT)
    with pytest.raises(GraphError, match="3 feature columns"):
        finetune(jepa, Graph.from_edges([0], [1], features=np.ones((60, 3)), num_nodes=60), LABELS, SPLIT)
    alone = copy.copy(jepa)
    alone.only_for_ = "the hash of another graph"
    with pytest.raises(GraphError, match="adjacency of another graph"):
        finetune(alone, toy_graph, LABELS, SPLIT)
    with pytest.raises(EvaluationError, match="no test nodes"):
        finetune(jepa, toy_graph, LABELS, Split("x", 0, [0, 1, 30], [2, 31], []))
    with pytest.raises(EvaluationError, match="node 60 does not exist"):
        finetune(jepa, toy_graph, LABELS, Split("x", 0, [0, 1, 30], [2, 31], [60]))
    with pytest.raises(ConfigError, match=r"dropout is 1\.0"):
        FinetuneConfig(dropout=1.0)
    with pytest.raises(ConfigError, match=r"training\.parts is 4.*sees the whole graph"):
        FinetuneConfig(training=TrainingConfig(parts=4))


def test_labels_of_a_series_follow_the_ids_of_the_graph(toy_graph, jepa):
    ids = [f"n{i}" for i in range(60)]
    named = replace(toy_graph, node_ids=np.array(ids))
    wanted = finetune(jepa, named, LABELS, SPLIT, config=SHORT).to_dict()
    known = pd.Series(LABELS, index=ids)
    assert finetune(jepa, named, known[::-1], SPLIT, config=SHORT).to_dict() == wanted
    with pytest.raises(GraphError, match="no row for node 'n3'"):
        finetune(jepa, named, known.rename({"n3": "m3"}), SPLIT, config=SHORT)


def test_the_global_generator_is_left_alone(toy_graph, jepa):
    before = torch.get_rng_state()
    finetune(jepa, toy_graph, LABELS, SPLIT, config=SHORT)
    assert torch.get_rng_state().equal(before)
    assert isinstance(jepa, Estimator)
