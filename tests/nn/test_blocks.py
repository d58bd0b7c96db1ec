"""Embedding in blocks of rows gives the bits of the whole pass, whatever the encoder and the block."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nodejepa.graph import Graph
from nodejepa.nn.encoders import make_encoder
from nodejepa.nn.inputs import WholeGraph

COLUMNS = {"narrow": 6, "wide": 80, "sparse": 200}


def inputs_of(layout, directed=False):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(501, COLUMNS[layout])).astype(np.float32)
    return WholeGraph(
        Graph.from_edges(
            *rng.integers(0, 490, (2, 3000)),
            features=sp.csr_array(x * (rng.random(x.shape) < 0.05)) if layout == "sparse" else x,
            num_nodes=501,
            direction="keep" if directed else "symmetrize",
        )
    )


def encoder(kind, inputs, **settings):
    torch.manual_seed(0)
    model = make_encoder(kind, inputs.num_features, **({"hidden": 32} | settings))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        model(inputs)  # moves the statistics of batch normalisation
    return model.eval()


@pytest.mark.parametrize("layout", COLUMNS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layers": 1},
        {"norm": "batch", "activation": "elu", "row_normalise": True, "out_dim": 16},
        {"norm": "none", "activation": "gelu", "activate_last": True, "dropout": 0.5},
        {"hidden": 36, "activation": "prelu"},  # a width that is not cut
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat", "mlp"])
def test_blocks_change_no_bit(kind, settings, layout):
    inputs = inputs_of(layout)
    model = encoder(kind, inputs, **settings)
    whole = model(inputs)
    for block_rows in (1, 65, 100, 167, 250, 500, 501, 1000):
        assert model.embed(inputs, block_rows=block_rows).equal(whole)
    for rows in (np.arange(501) % 3 == 1, np.arange(501) < 7, np.zeros(501, dtype=bool)):
        for block_rows in (70, 1000):
            found = model.embed(inputs, rows, block_rows=block_rows)
            assert found.equal(whole[torch.from_numpy(rows)])


@pytest.mark.parametrize("kind", ["gcn", "gat"])
def test_no_layer_but_the_first_is_computed_at_once(kind, monkeypatch):
    inputs = inputs_of("wide", directed=True)
    model, seen = encoder(kind, inputs), []
    original = type(model).later_layer

    def later_layer(self, layer, inputs, h, rows):
        seen.append((layer, rows.sum()))
        return original(self, layer, inputs, h, rows)

    monkeypatch.setattr(type(model), "later_layer", later_layer)
    model.embed(inputs, block_rows=200)
    assert seen == [(1, 200)] * 3 + [(2, 200)] * 3


def test_a_network_in_training_embeds_with_its_batch_statistics():
    inputs = inputs_of("wide")
    model = encoder("gcn", inputs, norm="batch").train()
    one = model.embed(inputs, block_rows=100)
    assert one.equal(model(inputs))
    assert not one.equal(model.eval()(inputs))
