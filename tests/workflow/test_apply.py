"""A trained encoder on files it has never seen: the same features, or a clear word about why not."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workflow_files import TINY, TINY_RUN, people, write

from nodejepa import apply_run, embed_graph, read_embeddings, read_graph
from nodejepa.errors import CheckpointError, GraphError
from nodejepa.workflow.read import RunSchema


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with both files, the embeddings and the run."""
    folder = tmp_path_factory.mktemp("trained")
    edges, nodes = people()
    embed_graph(
        write(edges, folder / "edges.parquet"),
        write(nodes, folder / "nodes.parquet"),
        out=folder / "z.parquet",
        method="nodejepa",
        preset="paper",
        settings={"encoder.hidden": 8, "predictor.hidden": 8, "epochs": 2},
        labels="team",
        report=False,
    )
    return folder


@pytest.fixture
def embed(run, trained, tmp_path):
    """``nodejepa embed`` of a changed node table: exit code, ids and embeddings, what was said."""

    def call(nodes=None, edges=None, *more):
        edges = people()[0] if edges is None else edges
        command = ["embed", trained / "z.run", "--edges", write(edges, tmp_path / "e.csv")]
        if nodes is not None:
            command += ["--nodes", write(nodes, tmp_path / "n.parquet")]
        out = tmp_path / "z2.parquet"
        out.unlink(missing_ok=True)
        code, _, err = run(*command, "--out", out, *more)
        assert out.exists() == (code == 0)
        return code, pq.read_table(out) if code == 0 else None, " ".join(err.split())

    return call


def changed(name, values):
    nodes = people()[1]
    return nodes.set_column(nodes.column_names.index(name), name, pa.array(values))


@pytest.mark.slow
def test_the_graph_of_training_gives_the_embeddings_of_training(embed, trained):
    code, table, err = embed(people()[1])
    assert code == 0, err
    assert table.equals(pq.read_table(trained / "z.parquet").drop_columns(["label"]))


@pytest.mark.slow
def test_pandas_frames_are_taken_as_files_are(trained):
    edges, nodes = (table.to_pandas() for table in people())
    applied = apply_run(trained / "z.run", edges, nodes)
    np.testing.assert_array_equal(applied.embeddings, read_embeddings(trained / "z.parquet").matrix)


@pytest.mark.parametrize("factor", [1000, 0.001])
def test_a_column_in_another_unit_is_warned_of(embed, factor):
    """Embedded without a word, the numbers would be scaled as if they were years."""
    code, _, said = embed(changed("age", [factor * age for age in people()[1]["age"].to_pylist()]))
    assert code == 0
    assert said.count("values of column 'age' lie far from those that the features were fitted on") == 1
    assert "lie far" not in embed(people()[1])[2]


def test_a_script_hears_of_it(trained):
    nodes = changed("age", [1000 * age for age in people()[1]["age"].to_pylist()])
    with pytest.warns(UserWarning, match="values of column 'age' lie far") as caught:
        apply_run(trained / "z.run", people()[0], nodes)
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("age", lambda v: (v - v.mean()) / v.std()),
        ("flag", lambda v: 255.0 * v),
        ("flag", lambda v: 2 * v - 1),
    ],
)
def test_columns_that_were_scaled_before_are_warned_of(column, change):
    """Scaled twice, all people would be four standard deviations from the mean; a flag is 0 or 1."""
    edges = pa.table({"source": range(59), "target": range(1, 60)})
    values = {"age": 40 + 10 * np.sin(np.arange(60)), "flag": np.arange(60) % 2}
    fitted = read_graph(edges, pa.table({"id": range(60), **values}))
    again = pa.table({"id": range(60), **values, column: change(values[column])})
    (warning,) = read_graph(edges, again, schema=fitted.schema).report.warnings
    assert f"values of column '{column}' lie far" in warning
    assert not read_graph(edges, pa.table({"id": range(60), **values}), schema=fitted.schema).report.warnings


