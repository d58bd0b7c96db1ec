"""What is refused leaves nothing behind; what takes long is shown, counted truly, or not done at all."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager

import pytest
from workflow_files import people, write

from nodejepa import NodeJEPA, embed_graph
from nodejepa.errors import GraphError, NodeJEPAError
from nodejepa.graph import Graph
from nodejepa.methods import load_method
from nodejepa.structure import descriptors
from nodejepa.workflow import scores

TINY = {"encoder.hidden": 4, "predictor.hidden": 4, "epochs": 3}


@pytest.fixture
def edges(tmp_path):
    return write(people()[0], tmp_path / "edges.csv")


def watch_bars(monkeypatch, *modules):
    """The bars that some modules draw from now on, by what they say."""
    drawn = []

    @contextmanager
    def bar(description, *_, **__):
        drawn.append(description)
        yield lambda *_, **__: None

    for module in modules:
        monkeypatch.setattr(module, "progress_bar", bar)
    return drawn


def options(edges, **more):
    return {
        "edges": edges,
        "out": edges.parent / "z.npy",
        "method": "nodejepa",
        "preset": "paper",
        "settings": TINY,
        "report": False,
        "structural": "all",  # the adjacency's 128 columns beside them are too much for an encoder of 4
        **more,
    }


@pytest.mark.parametrize("method", ["nodejepa", "patchjepa", "dgi"])
def test_one_node_is_refused_the_same_way_again_and_again(run, tmp_path, method):
    (tmp_path / "e.csv").write_text("source,target\na,a\n")
    command = ("embed-graph", "--edges", tmp_path / "e.csv", "--out", tmp_path / "z.npy", "--method", method)
    command += ("--preset", "paper") if method == "nodejepa" else ()
    for _ in range(2):
        assert "the graph has one node" in run.refused(*command)
    assert not list(tmp_path.glob("z.run/*.json"))


def test_no_features_are_refused_before_anything_is_written(edges):
    with pytest.raises(GraphError, match="no features"):
        embed_graph(**options(edges, structural=False))
    assert not list(edges.parent.glob("z.run/*.json"))


def test_a_graph_that_cannot_be_used_does_not_cost_the_model_that_force_would_replace(edges):
    embed_graph(**options(edges))
    model = (edges.parent / "z.run" / "model.safetensors").read_bytes()
    edges.write_text("source,target\na,a\n")
    with pytest.raises(GraphError, match="one node"):
        embed_graph(**options(edges, force=True))
    assert (edges.parent / "z.run" / "model.safetensors").read_bytes() == model


def test_whatever_else_is_refused_before_the_first_epoch_is_no_run(edges, monkeypatch):
    def refuse(*_):
        raise GraphError("not this graph")

    with monkeypatch.context() as patched:
        patched.setattr(NodeJEPA, "make_task", refuse)
        with pytest.raises(GraphError, match="not this graph"):
            embed_graph(**options(edges))
    assert embed_graph(**options(edges)).manifest["epochs"] == 3  # it is not in the way


def test_seconds_of_training_are_those_of_all_its_processes(edges):
    embed_graph(**options(edges))
    (edges.parent / "z.json").unlink()  # killed before the manifest was written
    embed_graph(**options(edges, resume=True))
    history = load_method(edges.parent / "z.run").history_
    told = json.loads((edges.parent / "z.json").read_text())["seconds"]["training"]
    assert told == pytest.approx(sum(record["seconds"] for record in history), abs=1e-3)
    assert told > 0


@pytest.mark.slow
def test_the_report_has_a_bar_and_for_large_graphs_no_neighbour_map(edges, monkeypatch):
    drawn = watch_bars(monkeypatch, scores)
    embed_graph(**options(edges, report=True))
    assert "Writing the report" in drawn
    assert "t-SNE" in (edges.parent / "z.html").read_text()
    monkeypatch.setattr(scores, "MAX_NODES_FOR_NEIGHBOURS", 59)
    embed_graph(**options(edges, report=True, force=True))
    assert "t-SNE" not in (edges.parent / "z.html").read_text()


def test_a_check_describes_what_would_be_learned_from(run, edges):
    out, _ = run.ok("embed-graph", "--edges", edges, "--check", "--structural", "degree,spectral")
    assert "9 columns" in out
    assert "features are structural: degree and spectral" in out


def test_every_descriptor_is_computed_under_a_bar(monkeypatch):
    drawn = watch_bars(monkeypatch, sys.modules["nodejepa.structure.descriptors"])
    descriptors(Graph.from_edges([0, 1, 2], [1, 2, 3]), cache=False)
    assert drawn == ["PageRank", "Clustering coefficients"]  # the spectral one is in the eigensolver


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"out": None}, "None is no path"),
        ({"out": 5}, "5 is no path"),
        ({"out": "a\0.parquet"}, "is no path"),
        ({"out": "a" * 300 + ".parquet"}, "too long"),
        ({"settings": "hops=2"}, "settings are 'hops=2'"),
        ({"settings": ["hops"]}, "settings are"),
        ({"settings": {3: 1}}, "settings are"),
        ({"source": 0}, "source is 0"),
        ({"weight": True}, "weight is True"),
        ({"drop": 3}, "column names are text"),
        ({"structural": 3}, "no structural feature 3"),
        ({"memory_limit": "2"}, "memory limit is '2' GB"),
    ],
)
def test_what_is_of_another_type_is_refused_in_words(files, given, what):
    with pytest.raises(NodeJEPAError, match=what):
        embed_graph(files.edges, files.nodes, **{"out": files.folder / "z.parquet", **given})
