"""NodeJEPA's search for neighbourhoods may be capped."""

from __future__ import annotations

import numpy as np
import pytest

from nodejepa.errors import ConfigError
from nodejepa.masking.khop import khop_mask
from nodejepa.methods.nodejepa import MaskingConfig, NodeJEPA, NodeJEPAConfig, NodeJEPATask
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import StepContext

TINY = {"encoder.hidden": 8, "encoder.layers": 1, "predictor.hidden": 8, "predictor.layers": 1}
CONTEXT = StepContext(seed=3, epoch=7, step=0, progress=0.5)


def targets(graph, masking: MaskingConfig, ratio: float, hops: int) -> np.ndarray:
    inputs = WholeGraph(graph)
    return NodeJEPATask(inputs, NodeJEPAConfig(masking=masking))._targets(inputs, ratio, hops, CONTEXT)


def test_by_default_every_edge_is_followed_anew(toy_graph):
    plain = khop_mask(toy_graph, 0.4, 2, CONTEXT.numpy("mask"))
    np.testing.assert_array_equal(targets(toy_graph, MaskingConfig(), 0.4, 2), plain)


def test_the_cap_is_that_of_the_settings(toy_graph):
    capped = khop_mask(toy_graph, 0.4, 2, CONTEXT.numpy("mask"), max_neighbours=2)
    np.testing.assert_array_equal(targets(toy_graph, MaskingConfig(max_neighbours=2), 0.4, 2), capped)
    assert np.any(capped != khop_mask(toy_graph, 0.4, 2, CONTEXT.numpy("mask")))


def test_the_cap_trains_and_changes_the_result(toy_graph):
    settings = {"masking.max_neighbours": 2}
    plain = NodeJEPA(preset="paper", **TINY, epochs=3).fit(toy_graph).transform(toy_graph)
    other = NodeJEPA(preset="paper", **TINY, **settings, epochs=3).fit(toy_graph).transform(toy_graph)
    assert np.isfinite(other).all()
    assert np.any(other != plain)


def test_less_than_one_is_refused():
    with pytest.raises(ConfigError, match=r"masking\.max_neighbours is 0"):
        MaskingConfig(max_neighbours=0)
