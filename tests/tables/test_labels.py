"""Labels beside a stored graph: those of the reader in memory, the same scores, and never in the graph."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from nodejepa.data import Dataset
from nodejepa.data import splits as splits_module
from nodejepa.data.splits import default_splits
from nodejepa.errors import ConfigError, DataError, EvaluationError, GraphError
from nodejepa.evaluation import linear_probe
from nodejepa.evaluation.scoring import score_method, score_run
from nodejepa.files import json_digest
from nodejepa.methods import make_method
from nodejepa.tables import ReadingOptions, StoredGraph, read_embeddings, read_graph, table, text
from nodejepa.tables import store as store_module
from nodejepa.tables.embeddings import write_embeddings
from nodejepa.tables.prepare import prepare_store
from nodejepa.tables.store import stored_labels
from nodejepa.workflow import embed_graph
from nodejepa.workflow.read import UserGraph
from nodejepa.workflow.scores import score_embeddings

KINDS = {
    "words": lambda i: None if i % 7 == 0 else "bca"[i % 3],
    "numbers": lambda i: (10, 2, 33)[i % 3],
    "fractions": lambda i: None if i % 5 == 0 else i % 3 / 2,
    "truth": lambda i: i % 2 == 0,
}


def write(folder, kind, *, ending="parquet", nodes=120, named=None):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes + 4, (2, 5 * nodes))
    classes = np.arange(nodes) % 3
    table = {
        "id": np.arange(nodes),
        "y": [KINDS[kind](i) for i in range(nodes)],
        "a": rng.normal(size=nodes) + classes,
        "b": rng.normal(size=nodes) - classes,
    }
    edges = dict(zip(named or ("source", "target"), ends, strict=True))
    for name, content in (("e", edges), ("n", table)):
        path = folder / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.table(content), path, row_group_size=17)
        else:
            pacsv.write_csv(pa.table(content), path)
    return folder / f"e.{ending}", folder / f"n.{ending}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_labels_of_a_store_are_those_of_the_graph_in_memory(tmp_path, monkeypatch, kind, ending):
    monkeypatch.setattr(table, "_BATCH_CELLS", 64)
    monkeypatch.setattr(text, "_BLOCK", 300)
    files = write(tmp_path, kind, ending=ending)
    loaded = read_graph(*files, labels="y")
    store = prepare_store(*files, out=tmp_path / "g.store", labels="y")
    found = stored_labels(store)
    assert store.num_nodes > 120, "nodes that only edges name have no label"
    np.testing.assert_array_equal(found.codes, loaded.labels)
    assert found.names == loaded.class_names
    # the graph is the same with and without them
    bare = prepare_store(*files, out=tmp_path / "bare.store", drop="y")
    assert (bare.content_hash, stored_labels(bare)) == (store.content_hash, None)
    assert not [name for name in dir(store) if "label" in name]


def test_what_is_no_label_is_refused_as_in_memory(tmp_path):
    edges, nodes = write(tmp_path, "words")
    for wrong in ("a", "id"):
        with pytest.raises(GraphError) as in_memory:
            read_graph(edges, nodes, labels=wrong)
        with pytest.raises(GraphError) as on_disk:
            prepare_store(edges, nodes, out=tmp_path / "g.store", labels=wrong)
        assert str(on_disk.value) == str(in_memory.value)
    assert not (tmp_path / "g.store").exists()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A graph with labels in memory and on disk."""
    folder = tmp_path_factory.mktemp("labelled")
    files = write(folder, "words")
    return read_graph(*files, labels="y"), prepare_store(*files, out=folder / "g.store", labels="y")


@pytest.mark.slow
def test_scores_on_disk_are_those_in_memory(both):
    loaded, store = both
    made = make_method("sgc-1").fit(loaded.graph)
    in_memory = UserGraph.of_files(loaded, ReadingOptions())
    wanted = score_embeddings(made, in_memory, made.transform(loaded.graph))
    found = score_embeddings(made, UserGraph.of_store(store), made.transform(store))
    assert found.to_dict() == wanted.to_dict()
    np.testing.assert_array_equal(found.predicted, wanted.predicted)


def test_the_probe_of_a_store_and_of_a_run_on_it(both, tmp_path):
    loaded, store = both
    data = Dataset.of_store(store.folder)
    z = make_method("sgc").fit(loaded.graph).transform(loaded.graph)
    wanted = linear_probe(z, loaded.labels, default_splits(loaded.labels))
    scored = score_method(data, "sgc", [42, 43, 44, 45, 46])
    assert scored.result.to_dict() == wanted.to_dict()
    make_method("sgc").fit(store, out=tmp_path / "run")
    assert score_run(data, tmp_path / "run", [42, 43, 44, 45, 46]).result.to_dict() == wanted.to_dict()
    with pytest.raises(EvaluationError, match="learns from labels"):
        score_method(data, "supervised-gcn", [42])


