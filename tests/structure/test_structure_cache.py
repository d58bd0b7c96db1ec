import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nodejepa.graph import Graph
from nodejepa.structure.base import cache_file, cached

GRAPH = Graph.from_edges([0, 1], [1, 2])
VALUES = np.array([[0.5], [1.5], [-2.0]])


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NODEJEPA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Counted:
    """A computation that knows how often it ran."""

    def __init__(self):
        self.runs = 0

    def __call__(self) -> np.ndarray:
        self.runs += 1
        return VALUES.copy()


def fetch(compute: Callable[[], np.ndarray], key: str = "x", graph: Graph = GRAPH) -> np.ndarray:
    return cached(graph, key, compute, 1)


def test_is_computed_once_a_graph_and_key():
    compute = Counted()
    for _ in range(3):
        np.testing.assert_array_equal(fetch(compute), VALUES)
    assert compute.runs == 1
    fetch(compute, key="y")
    fetch(compute, graph=Graph.from_edges([0, 0], [1, 2]))
    assert compute.runs == 3


def test_features_do_not_matter():
    compute = Counted()
    fetch(compute)
    fetch(compute, graph=GRAPH.with_features(np.ones((3, 2))))
    assert compute.runs == 1


def test_the_file_is_a_plain_npy_array_and_nothing_else_is_left():
    fetch(Counted())
    path = cache_file(GRAPH, "x")
    np.testing.assert_array_equal(np.load(path, allow_pickle=False), VALUES)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "garbage": lambda path: path.write_bytes(os.urandom(500)),
    "pickle": lambda path: np.save(path, np.array([{}], dtype=object), allow_pickle=True),
    "npz": lambda path: path.write_bytes(b"PK\x03\x04" + b"0" * 100),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_computed_again_and_replaced(damage: Callable[[Path], object]):
    compute = Counted()
    fetch(compute)
    damage(cache_file(GRAPH, "x"))
    np.testing.assert_array_equal(fetch(compute), VALUES)
    assert compute.runs == 2
    fetch(compute)
    assert compute.runs == 2


@pytest.mark.parametrize("other", [np.zeros((2, 1)), np.zeros((3, 1), dtype=np.float32), np.zeros(3)])
def test_a_file_of_another_shape_or_type_is_replaced(other: np.ndarray):
    cached(GRAPH, "x", lambda: other, *other.shape[1:], dtype=other.dtype.type)
    np.testing.assert_array_equal(fetch(Counted()), VALUES)
    np.testing.assert_array_equal(np.load(cache_file(GRAPH, "x")), VALUES)


def test_a_cache_that_cannot_be_written_only_warns(cache_folder: Path):
    cache_folder.write_text("a file where the folder should be")
    compute = Counted()
    with pytest.warns(UserWarning, match="NODEJEPA_CACHE"):
        np.testing.assert_array_equal(fetch(compute), VALUES)
    assert compute.runs == 1


def test_a_folder_in_the_files_place_only_warns():
    cache_file(GRAPH, "x").mkdir(parents=True)
    with pytest.warns(UserWarning, match="could not be kept"):
        np.testing.assert_array_equal(fetch(Counted()), VALUES)