def vectors_and_more(seed=0, rows=300, middle=1.0):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, rows)
    vectors = rng.normal(size=(rows, 16)) + middle * np.random.default_rng(9).normal(size=16)
    return {"v": vectors, "day": days, "city": rng.choice(["Rome", "Oslo", "Lima"], rows)}


def as_table(columns):
    return pa.table({"id": range(len(columns["day"])), **columns, "v": pa.array(columns["v"].tolist())})


@pytest.mark.parametrize("scale", ["auto", "standardise"])
@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("v", lambda v: 1000 * v, "lie far"),
        ("v", lambda v: v / 1000, "lie far"),
        ("v", lambda v: v[:, ::-1], "lie far"),
        ("v", lambda v: -v, "lie far"),
        ("day", lambda v: v + np.timedelta64(36525), "lie far"),
        ("city", np.char.upper, "most values of column 'city' are none of those"),
    ],
    ids=["x1000", "/1000", "reversed", "negative", "a century later", "in capitals"],
)
def test_vectors_dates_and_categories_that_mean_something_else_are_warned_of(scale, column, change, said):
    edges = pa.table({"source": range(299), "target": range(1, 300)})
    values = vectors_and_more()
    fitted = read_graph(edges, as_table(values), scale=scale)
    again = read_graph(edges, as_table(values | {column: change(values[column])}), schema=fitted.schema)
    (warning,) = again.report.warnings
    assert said in warning
    assert f"column '{column}'" in warning


@pytest.mark.parametrize("scale", ["auto", "standardise"])
@pytest.mark.parametrize("middle", [0.0, 0.1, 1.0])
def test_new_nodes_of_the_same_kind_are_not_warned_of(scale, middle):
    edges = pa.table({"source": [0], "target": [1]})
    fitted = read_graph(edges, as_table(vectors_and_more(0, 2000, middle)), scale=scale)
    for seed, rows in ((1, 2000), (2, 300), (3, 31), (4, 5)):
        new = vectors_and_more(seed, rows, middle)
        new["day"] = np.sort(new["day"])[-1] - np.arange(rows) % 9  # the last days
        mixed = np.array(["Rome", None, "Bonn"], dtype=object)[np.arange(rows) % 3]
        for table in (as_table(new), as_table(new | {"city": mixed})):
            assert not read_graph(edges, table, schema=fitted.schema).report.warnings


def test_order_of_rows_and_columns_does_not_matter(embed, trained):
    order = np.random.default_rng(0).permutation(60)
    nodes = people()[1].take(order).select(["team", "active", "user", "city", "age"])
    code, table, err = embed(nodes, None, "--id", "user")
    assert code == 0, err
    before = pq.read_table(trained / "z.parquet").to_pylist()
    after = table.to_pylist()
    assert [row["id"] for row in after] == nodes["user"].to_pylist()
    for row, place in zip(after, order, strict=True):
        expected = before[place]
        assert [row[f"z{j}"] for j in range(8)] == pytest.approx(
            [expected[f"z{j}"] for j in range(8)], abs=1e-4
        )


def test_new_nodes_are_embedded_beside_the_old(embed):
    edges, nodes = people()
    newcomer = pa.table(
        {"user": ["new"], "age": [31.0], "city": ["Oslo"], "active": [True], "team": ["red"]}
    ).cast(nodes.schema)
    more = pa.table({"from": ["new"], "to": nodes["user"].to_pylist()[:1]})
    code, table, err = embed(pa.concat_tables([nodes, newcomer]), pa.concat_tables([edges, more]))
    assert code == 0, err
    assert table["id"].to_pylist() == [*nodes["user"].to_pylist(), "new"]
    assert np.isfinite(table["z0"].to_numpy()).all()


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (people()[1].drop_columns(["age"]), "lacks column 'age'"),
        (changed("city", list(range(60))), "numbers where text"),
        (None, "node table"),
    ],
    ids=["column missing", "numbers for text", "no table"],
)
def test_what_does_not_fit_is_refused_and_what_would_is_said(embed, nodes, said):
    code, _, err = embed(nodes)
    assert code == 2
    assert said in err
    assert "'age'" in err


