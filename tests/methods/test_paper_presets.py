"""What the presets hold beside the paper's two tables: its text, and what docs/decisions.md chose."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from nodejepa.config import Settings
from nodejepa.methods.bgrl import BGRL
from nodejepa.methods.graphmae import GraphMAE, GraphMAETask
from nodejepa.methods.nodejepa import NodeJEPA
from nodejepa.methods.patchjepa import PatchJEPA
from nodejepa.methods.supervised import SupervisedGCN
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.inputs import WholeGraph
from nodejepa.structure import DESCRIPTORS
from nodejepa.training.task import TrainingConfig, linear

NODE, PATCH = NodeJEPA.preset("paper", "photo"), PatchJEPA.preset("paper", "photo")


@pytest.mark.parametrize("config", [NODE, PATCH], ids=["nodejepa", "patchjepa"])
def test_both_variants_share_encoder_and_sigreg(config):
    assert (config.encoder.kind, config.encoder.norm, config.encoder.activation) == ("gcn", "layer", "relu")
    loss = config.loss
    assert (loss.sigreg, loss.sigreg_slices, loss.sigreg_nodes) == (0.02, 256, 4096)
    assert not loss.sigreg_times_n


def test_nodejepa_predicts_by_message_passing_from_all_descriptors():
    predictor, loss = NODE.predictor, NODE.loss
    assert (predictor.kind, predictor.hidden, predictor.layers) == ("message-passing", 256, 3)
    assert predictor.descriptors == DESCRIPTORS == ("pagerank", "degree", "clustering", "spectral")
    assert (predictor.spectral_dim, predictor.heads) == (8, 4)
    assert (loss.prediction, loss.prediction_weight, loss.laplacian) == ("cosine", 1.0, 0.0)
    assert (NODE.masking.isolation, NODE.masking.token_std) == (True, 0.0)
    assert loss.covariance_over == "pairs"
    assert NODE.masking.max_neighbours is None


def test_how_much_of_the_target_encoder_is_its_random_start():
    steps = NODE.training.epochs
    momenta = [linear((step + 1) / steps, NODE.ema.start, NODE.ema.end) for step in range(steps)]
    assert (NODE.keep, round(math.prod(momenta), 2)) == ("target", 0.47)


def test_patchjepa_expands_by_one_hop_and_makes_one_step_an_epoch():
    assert (PATCH.patches.hops, PATCH.patches.steps_per_epoch) == (1, 1)
    assert (PATCH.patches.encode, PATCH.loss.sigreg_on) == ("graph", "nodes")
    assert (PATCH.predictor.hidden, PATCH.predictor.layers, PATCH.loss.hyperbola) == (256, 3, 1.0)


def test_the_supervised_gcn_stops_early():
    config = SupervisedGCN.preset("paper", "photo")
    assert (config.encoder.dropout, config.head.dropout) == (0.5, 0.5)
    assert (config.encoder.kind, config.encoder.layers, config.encoder.hidden) == ("gcn", 3, 256)
    assert config.training.patience == 100


def test_graphmae_has_a_bridge_and_one_layer_behind_it(toy_graph):
    config = GraphMAE.preset("paper")
    decoder = GraphMAETask(WholeGraph(toy_graph), config).decoder
    assert decoder.bridge.weight.shape == (256, 256)
    assert decoder.bridge.bias is None
    assert decoder.weight.shape == (256 + 1, toy_graph.num_features)  # the last row is the bias


def test_bgrl_predicts_through_512():
    assert BGRL.preset("paper").predictor.hidden == 512


@dataclass(frozen=True)
class OwnConfig(Settings):
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=7))


class Own(TrainedEstimator):
    name = "own"
    config_class = OwnConfig


@pytest.mark.parametrize("dataset", [None, "photo", "arxiv"])
def test_a_method_that_is_not_the_papers_has_the_defaults_of_its_config(dataset):
    assert Own(dataset=dataset).config == OwnConfig()
