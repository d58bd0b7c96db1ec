"""NodeJEPA's ways to search: capped and cached, and the same bits after a resume."""

from __future__ import annotations

import numpy as np
import pytest

import reference.masking as reference
from nodejepa.errors import ConfigError
from nodejepa.masking.khop import khop_mask
from nodejepa.methods.nodejepa import MaskingConfig, NodeJEPA, NodeJEPAConfig, NodeJEPATask
from nodejepa.nn.inputs import WholeGraph
from nodejepa.training.task import StepContext, numpy_generator

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


@pytest.mark.slow
@pytest.mark.parametrize("hops", [1, 2])
def test_the_pool_is_found_once_for_a_run_and_its_hops(toy_graph, hops):
    once, generator = numpy_generator(CONTEXT.seed, "init", hops, 1), CONTEXT.numpy("mask")
    (twin,) = reference.pool_masks(toy_graph, [0.4], hops, 5, once, generator, None)
    np.testing.assert_array_equal(targets(toy_graph, MaskingConfig(pool=5), 0.4, hops), twin)


def test_a_new_task_finds_the_same_pool(toy_graph):
    """A resumed run makes its task anew, perhaps behind the epoch at which the hops change."""
    inputs = WholeGraph(toy_graph)
    tasks = [NodeJEPATask(inputs, NodeJEPAConfig(masking=MaskingConfig(pool=4))) for _ in range(2)]
    tasks[0]._targets(inputs, 0.2, 1, CONTEXT)
    late = [task._targets(inputs, 0.5, 2, CONTEXT) for task in tasks]
    np.testing.assert_array_equal(*late)
    assert np.any(late[0] != tasks[0]._targets(inputs, 0.5, 1, CONTEXT))


@pytest.mark.parametrize("settings", [{"masking.pool": 4}, {"masking.max_neighbours": 2}])
def test_both_train_and_change_the_result(toy_graph, settings):
    plain = NodeJEPA(preset="paper", **TINY, epochs=3).fit(toy_graph).transform(toy_graph)
    other = NodeJEPA(preset="paper", **TINY, **settings, epochs=3).fit(toy_graph).transform(toy_graph)
    assert np.isfinite(other).all()
    assert np.any(other != plain)


@pytest.mark.parametrize("name", ["max_neighbours", "pool"])
def test_less_than_one_is_refused(name):
    with pytest.raises(ConfigError, match=f"masking.{name} is 0"):
        MaskingConfig(**{name: 0})
