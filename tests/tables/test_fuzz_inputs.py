"""Bad inputs by the hundred: each ends in a NodeJEPAError or in a sound graph, never in anything else.

Damage is that of :mod:`tests.attack.meanings`. Every case is drawn from its own seed, so a failure can be
repeated by its number.
"""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tests.attack import meanings

from nodejepa import FeatureSchema, NodeJEPAError, read_graph
from nodejepa.tables.prepare import prepare_store


def sound(loaded):
    """What a graph promises, whatever it was read from."""
    graph = loaded.graph
    matrix = graph.adjacency
    matrix.check_format(full_check=True)
    assert matrix.shape == (graph.num_nodes, graph.num_nodes)
    assert graph.num_nodes > 0
    assert np.isfinite(matrix.data).all()
    assert (matrix.data > 0).all()
    assert not matrix.diagonal().any()
    assert graph.directed or abs(matrix - matrix.T).max() == 0
    values = graph.features.data if sp.issparse(graph.features) else graph.features
    assert np.isfinite(values).all()
    assert graph.features.shape == (graph.num_nodes, loaded.schema.width)
    if graph.node_ids is not None:
        assert len(set(graph.node_ids.tolist())) == graph.num_nodes
    if loaded.labels is not None:
        assert loaded.labels.shape == (graph.num_nodes,)
        assert -1 <= loaded.labels.min() <= loaded.labels.max() < len(loaded.class_names)
    assert FeatureSchema.from_dict(loaded.schema.to_dict()) == loaded.schema
    assert all(isinstance(note, str) for note in loaded.notes)


def outcome(folder, edges, nodes, options):
    """Read it, and make a store of files: what is read is sound, what is refused says what is wrong."""
    read = 0
    try:
        sound(read_graph(edges, nodes, structural=False, **options))
        read = 1
        if isinstance(edges, Path) and isinstance(nodes, Path | None):
            prepare_store(edges, nodes, out=folder / "g.store", structural="degree", force=True, **options)
    except NodeJEPAError:
        pass
    return read


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tables", "bytes"])
def test_damaged_tables(tmp_path, kind):
    """One test for all seeds: hundreds of them would cost more to collect than to run."""
    read = []
    for seed in range(200):
        chance = random.Random(f"{kind} {seed}")
        folder = tmp_path / str(seed)  # the last one there is the one that failed
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas
            try:
                edges, nodes = meanings.CASES[kind](folder, chance)
            except (TypeError, ValueError, OverflowError, AttributeError, ArithmeticError):
                continue  # pandas refuses to do it
        options = {"text": chance.choice(["refuse", "hash", "ignore"]), "directed": chance.random() < 0.5}
        labels = {"labels": "label"} if nodes is not None and chance.random() < 0.3 else {}
        read.append(outcome(folder, edges, nodes, options | labels))
    assert 20 < sum(read) < len(read) - 20