@pytest.mark.filterwarnings("default:the encoder was trained on")
def test_weights_that_training_did_not_have_are_told(embed):
    edges = people()[0]
    weighted = edges.append_column("weight", pa.array(np.arange(edges.num_rows) + 1.0))
    code, _, err = embed(people()[1], weighted)
    assert code == 0
    assert "trained on undirected unweighted edges, these are undirected weighted" in " ".join(err.split())


@pytest.mark.slow
def test_a_named_graph_or_files_and_not_both(run, trained, tmp_path):
    out = tmp_path / "z.parquet"
    edges = trained / "edges.parquet"
    assert "either" in run.refused("embed", trained / "z.run", "--out", out)
    assert "not both" in run.refused("embed", trained / "z.run", "digits", "--edges", edges, "--out", out)
    err = run.refused("embed", trained / "z.run", "digits", "--nodes", edges, "--out", out)
    assert "belong to --edges" in " ".join(err.split())
    assert "feature columns" in run.refused("embed", trained / "z.run", "digits", "--out", out)
    assert "replace an input" in run.refused("embed", trained / "z.run", "--edges", edges, "--out", edges)


def test_embeddings_are_replaced_only_by_force_and_their_manifest_goes_with_them(run, trained, tmp_path):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    out = tmp_path / "z.parquet"
    (tmp_path / "z.html").write_text("the report")
    before = out.read_bytes()
    files = ("--edges", tmp_path / "edges.parquet", "--nodes", tmp_path / "nodes.parquet")
    for graph in (files, ("digits",)):
        assert "z.parquet exists" in run.refused("embed", tmp_path / "z.run", *graph, "--out", out)
        assert out.read_bytes() == before
    out.with_suffix(".json").rename(tmp_path / "elsewhere.json")
    assert "--force" in run.refused("embed", tmp_path / "z.run", *files, "--out", out)
    (tmp_path / "elsewhere.json").rename(out.with_suffix(".json"))
    run.ok("embed", tmp_path / "z.run", *files, "--out", out, "--force")
    assert not out.with_suffix(".json").exists()
    assert not out.with_suffix(".html").exists()


@pytest.mark.slow
def test_files_that_are_no_manifest_are_left_alone(run, trained, tmp_path):
    files = ("--edges", trained / "edges.parquet", "--nodes", trained / "nodes.parquet")
    for text in ("{", "[]", '{"format": "mine"}', (trained / "z.json").read_text()):  # of z.parquet
        (tmp_path / "z.json").write_text(text)
        run.ok("embed", trained / "z.run", *files, "--out", tmp_path / "z.npy", "--force")
        assert (tmp_path / "z.json").read_text() == text


def test_a_run_of_a_named_graph_has_no_schema(run, trained, tmp_path):
    shutil.copytree(trained / "z.run", tmp_path / "bare")
    (tmp_path / "bare" / "schema.json").unlink()
    edges = trained / "edges.parquet"
    err = run.refused("embed", tmp_path / "bare", "--edges", edges, "--out", tmp_path / "z.npy")
    assert "no schema.json" in err
    err = run.refused("embed", tmp_path / "nowhere", "--edges", edges, "--out", tmp_path / "z.npy")
    assert "no such run folder" in err


@pytest.mark.slow
def test_columns_asked_for_by_name_are_remembered(tmp_path):
    edges, nodes = people()
    edges = edges.rename_columns(["b", "a"]).select(["a", "b"])
    files = write(edges, tmp_path / "e.csv"), write(nodes, tmp_path / "n.csv")
    made = embed_graph(*files, out=tmp_path / "z.npy", source="b", target="a", directed=True, **TINY_RUN)
    again = apply_run(tmp_path / "z.run", *files)
    np.testing.assert_array_equal(again.embeddings, made.embeddings)
    assert again.loaded.graph.directed
    assert again.loaded.report.edge_columns["source"] == "b"


