"""One suite over every method: what a user may rely on, whichever row of ``METHODS`` is chosen."""

import dataclasses
import importlib
import inspect
import json
import pkgutil
import typing
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from tests.interrupted import interrupted_after

import nodejepa.methods
from nodejepa.config import flatten
from nodejepa.data import Split, per_class_split
from nodejepa.errors import ConfigError, GraphError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.methods import METHODS, NodeJEPA, PatchJEPA, load_method, make_method
from nodejepa.methods.blocks import EncoderConfig
from nodejepa.methods.estimator import Estimator
from nodejepa.tables import graph_with_features
from nodejepa.training.logger import Logging
from reference.convert import to_pyg
from reference.matrices import dense

# two epochs on a toy graph may well look like a collapse
pytestmark = pytest.mark.filterwarnings("ignore::nodejepa.training.logger.CollapseWarning")

EVERY = pytest.mark.parametrize("name", METHODS)
TRAINED = pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if entry.trained])
UNTRAINED = pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if not entry.trained])
BY_GRADIENT = pytest.mark.parametrize(
    "name", [name for name, entry in METHODS.items() if entry.trained and entry.by_gradient]
)
SEEDED = pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if entry.seeded])
TINY = {
    "training.epochs": 2,
    "encoder.hidden": 16,
    "predictor.hidden": 16,
    "hidden": 16,
    "loss.sigreg_slices": 8,
    "patches.count": 4,
}
KINDS = typing.get_args(typing.get_type_hints(EncoderConfig)["kind"])


def tiny(name, seed=0, **changes):
    """A method with small settings, where it has such settings."""
    known = flatten(make_method(name).config)
    small = {key: value for key, value in TINY.items() if key in known}
    return make_method(name, seed=seed, settings=small | changes)


@cache
def graph_of(nodes=40, columns=12, *, sparse=False, seed=0):
    """A random graph with a few isolated nodes at its end."""
    rng = np.random.default_rng(seed)
    x = rng.random((nodes, columns)) * (rng.random((nodes, columns)) < 0.5)
    source, target = rng.integers(0, nodes - 3, (2, 3 * nodes))
    return Graph.from_edges(source, target, features=sp.csr_array(x) if sparse else x, num_nodes=nodes)


@cache
def fitted(name, seed=0):
    return fit(tiny(name, seed), graph_of())


def fit(method, graph, **arguments):
    """``method.fit(graph)``, with labels for a method that needs them."""
    if type(method) in {entry for entry in METHODS.values() if entry.supervised}:
        nodes = np.arange(getattr(graph, "num_nodes", 3))
        split = Split("toy", 0, train=nodes[nodes % 3 < 2], val=nodes[nodes % 3 == 2], test=[])
        arguments |= {"labels": nodes % 2, "split": split}
    return method.fit(graph, **arguments)


def permuted(graph, order):
    return Graph.from_scipy(graph.adjacency[order][:, order], graph.features[order])


# ------------------------------------------------------------------ the table


def test_every_estimator_is_in_the_table():
    found = {
        kind
        for module in pkgutil.iter_modules(nodejepa.methods.__path__, "nodejepa.methods.")
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if issubclass(kind, Estimator) and "name" in vars(kind)
    }
    assert found, "the walk must see at least NodeJEPA"
    missing = found - set(METHODS.values())
    assert not missing, f"add them to METHODS: {missing}"


@EVERY
def test_the_table_describes_the_method(name):
    entry = METHODS[name]
    assert entry.name == name == getattr(entry, "name", name)
    assert entry.summary
    assert entry.citation
    assert issubclass(entry, Estimator)
    for preset in entry.presets:
        for dataset in (None, "photo", "synthetic-arxiv"):
            config = make_method(name, preset=preset, dataset=dataset).config
            assert isinstance(config, entry.config_class)
    with pytest.raises(ConfigError, match="no preset 'best'"):
        make_method(name, preset="best")


# ------------------------------------------------------------------ construction and settings