@pytest.mark.slow
def test_of_a_large_graph_a_sample_is_scored(both, monkeypatch):
    loaded, store = both
    monkeypatch.setattr(splits_module.scored_nodes, "__defaults__", (60,))
    data = Dataset.of_store(store.folder)
    assert "60 labelled nodes" in data.sampled
    np.testing.assert_array_equal(data.labels, loaded.labels[data.nodes])
    assert (data.labels >= 0).all()
    assert score_method(data, "raw", [42]).to_dict()["sampled"] == data.sampled
    made, read = make_method("raw").fit(store), []

    class Rows:
        shape = made.transform(store).shape

        def __getitem__(self, nodes):
            read.append(nodes)
            return made.transform(store)[nodes]

    assert data.sampled in score_embeddings(made, UserGraph.of_store(store), Rows()).split
    np.testing.assert_array_equal(read, [data.nodes])  # only the rows that are scored


@pytest.mark.parametrize("named", [("source", "target"), ("user_id", "item_id")])
def test_tables_of_embeddings_have_sides_and_labels(tmp_path, monkeypatch, named):
    monkeypatch.setattr("nodejepa.workflow.read._ROWS", 50)
    files = write(tmp_path, "words", named=named)
    if named[0] == "user_id":
        table = pq.read_table(files[1]).rename_columns(["user_id", "y", "a", "b"])
        pq.write_table(table, files[1])
    options = {"labels": "y", "bipartite": named[0] == "user_id"}
    loaded = read_graph(*files, **options)
    store = prepare_store(*files, out=tmp_path / "g.store", **options)
    made = make_method("raw").fit(loaded.graph)
    names = [*loaded.class_names, None]  # -1 is the last of them
    more = {**loaded.sides, "label": [names[code] for code in loaded.labels.tolist()]}
    write_embeddings(tmp_path / "m.parquet", loaded.graph, made.transform(loaded.graph), more)
    UserGraph.of_store(store).write_embeddings(tmp_path / "z.parquet", made.transform(store))
    ours, theirs = (pq.read_table(tmp_path / name) for name in ("z.parquet", "m.parquet"))
    assert ours.to_pydict() == theirs.to_pydict()
    assert ours.schema.field("label").type == theirs.schema.field("label").type


@pytest.mark.slow
def test_embed_graph_of_a_store_is_embed_graph_of_its_files(run, tmp_path):
    files = write(tmp_path, "words")
    given, store = ["--edges", files[0], "--nodes", files[1]], tmp_path / "g.store"
    run.ok("prepare", *given, "--labels", "y", "--out", store)
    embed = ("embed-graph", "--edges", store)
    said, _ = run.ok(*embed, "--check")
    assert "3 classes" in said
    assert "for scoring" in said
    assert json.loads(run.ok(*embed, "--check", "--json")[0])["graph"]["nodes"] == 124
    assert "for scoring" not in run.ok(*embed, "--check", "--no-score")[0]
    assert "best untrained baseline" in run.ok(*embed, "--out", tmp_path / "z.parquet")[0]
    page = (tmp_path / "z.html").read_text()
    assert "What the embeddings are worth" in page
    assert "3 classes" in page
    run.ok("embed-graph", *given, "--labels", "y", "--out", tmp_path / "m.parquet", "--no-report")
    ours, theirs = (json.loads((tmp_path / name).read_text()) for name in ("z.json", "m.json"))
    del theirs["scores"]["means"]["linear-jepa, edges only"]  # a row of graphs in memory
    assert ours["scores"]["means"] == theirs["scores"]["means"]
    np.testing.assert_array_equal(
        *(read_embeddings(tmp_path / name).matrix for name in ("z.parquet", "m.parquet"))
    )
    assert "mean ± std" in run.ok("probe", store, "--run", tmp_path / "z.run", "--seeds", "42")[0]
    run.ok("embed", tmp_path / "z.run", store, "--out", tmp_path / "again.parquet")
    assert pq.read_table(tmp_path / "again.parquet").equals(pq.read_table(tmp_path / "z.parquet"))
    said = run.refused(*embed, "--labels", "y", "--out", tmp_path / "no.parquet")
    assert "was read with its own options" in said


