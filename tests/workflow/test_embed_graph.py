"""Files in, embeddings out: what is written, that it is true, and that every option does what it says."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workflow_files import NODES, QUICK, TINY, TINY_RUN, people, write

from nodejepa import GraphError, LinearJEPA, NodeJEPA, apply_run, embed_graph, load_dataset, load_graph
from nodejepa.methods import UNTRAINED, load_method
from nodejepa.tables import read_embeddings


def matrix(path):
    return read_embeddings(path).matrix


def manifest_of(files):
    return json.loads((files.folder / "z.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_from_files_to_embeddings_keyed_by_the_ids_in_their_order_and_scores(run, files):
    nodes = people()[1]
    team = [None if i % 3 == 0 else name for i, name in enumerate(nodes["team"].to_pylist())]
    write(nodes.set_column(nodes.column_names.index("team"), "team", pa.array(team)), files.nodes)
    out, err = run.ok(*files.quick("--labels", "team", "--report"))
    table = pq.read_table(files.folder / "z.parquet")
    assert table["id"].to_pylist() == people()[1]["user"].to_pylist()
    assert table.column_names == ["id", "label", *(f"z{j}" for j in range(8))]
    manifest = manifest_of(files)
    written = (files.folder / "z.parquet").read_bytes()
    assert manifest["embeddings"]["sha256"] == hashlib.sha256(written).hexdigest()
    model = (files.folder / "z.run" / "model.safetensors").read_bytes()
    assert manifest["run"]["model"]["sha256"] == hashlib.sha256(model).hexdigest()
    for name, path in (("edges", files.edges), ("nodes", files.nodes)):
        assert manifest["inputs"][name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert manifest["read"]["feature_columns"] == {"age": "numeric", "city": "category", "active": "boolean"}
    assert manifest["epochs"] == 3
    assert {"reading", "checking", "structure", "training", "embedding", "writing"} <= manifest[
        "seconds"
    ].keys()
    beside = {"linear-jepa, columns only", "linear-jepa, edges only"}
    assert {"nodejepa", *UNTRAINED} == manifest["scores"]["probe"].keys() - beside
    assert manifest["scores"]["probe"].keys() & beside
    assert manifest["scores"]["class_sizes"] == {"blue": 20, "red": 20}
    assert "guessed" in err
    assert "60 nodes x 8" in out
    check_scores(manifest["scores"], out, (files.folder / "z.html").read_text(encoding="utf-8"))
    other = files.folder / "other.parquet"  # labels give no other embeddings
    run.ok(*files.quick("--ignore", "team", "--out", str(other)))
    np.testing.assert_array_equal(matrix(other), matrix(files.folder / "z.parquet"))
    assert table["label"].to_pylist() == team  # they travel beside the vectors
    assert "label" not in pq.read_schema(other).names


def check_scores(found, out, page):
    """Terminal, manifest and page say the same; the page in the colour of the worst."""
    assert found["means"]["nodejepa"]["test_accuracy"] > 40
    for said in ("Which classes are confused", "Scores by class", "Map of the embeddings"):
        assert said in page
    assert "What the embeddings are worth" in out
    for title in ("balanced accuracy", "macro-F1", "ROC-AUC"):
        assert title in page
        assert title.split()[0] in out
    assert {"test_accuracy", "balanced_accuracy", "macro_f1", "roc_auc"} <= found["means"]["raw"].keys()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    first = data["chapters"][0]["sections"][0]
    ours = found["means"].pop("nodejepa")["test_accuracy"]
    beaten = ours > max(row["test_accuracy"] for row in found["means"].values())
    assert first["tone"] != ("warning" if beaten else "good")
    (command,) = [line for line in out.splitlines() if "nodejepa embed-graph" in line] or [""]
    assert ("--labels team" in command and "--method" in command) == (not beaten), "the next step"
    assert "The best untrained baseline" in first["paragraphs"][1]


@pytest.mark.slow
def test_the_same_in_python(files):
    """Five lines give the bits of the command; labels do not reach training."""
    settings = {"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 3}
    made = embed_graph(
        files.edges,
        files.nodes,
        out=files.folder / "z.parquet",
        method="nodejepa",
        preset="paper",
        settings=settings,
        labels="team",
        report=False,
        score=False,
    )
    graph = load_graph(files.edges, nodes=files.nodes, ignore=["team"])
    z = NodeJEPA(preset="paper", **settings).fit(graph).transform(graph)
    np.testing.assert_array_equal(made.embeddings, z)
    np.testing.assert_array_equal(matrix(files.folder / "z.parquet"), z)
    np.testing.assert_array_equal(load_method(files.folder / "z.run").transform(graph), z)


@pytest.mark.parametrize(
    "labels",
    [["red", *[None] * 59], ["red", "blue", *[None] * 58], ["red"] * 60],
    ids=["one", "one each", "one class"],
)
def test_too_few_labels_cost_the_scores_and_not_the_embeddings(run, files, labels):
    nodes = people()[1]
    nodes = nodes.set_column(nodes.column_names.index("team"), "team", pa.array(labels))
    write(nodes, files.nodes)
    _, err = run.ok(*files.quick("--labels", "team"))
    assert "too few" in err
    assert manifest_of(files)["scores"] is None
    assert any("too few" in said for said in manifest_of(files)["warnings"])
    assert matrix(files.folder / "z.parquet").shape == (NODES, 8)


def test_columns_by_name_weights_direction_and_npy(run, files):
    edges, nodes = people()
    edges = edges.append_column("strength", pa.array(np.arange(edges.num_rows) % 4 + 1.0))
    edges = edges.select(["strength", "to", "from"])
    write(edges, files.edges)
    write(nodes.select(["age", "team", "user", "city", "active"]), files.nodes)
    columns = ("--source", "from", "--target", "to", "--weight", "strength", "--id", "user", "--directed")
    out = files.folder / "z.npy"
    _, err = run.ok(*files.quick(*columns, "--ignore", "team", "--ignore", "age", "--out", str(out)))
    assert "guessed" not in err
    manifest = manifest_of(files)
    assert manifest["graph"]["directed"]
    assert manifest["graph"]["weighted"]
    assert manifest["read"]["edge_columns"] == {"source": "from", "target": "to", "weight": "strength"}
    assert list(manifest["read"]["feature_columns"]) == ["city", "active"]
    assert np.load(out).shape == (NODES, 8)


def test_without_a_node_table_structure_describes_the_nodes(run, files):
    out = files.folder / "z.parquet"
    _, err = run.ok("embed-graph", "--edges", files.edges, "--out", out, *QUICK)
    assert "features are structural" in err
    assert manifest_of(files)["features"]["structural"] == 139


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--method", "supervised-gcn"), "labels are kept away from training"),
        (("--method", "nodejpea"), "Did you mean nodejepa"),
        (("--set", "hiden=3"), "unknown"),
        (("--preset", "best"), "no preset"),
        (("--device", "tpu"), "device"),
        (("--labels", "tem"), "there is no column 'tem'"),
        (("--source", "sender"), "there is no column 'sender'"),
        (("--id", "nobody"), "there is no column 'nobody'"),
        (("--out", "z.xlsx"), "cannot be written"),
        (("--memory-limit", "-1"), "positive"),
        (("--resume", "--force"), "contradict"),
        (("--structural", "none", "--use", "both"), "--structural none and --use both contradict"),
        (("--structural", "none", "--use", "structure"), "--structural none and --use structure contradict"),
        (("--structural", "degree", "--use", "columns"), "--structural degree and --use columns contradict"),
    ],
)
def test_wrong_options_are_explained_before_anything_is_written(run, files, more, said, monkeypatch):
    monkeypatch.chdir(files.folder)
    code, out, err = run(*files.quick(*more))
    assert code == 2
    assert said in " ".join(err.split())
    assert out == ""
    assert not list(files.folder.glob("z.parquet*"))
    assert not list(files.folder.glob("z.json*"))


def test_where_to_write_must_be_said(run, files):
    err = run.refused("embed-graph", "--edges", files.edges)
    assert "--out" in err
    assert "--check" in err


def test_check_reports_and_writes_nothing(run, files):
    before = set(files.folder.rglob("*"))
    out, err = run.ok(*files.quick("--check"))
    assert err == ""
    for said in (
        "rows of edges",
        "nodes have none",
        "estimated time",
        "estimated memory",
        "guessed",
    ):
        assert said in out
    _code, out, _ = run(*files.quick("--check", "--json"))
    found = json.loads(out)
    assert found["graph"]["nodes"] == NODES
    assert found["plan"]["fits"]
    assert found["read"]["duplicate_rows"] > 0
    assert set(files.folder.rglob("*")) == before


def test_json_is_the_manifest(run, files):
    out, _ = run.ok(*files.quick("--json"))
    assert json.loads(out) == manifest_of(files)


@pytest.mark.slow
def test_what_is_there_is_kept_unless_told_otherwise(run, files):
    assert run(*files.quick())[0] == 0
    first = (files.folder / "z.parquet").read_bytes()
    err = run.refused(*files.quick("--seed", "5"))
    assert "--resume" in err
    assert "--force" in err
    assert (files.folder / "z.parquet").read_bytes() == first
    err = run.refused(*files.quick("--seed", "5", "--resume"))  # another run: not gone on with
    assert "seed" in err
    assert manifest_of(files)["seed"] == 0
    schema = (files.folder / "z.run" / "schema.json").read_bytes()
    for other in (("--directed",), ("--ignore", "age")):
        assert "another graph" in run.refused(*files.quick("--resume", *other))
        assert (files.folder / "z.run" / "schema.json").read_bytes() == schema
    assert run(*files.quick("--resume"))[0] == 0  # the same: nothing to train, the same bits again
    assert (files.folder / "z.parquet").read_bytes() == first
    assert run(*files.quick("--seed", "5", "--force"))[0] == 0
    assert (files.folder / "z.parquet").read_bytes() != first
    assert manifest_of(files)["seed"] == 5


def test_resume_does_not_replace_a_file_that_no_run_made(run, files):
    (files.folder / "z.parquet").write_bytes(b"precious")
    assert "no run to go on with" in run.refused(*files.quick("--resume"))
    assert (files.folder / "z.parquet").read_bytes() == b"precious"


def test_an_input_is_never_the_output(run, files):
    content = files.nodes.read_bytes()
    assert "replace an input" in run.refused(*files.quick("--out", str(files.nodes), "--force"))
    assert files.nodes.read_bytes() == content


def test_without_a_method_it_is_the_closed_form_and_says_what_it_found(run, files):
    out = files.folder / "z.parquet"
    said, _ = run.ok("embed-graph", "--edges", files.edges, "--nodes", files.nodes, "--out", out)
    manifest = manifest_of(files)
    assert (manifest["method"], manifest["epochs"]) == ("linear-jepa", 0)
    assert "directions of the features are clearly predicted by the neighbours" in manifest["found"]
    assert manifest["found"] in " ".join(said.split())
    page = (files.folder / "z.html").read_text()
    assert "What is predictable" in page
    assert load_method(files.folder / "z.run").spectrum()


@pytest.mark.slow
def test_a_report_over_own_embeddings_shows_their_maps(run, files):
    first, second = (str(files.folder / f"{name}.parquet") for name in ("first", "second"))
    given = ("embed-graph", "--edges", files.edges, "--nodes", files.nodes, "--no-report")
    for arguments in ((*given, "--out", first), files.quick("--out", second)):
        run.ok(*arguments)
    run.ok("report", first, second, "--out", str(files.folder / "both.html"))
    page = (files.folder / "both.html").read_text(encoding="utf-8")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert [chapter["title"] for chapter in data["chapters"]] == [
        "first: linear-jepa on edges.parquet",
        "second: nodejepa on edges.parquet",
    ]
    assert all("map" in [section["kind"] for section in c["sections"]] for c in data["chapters"])


def test_warnings_of_the_data_report_reach_a_script_and_the_command_line_once(run, files):
    """In Python they were only in the manifest: nobody saw that the features held the answer."""
    _, nodes = people()
    nodes = nodes.rename_columns(["class" if name == "team" else name for name in nodes.column_names])
    table = write(nodes, files.folder / "n.parquet")
    out, said = files.folder / "z.parquet", "looks like a target"
    with pytest.warns(UserWarning, match=said) as caught:
        made = embed_graph(files.edges, table, out=out, **TINY_RUN)
    assert [(said in str(one.message), one.filename) for one in caught] == [(True, __file__)]
    assert len([one for one in made.manifest["warnings"] if said in one]) == 1
    command = ("embed-graph", "--edges", files.edges, "--nodes", table, "--out", out, "--force", *TINY)
    assert run.ok(*command)[1].count(said) == 1
    few = nodes.set_column(4, "class", pa.array(["a", "b"] + [None] * (NODES - 2)))
    with pytest.warns(UserWarning, match="No scores"):
        embed_graph(files.edges, few, out=out, force=True, labels="class", **TINY_RUN)


def test_a_graph_of_python_goes_the_same_way(tmp_path):
    graph = load_dataset("digits").graph
    made = embed_graph(graph, out=tmp_path / "z.parquet", use="columns", report=False)
    np.testing.assert_array_equal(made.embeddings, LinearJEPA().fit_transform(graph))
    assert made.manifest["inputs"] == {}
    again = apply_run(tmp_path / "z.run", graph)
    np.testing.assert_array_equal(again.embeddings, made.embeddings)
    with pytest.raises(GraphError, match="matrix of 64 columns"):
        apply_run(tmp_path / "z.run", pa.table({"source": [0, 1], "target": [1, 2]}))