@EVERY
def test_the_constructor_only_stores_and_takes_its_own_config_and_a_seed(name):
    kind, before = METHODS[name], torch.get_rng_state()
    config = make_method(name).config
    method = kind(config, seed=7, device="cpu")
    assert vars(method) == {"config": config, "seed": 7, "device": "cpu"}
    assert torch.get_rng_state().equal(before)
    assert type(kind(seed=np.int64(3)).seed) is int
    for seed in (-1, 1.5, "a", None):
        with pytest.raises(ConfigError, match=r"^seed is .*It must be"):
            kind(seed=seed)
    for other in ({"epochs": 3}, {}, "paper", EncoderConfig()):
        with pytest.raises(ConfigError, match=rf"config is of type .*{kind.config_class.__name__}"):
            kind(other)


@EVERY
def test_settings_are_frozen_and_unknown_ones_refused(name):
    config = make_method(name).config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.anything = 1
    with pytest.raises(ConfigError, match="unknown"):
        make_method(name, settings={"no_such_setting": 1})
    for setting in flatten(config):
        with pytest.raises(ConfigError, match="unknown"):
            make_method(name, settings={f"{setting}_": 1})


@BY_GRADIENT
def test_keyword_settings_are_checked_and_data_set_names_may_be_in_capitals(name):
    kind = METHODS[name]
    assert kind(epochs=3).config.training.epochs == 3
    with pytest.raises(ConfigError, match="unknown"):
        kind(epoches=3)
    with pytest.raises(ConfigError, match=r"training\.epochs"):
        kind(epochs=-1)
    for known in ("photo", "arxiv"):
        config = kind.preset("paper", known)
        assert kind(preset="paper", dataset=known.title()).config == config
        assert make_method(name, preset="paper", dataset=known.upper()).config == config
    with pytest.raises(ConfigError, match="dataset is a int"):
        kind(dataset=3)


def test_patches_of_a_data_set_in_capitals():
    assert PatchJEPA(preset="paper", dataset="Photo").config != PatchJEPA(preset="paper").config