def test_a_disk_too_small_for_the_baselines_does_not_cost_the_embeddings(both, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nodejepa.workflow.embed.score_embeddings", full)
    with pytest.warns(UserWarning, match="No scores: .*No space left"):
        made = embed_graph(both[1].folder, out=tmp_path / "z.parquet", method="raw", report=False)
    assert made.scores is None
    assert "No space left" in made.manifest["warnings"][-1]
    assert read_embeddings(tmp_path / "z.parquet").matrix.shape == made.embeddings.shape


def test_a_store_without_labels_says_how_to_have_some(tmp_path):
    store = prepare_store(*write(tmp_path, "words"), out=tmp_path / "g.store", drop="y")
    with pytest.raises(EvaluationError, match=r"no labels.*naming the column"):
        Dataset.of_store(store.folder)
    with pytest.raises(ConfigError, match="its own options"):
        embed_graph(store.folder, out=tmp_path / "z.parquet", labels="y")


def test_labels_that_were_changed_are_found(tmp_path):
    store = prepare_store(*write(tmp_path, "words"), out=tmp_path / "g.store", labels="y")
    path = store.folder / store_module.LABELS
    codes = np.fromfile(path, dtype=np.int32)
    codes[3] = 99
    codes.tofile(path)
    with pytest.raises(DataError, match="of no class"):
        stored_labels(store)
    with pytest.raises(DataError, match="checksum"):
        store.verify()
    path.unlink()
    with pytest.raises(DataError, match="damaged"):
        StoredGraph(store.folder)


def test_stores_of_the_version_before_are_read(tmp_path):
    store = prepare_store(*write(tmp_path, "words"), out=tmp_path / "g.store", drop="y")
    content = json.loads((store.folder / store_module.MANIFEST).read_text())
    for name in ("format", "version", "sha256", "classes", "feature_entries"):
        del content[name]
    old = {"format": store_module._FORMAT, "version": 1, "sha256": json_digest(content), **content}
    (store.folder / store_module.MANIFEST).write_text(json.dumps(old))
    assert StoredGraph(store.folder).manifest == store.manifest


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["a", "b", ""], "'' is taken for a class (10 nodes)"),
        (["a", "b", "NA"], "'NA' is taken for a class"),
        (["a", "b", "Unknown"], "'Unknown' is taken for a class"),
        ([0, 1, -1], "'-1' is taken for a class"),
        (["A", "a", "b"], "'A' and 'a' are taken for two classes"),
        (["1", "1.0", "2"], "'1' and '1.0' are taken for two classes"),
        ([" a", "a", "b"], "' a' and 'a' are taken for two classes"),
    ],
)
def test_classes_that_may_be_none_or_another_are_warned_of(values, said):
    """In a typed table an empty text is a value, and so is -1: nobody noticed that they were scored."""
    nodes = pa.table({"id": range(30), "x": np.arange(30.0), "y": values * 10})
    edges = pa.table({"source": range(30), "target": [*range(1, 30), 0]})
    loaded = read_graph(edges, nodes, labels="y")
    assert any(said in warning for warning in loaded.report.warnings)
    assert any(note.startswith("labels are column 'y': 3 classes, ") for note in loaded.notes)


def test_plain_classes_are_noted_without_a_warning():
    nodes = pa.table({"id": range(30), "x": np.arange(30.0), "y": [1000001.0, 1000002.0, None] * 10})
    loaded = read_graph(pa.table({"source": range(29), "target": range(1, 30)}), nodes, labels="y")
    assert not loaded.report.warnings
    note = "labels are column 'y': 2 classes, '1000001', '1000002'; 10 nodes have no label."
    assert note in loaded.notes


@pytest.mark.parametrize("copy", [lambda i: i % 3 * 10, lambda i: ("x", "y", "z")[i % 3], lambda i: i % 6])
def test_a_column_that_is_the_label_by_another_name_is_warned_of(copy):
    """Numbers of topics beside their names: every method scored 100 %."""
    edges = pa.table({"source": range(119), "target": range(1, 120)})
    nodes = {"id": range(120), "x": np.arange(120.0), "y": ["abc"[i % 3] for i in range(120)]}
    (warning,) = read_graph(
        edges, pa.table({**nodes, "code": [copy(i) for i in range(120)]}), labels="y"
    ).report.warnings
    assert "each value of column 'code' has one label" in warning
    other = pa.table({**nodes, "code": [copy(i // 2) for i in range(120)]})
    assert not read_graph(edges, other, labels="y").report.warnings


def test_flags_that_are_the_label_together_are_warned_of():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 90)
    nodes = {"id": range(90), "topic": label, "male": rng.integers(0, 2, 90), "k_x": rng.normal(size=90)}
    edges = pa.table({"source": range(89), "target": range(1, 90)})

    def warnings_of(flags):
        table = pa.table(nodes | {f"k_{i}": flags[:, i] for i in range(3)})
        return [
            said for said in read_graph(edges, table, labels="topic").report.warnings if "one label" in said
        ]

    (warning,) = warnings_of(np.eye(3, dtype=bool)[label])
    assert "columns 'k_0', 'k_1', 'k_2' together" in warning
    assert not warnings_of(np.eye(3, dtype=bool)[rng.permutation(label)])