def test_every_flipped_digit_of_the_schema_is_found(trained, tmp_path):
    text = (trained / "z.run" / "schema.json").read_text()
    assert RunSchema.load(trained / "z.run").features.width == 5
    content = json.loads(text)
    places = [i for i, c in enumerate(text) if c.isdigit()]
    assert len(places) > 20
    for place in places[:: len(places) // 20]:
        damaged = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
        if json.loads(damaged) == content:
            continue
        (tmp_path / "schema.json").write_text(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            RunSchema.load(tmp_path)
    for damaged in (text[: len(text) // 2], "[]", "", "\x00" * 10, "[" * 100_000):
        (tmp_path / "schema.json").write_text(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            RunSchema.load(tmp_path)


def test_directed_edges_point_the_same_way_where_columns_are_in_another_order(tmp_path):
    edges = pa.table({"giver": [0, 0, 1, 2], "taker": [1, 2, 3, 3]})
    swapped = edges.select(["taker", "giver"])
    made = embed_graph(
        edges, out=tmp_path / "z.npy", directed=True, structural=("pagerank", "degree"), **TINY_RUN
    )
    again = apply_run(tmp_path / "z.run", swapped)
    assert again.loaded.report.edge_columns["source"] == "giver"
    np.testing.assert_array_equal(again.embeddings, made.embeddings)
    with pytest.raises(GraphError, match="no column 'giver'"):
        apply_run(tmp_path / "z.run", edges.rename_columns(["from", "to"]))
    named = apply_run(tmp_path / "z.run", edges.rename_columns(["from", "to"]), source="from", target="to")
    np.testing.assert_array_equal(named.embeddings, made.embeddings)


def test_directed_edges_with_usual_names_are_guessed_again(tmp_path):
    edges = pa.table({"from": [0, 0, 1, 2], "to": [1, 2, 3, 3]})
    made = embed_graph(
        edges, out=tmp_path / "z.npy", directed=True, structural=("pagerank", "degree"), **TINY_RUN
    )
    other = edges.rename_columns(["source", "target"]).select(["target", "source"])
    np.testing.assert_array_equal(apply_run(tmp_path / "z.run", other).embeddings, made.embeddings)


@pytest.mark.slow
def test_two_kinds_of_nodes_are_kept_apart_in_a_run_and_whatever_it_is_applied_to(run, tmp_path):
    edges = write(pa.table({"user_id": [0, 0, 1, 2], "item_id": [0, 1, 1, 2]}), tmp_path / "e.csv")
    command = ("embed-graph", "--edges", edges, "--out", tmp_path / "z.parquet", *TINY)
    assert "apart with --bipartite, or say --one-id-space if both" in run.refused(*command)
    run.ok(*command, "--bipartite")
    run.ok("embed", tmp_path / "z.run", "--edges", edges, "--out", tmp_path / "again.parquet")
    for name in ("z.parquet", "again.parquet"):
        table = pq.read_table(tmp_path / name)
        assert table.column_names[:4] == ["id", "side", "side_id", "z0"]
        assert table["side"].to_pylist() == ["user_id"] * 3 + ["item_id"] * 3
        assert table["side_id"].to_pylist() == [0, 1, 2, 0, 1, 2]
        assert read_embeddings(tmp_path / name).ids.tolist() == table["id"].to_pylist()
    run.ok(*command, "--one-id-space", "--force")
    assert pq.read_table(tmp_path / "z.parquet")["id"].to_pylist() == [0, 1, 2]


def test_a_run_from_before_two_kinds_were_told_apart_reads_as_it_did(tmp_path):
    edges = pa.table({"user_id": [0, 0, 1, 2], "item_id": [0, 1, 1, 2]})
    made = embed_graph(edges, out=tmp_path / "z.npy", bipartite=False, **TINY_RUN)
    path = tmp_path / "z.run" / "schema.json"
    content = json.loads(path.read_text())
    del content["bipartite"]
    body = {key: value for key, value in content.items() if key not in ("format", "version", "sha256")}
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    path.write_text(json.dumps(content | {"sha256": hashlib.sha256(text.encode()).hexdigest()}))
    np.testing.assert_array_equal(apply_run(tmp_path / "z.run", edges).embeddings, made.embeddings)
