"""What the presets hold: the paper's tables and text, its baselines' authors, and docs/decisions.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from nodejepa.config import Settings, override, parse_assignments
from nodejepa.methods import METHODS, NodeJEPA, make_method
from nodejepa.methods.graphmae import GraphMAE, GraphMAETask
from nodejepa.methods.trained import TrainedEstimator
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import TrainingConfig, linear

SHARED = """
    encoder.kind=gcn encoder.layers=3 encoder.hidden=256 encoder.norm=layer encoder.activation=relu
    epochs=300 lr=1e-3 lr_end=1e-6 weight_decay=1e-4 clip=1
"""
BASELINE = "encoder.out_dim=none encoder.row_normalise=false"
JEPA = "sigreg=0.02 sigreg_slices=256 sigreg_nodes=4096 sigreg_times_n=false ema.start=0.996"
PAPER = {
    "nodejepa": JEPA
    + """
        ratio=0.5 masking.hops=2 ratio_start=0.2 hops_start=1 curriculum_epochs=50 isolation=true
        token_std=0 max_neighbours=none predictor.kind=message-passing predictor.hidden=256 predictor.layers=3
        predictor.heads=4 descriptors=pagerank,degree,clustering,spectral spectral_dim=8
        loss.prediction=cosine prediction_weight=1 variance=0.2 covariance=0.2 covariance_over=pairs
        laplacian=0 ema.end=0.999 keep=target start=random
    """,
    "patchjepa": JEPA
    + """
        contexts=1 targets=4 patches.hops=1 steps_per_epoch=1 patches.encode=graph sigreg_on=pooled-context
        predictor.hidden=256 predictor.layers=3 hyperbola=1 ema.end=0.996 keep=target
    """,
    "dgi": f"{BASELINE} encoder.dropout=0",
    "graphmae": f"{BASELINE} encoder.dropout=0 ratio=0.5 alpha=2",
    "bgrl": f"""{BASELINE} encoder.dropout=0 predictor.hidden=512 ema.start=0.996 ema.end=0.996
        view_1.edges=0.2 view_1.features=0.2 view_2.edges=0.2 view_2.features=0.2
    """,
    "cca-ssg": f"""{BASELINE} encoder.dropout=0
        view.edges=0.2 view.features=0.2 decorrelation=1e-3 subsample=8192
    """,
    "supervised-gcn": f"{BASELINE} encoder.dropout=0.5 head.dropout=0.5 patience=100",
}
BGRL = """
    encoder.layers=2 encoder.norm=batch encoder.activation=prelu encoder.row_normalise=true
    epochs=10000 warmup=0.1 weight_decay=1e-5 ema.start=0.99 ema.end=1
"""
CCA = "encoder.hidden=512 encoder.layers=2 encoder.row_normalise=false"
OFFICIAL = {  # by method and data set, as their authors' tables have them
    ("bgrl", "computers"): "view_1.edges=0.5 view_1.features=0.2 view_2.edges=0.4 view_2.features=0.1 "
    "lr=5e-4 encoder.hidden=256 encoder.out_dim=128",
    ("bgrl", "photo"): "view_1.edges=0.4 view_1.features=0.1 view_2.edges=0.1 view_2.features=0.2 "
    "lr=1e-4 encoder.hidden=256 encoder.out_dim=128",
    ("bgrl", "cs"): "view_1.edges=0.3 view_1.features=0.3 view_2.edges=0.2 view_2.features=0.4 "
    "lr=1e-5 encoder.hidden=512 encoder.out_dim=256",
    ("bgrl", "physics"): "view_1.edges=0.4 view_1.features=0.1 view_2.edges=0.1 view_2.features=0.4 "
    "lr=1e-5 encoder.hidden=256 encoder.out_dim=128",
    ("cca-ssg", "computers"): "features=0.1 edges=0.3 decorrelation=5e-4 epochs=50 kind=gcn",
    ("cca-ssg", "photo"): "features=0.2 edges=0.3 decorrelation=1e-3 epochs=50 kind=gcn",
    ("cca-ssg", "cs"): "features=0.2 edges=0.2 decorrelation=1e-3 epochs=50 kind=mlp",
    ("cca-ssg", "physics"): "features=0.5 edges=0.5 decorrelation=1e-3 epochs=100 kind=gcn",
}


def assert_has(config, text):
    assert override(config, parse_assignments(text.split())) == config


@pytest.mark.parametrize("name", PAPER)
def test_paper_presets_are_the_papers(name):
    for dataset, epochs in (("photo", 300), ("physics", 300), ("arxiv", 200)):
        config = METHODS[name].preset("paper", dataset)
        assert config == METHODS[name].preset("default", dataset)
        assert_has(config, f"{SHARED} {PAPER[name]} epochs={epochs}")


def test_patches_are_counted_by_data_set():
    graphs = ("computers", "photo", "cs", "physics", "arxiv")
    counts = [METHODS["patchjepa"].preset("paper", name).patches.count for name in graphs]
    assert counts == [64, 64, 64, 128, 256]


@pytest.mark.parametrize(("name", "dataset"), OFFICIAL)
def test_official_presets_are_the_authors(name, dataset):
    config = make_method(name, preset="official", dataset=dataset).config
    assert_has(config, f"{BGRL if name == 'bgrl' else CCA} {OFFICIAL[name, dataset]}")


def test_how_much_of_the_target_encoder_is_its_random_start():
    ema, steps = NodeJEPA().config.ema, 300
    momenta = [linear((step + 1) / steps, ema.start, ema.end) for step in range(steps)]
    assert round(math.prod(momenta), 2) == 0.47


def test_graphmae_has_a_bridge_and_one_layer_behind_it(toy_graph):
    decoder = GraphMAETask(WholeGraph(toy_graph), GraphMAE.preset("paper")).decoder
    assert decoder.bridge.weight.shape == (256, 256)
    assert decoder.bridge.bias is None
    assert decoder.weight.shape == (256 + 1, toy_graph.num_features)  # the last row is the bias


@dataclass(frozen=True)
class OwnConfig(Settings):
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=7))


class Own(TrainedEstimator):
    name = "own"
    config_class = OwnConfig


@pytest.mark.parametrize("dataset", [None, "photo", "arxiv"])
def test_a_method_that_is_not_the_papers_has_the_defaults_of_its_config(dataset):
    assert Own(dataset=dataset).config == OwnConfig()