@pytest.mark.parametrize("name", [None, 3, [], "sgx"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ConfigError, match=r"is unknown.*Known methods"):
        make_method(name)


# ------------------------------------------------------------------ fit and transform


@EVERY
@pytest.mark.parametrize("sparse", [False, True])
def test_fit_returns_itself_and_transform_a_row_a_node_and_the_graph_is_not_changed(name, sparse):
    graph = graph_of(sparse=sparse)
    before = dense(graph.features).copy(), graph.adjacency.toarray()
    method = tiny(name)
    assert fit(method, graph) is method
    z = method.transform(graph)
    np.testing.assert_array_equal(dense(graph.features), before[0])
    np.testing.assert_array_equal(graph.adjacency.toarray(), before[1])
    assert z.dtype == np.float32
    assert z.shape[0] == graph.num_nodes
    assert z.ndim == 2
    assert np.isfinite(dense(z)).all()
    assert dense(z).std() > 0


@EVERY
def test_same_seed_same_bits_also_of_pyg_data_whose_labels_are_not_read(name):
    data = to_pyg(graph_of())
    data.y = torch.arange(graph_of().num_nodes)
    data.train_mask = torch.ones(graph_of().num_nodes, dtype=torch.bool)
    x = data.x.clone()
    torch.manual_seed(123)  # global generators must not matter, and must not be moved
    before = torch.get_rng_state()
    again = fit(tiny(name), data)
    assert torch.get_rng_state().equal(before)
    for graph in (data, graph_of()):
        np.testing.assert_array_equal(
            dense(again.transform(graph)), dense(fitted(name).transform(graph_of()))
        )
    assert data.x.equal(x)


@SEEDED
def test_another_seed_gives_other_embeddings(name):
    z, other = (fitted(name, seed).transform(graph_of()) for seed in (0, 1))
    assert not np.allclose(z, other)


def test_a_graph_has_no_place_for_labels():
    fields = {field.name for field in dataclasses.fields(Graph)}
    assert fields == {
        "adjacency", "features", "node_ids", "directed", "incomparable", "structural",
        "columns", "encoding",
    }  # fmt: skip


@UNTRAINED
def test_permuting_the_nodes_permutes_the_embeddings(name):
    order = np.random.default_rng(5).permutation(graph_of().num_nodes)
    shuffled = permuted(graph_of(), order)
    z = dense(fit(tiny(name), shuffled).transform(shuffled))
    np.testing.assert_allclose(z, dense(fitted(name).transform(graph_of()))[order], atol=1e-5)


@TRAINED
def test_a_trained_encoder_does_not_care_for_the_order_of_nodes(name):
    order = np.random.default_rng(5).permutation(graph_of().num_nodes)
    z = fitted(name).transform(permuted(graph_of(), order))
    np.testing.assert_allclose(z, fitted(name).transform(graph_of())[order], atol=1e-5)


@EVERY
def test_a_new_graph_can_be_transformed(name):
    new = graph_of(nodes=23, seed=9)
    z = fitted(name).transform(new)
    assert z.shape == (23, fitted(name).transform(graph_of()).shape[1])
    assert np.isfinite(dense(z)).all()


@EVERY
def test_mistakes_are_explained(name):
    with pytest.raises(ConfigError, match="not been fitted"):
        tiny(name).transform(graph_of())
    with pytest.raises(GraphError, match=r"7 feature columns.*expects 12"):
        fitted(name).transform(graph_of(columns=7))
    with pytest.raises(GraphError, match="not a graph"):
        fit(tiny(name), "photo")


def bare_of(seed=0):
    return graph_of(seed=seed).with_features(np.zeros((40, 0)))


@EVERY
def test_without_features_a_model_serves_its_own_graph_alone(name, tmp_path):
    bare, other = bare_of(), bare_of(seed=1)
    described, elsewhere = graph_with_features(bare), graph_with_features(other)
    assert described.num_features == 139  # 11 descriptors and 128 coordinates of the adjacency
    ours = fit(tiny(name), bare)
    np.testing.assert_array_equal(
        dense(ours.transform(bare)), dense(fit(tiny(name), described).transform(described))
    )
    ours.save(tmp_path)
    for model in (ours, load_method(tmp_path)):
        for another in (other, elsewhere):
            with pytest.raises(GraphError, match=r"adjacency of another graph.*descriptors"):
                model.transform(another)


@EVERY
def test_descriptors_carry_a_model_to_other_graphs(name):
    bare, other = bare_of(), bare_of(seed=1)
    model = fit(tiny(name), bare.with_features(nodejepa.descriptors(bare)))
    described = other.with_features(nodejepa.descriptors(other))
    np.testing.assert_array_equal(dense(model.transform(other)), dense(model.transform(described)))


# ------------------------------------------------------------------ trained methods


def test_a_model_of_other_edges_says_so(tmp_path):
    graph = graph_of()
    model = fitted("linear-jepa")
    model.save(tmp_path)
    adjacency = sp.triu(graph.adjacency).tocsr()
    directed = Graph.from_scipy(adjacency, features=graph.features, direction="keep")
    weighted = Graph.from_scipy(graph.adjacency * 2, features=graph.features)
    for other, kind in ((directed, "directed unweighted"), (weighted, "undirected weighted")):
        for estimator in (model, load_method(tmp_path)):
            with pytest.warns(UserWarning, match=f"undirected unweighted edges, these are {kind}"):
                estimator.transform(other)
    model.transform(graph)  # warnings are errors


@TRAINED
def test_what_needs_a_run_folder_says_so(name):
    with pytest.raises(ConfigError, match=r"needs a run folder.*out="):
        fit(tiny(name), graph_of(), resume=True)


@pytest.mark.parametrize("folder", [None, "", 3])
def test_what_is_no_folder_is_refused(folder):
    for call in (NodeJEPA.load, load_method, fitted("nodejepa").save):
        with pytest.raises(ConfigError, match="is no folder"):
            call(folder)
    with pytest.raises(ConfigError, match="is no folder"):
        tiny("nodejepa").fit(graph_of(), out=folder or "")


@EVERY
@pytest.mark.parametrize("keep", [None, 3])
def test_saved_and_loaded_it_gives_the_same_bits(name, keep, tmp_path):
    method = fitted(name)
    if keep is not None:
        method = tiny(name)
        method.max_columns = keep
        fit(method, graph_of())
    method.save(tmp_path)
    wanted = dense(method.transform(graph_of()))
    for loaded in (METHODS[name].load(tmp_path), load_method(tmp_path)):
        assert type(loaded) is METHODS[name]
        assert loaded.config == method.config
        assert loaded.seed == method.seed
        assert loaded.max_columns == keep
        np.testing.assert_array_equal(dense(loaded.transform(graph_of())), wanted)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["raw", "linear-jepa", "dgi"])  # no weights, solved, trained
def test_of_wide_embeddings_the_leading_principal_components_are_kept(name, sparse):
    """Beside a dense singular value decomposition."""
    graph, new = graph_of(sparse=sparse), graph_of(nodes=23, seed=9)
    whole, kept = fit(tiny(name), graph), tiny(name)
    kept.max_columns = 4
    fit(kept, graph)
    z = dense(whole.transform(graph)).astype(np.float64)
    axes = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)[2][:4].T
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), range(4)])
    for seen in (graph, new):
        wanted = (dense(whole.transform(seen)) - z.mean(axis=0)) @ axes
        found = kept.transform(seen)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
    wide = tiny(name)
    wide.max_columns = 1000  # more than there are: nothing is turned
    np.testing.assert_array_equal(dense(fit(wide, graph).transform(graph)), dense(whole.transform(graph)))


def test_saving_where_nothing_can_be_written_is_explained(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NodeJEPAError, match="Check the path"):
        fitted("nodejepa").save(tmp_path / "file" / "model")


@BY_GRADIENT
def test_training_moves_the_encoder_and_the_history_tells_every_epoch(name):
    history = fitted(name).history_
    assert [record["epoch"] for record in history] == [1, 2]
    assert all(np.isfinite(record["loss"]) for record in history)
    untrained = fit(tiny(name, **{"training.epochs": 0}), graph_of())
    assert not np.allclose(untrained.transform(graph_of()), fitted(name).transform(graph_of()))


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, "gat") for name in BY_GRADIENT.args[1]] + [("nodejepa", kind) for kind in KINDS if kind != "gat"],
)
def test_every_encoder_can_be_chosen(name, kind, tmp_path):
    """Each method sees the one that is least like the usual one, and one method each of them."""
    method = fit(tiny(name, **{"encoder.kind": kind}), graph_of(sparse=True))
    z = method.transform(graph_of(sparse=True))
    assert np.isfinite(z).all()
    method.save(tmp_path)
    np.testing.assert_array_equal(load_method(tmp_path).transform(graph_of(sparse=True)), z)


# ---------------------------------------------------------------- runs that are broken off


LABELS = np.repeat([0, 1], 30)  # the communities of toy_graph
BATCH = {"encoder.out_dim": 8, "predictor.hidden": 8}
RUNS = {
    "nodejepa": ("nodejepa", "paper", {"predictor.hidden": 8}),
    "from the closed form": ("nodejepa", "linear-start", {"predictor.hidden": 8, "lr": 0.01}),
    "patchjepa": ("patchjepa", "paper", {"predictor.hidden": 8, "patches.count": 6}),
    "batch normalisation": ("bgrl", "official", BATCH),
    "supervised": ("supervised-gcn", "paper", {"head.feature_dropout": 0.3, "lr": 0.05}),
    "supervised, batch": ("supervised-gcn", "paper", {"norm": "batch", "lr": 0.05}),
}


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_it_ends_in_the_same_bits(toy_graph, tmp_path, run):
    name, preset, settings = RUNS[run]
    labels = {"labels": LABELS, "split": per_class_split(LABELS, train=5, val=5, seed=0)}
    given = {"logging": Logging(checkpoint_epochs=1)} | (labels if name == "supervised-gcn" else {})

    def fit(**options):
        small = {"encoder.hidden": 8, "epochs": 5} | settings
        return make_method(name, preset=preset, seed=3, settings=small).fit(toy_graph, **given, **options)

    whole = fit()
    with interrupted_after(1):
        fit(out=tmp_path)
    with interrupted_after(4):
        fit(out=tmp_path, resume=True)
    assert not (tmp_path / "model.safetensors").exists()
    again = fit(out=tmp_path, resume=True)
    for model in (again, load_method(tmp_path)):
        np.testing.assert_array_equal(model.transform(toy_graph), whole.transform(toy_graph))
    told = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in told] == [1, 2, 3, 4, 5]
    for figure in {"loss", "val_loss"} & whole.history_[0].keys():
        assert [r[figure] for r in again.history_] == [r[figure] for r in whole.history_]
