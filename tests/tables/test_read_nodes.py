"""Node tables -> features: every kind of column, what is missing, and the same encoding once more."""

from __future__ import annotations

import datetime
import decimal
import json
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nodejepa import (
    ConfigError,
    DataError,
    FeatureSchema,
    Graph,
    GraphError,
    descriptors,
    load_graph,
    read_graph,
)
from nodejepa.tables import options as reading_options
from nodejepa.tables.cells import interpret
from nodejepa.tables.columns import FeatureColumn, encode_column
from nodejepa.tables.prepare import prepare_store

IDS = list("abcdef")
EDGES = pa.table({"u": IDS, "v": IDS[1:] + IDS[:1]})


def table(**columns):
    return pa.table({"id": IDS, **columns})


def features(nodes, **options):
    matrix = load_graph(EDGES, nodes, **options).features
    return matrix.toarray() if sp.issparse(matrix) else matrix


def csv(tmp_path, text, name="n.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def standard(values):
    return (values - np.mean(values)) / np.std(values)


# ---------------------------------------------------------------- kinds


def test_numbers_are_standardised_and_empty_cells_are_the_mean(tmp_path):
    expected = standard(np.array([1.0, 2, 3, 4, 5, 9]))
    np.testing.assert_allclose(features(table(x=[1, 2, 3, 4, 5, 9]))[:, 0], expected, rtol=1e-6)
    decimals = [decimal.Decimal(v) for v in (1, 2, 3, 4, 5, 9)]
    np.testing.assert_allclose(features(table(x=decimals))[:, 0], expected, rtol=1e-6)
    text = "id,x\n" + "".join(
        f"{i},{v}\n" for i, v in zip(IDS, ("+1", "2.0", " 3", "4e0", "5.", "9"), strict=True)
    )
    np.testing.assert_allclose(features(csv(tmp_path, text))[:, 0], expected, rtol=1e-6)
    for gap in (None, float("nan")):
        loaded = read_graph(EDGES, table(x=pa.array([1.0, gap, 3.0, 4.0, 5.0, 9.0])))
        known = standard(np.array([1.0, 3, 4, 5, 9]))
        np.testing.assert_allclose(loaded.graph.features[:, 0], np.insert(known, 1, 0), rtol=1e-6)
        np.testing.assert_array_equal(loaded.graph.features[:, 1], [0, 1, 0, 0, 0, 0])
        assert loaded.report.missing_values == {"x": 1}
        assert "missing values, which a column marks, count as the mean: 'x' (1)." in loaded.notes


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), st.floats(-1e38, 1e38)), min_size=6, max_size=6))
def test_any_numbers_give_finite_features(values):
    result = features(table(x=pa.array(values, pa.float64())), structural=False)
    assert np.isfinite(result).all()
    present = np.array([v for v in values if v is not None])
    if present.size and present.std() > 1e-6 * np.abs(present).max():
        kept = result[[v is not None for v in values], 0]
        np.testing.assert_allclose(kept.mean(), 0, atol=1e-3)
        np.testing.assert_allclose(kept.std(), 1, rtol=1e-3)


def test_categories_and_truth_values(tmp_path):
    typed = table(
        colour=["red", "blue", None, "red", "red", "blue"], ok=[True, False, True, None, True, True]
    )
    text = "id,colour,ok\na,red,TRUE\nb,blue,false\nc,,true\nd,red,\ne,red,true\nf,blue,True\n"
    expected = [
        [0, 1, 0, 1, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 1, 0, 0, 1],
        [0, 1, 0, 1, 0],
        [1, 0, 0, 1, 0],
    ]
    for nodes in (typed, csv(tmp_path, text)):
        np.testing.assert_array_equal(features(nodes), expected)
    coded = typed.set_column(1, "colour", typed["colour"].dictionary_encode())
    np.testing.assert_array_equal(features(coded), expected)


def test_lists_become_columns():
    rows = [[1.0, 0], [2, 0], [3, 0], None, [5, 0], [6, 0]]
    expected = standard(np.array([1.0, 2, 3, 5, 6]))
    for kind in (pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.large_list(pa.float64())):
        result = features(table(z=pa.array(rows, kind)))
        np.testing.assert_array_equal(result[:, 0], np.array([1, 2, 3, 3.4, 5, 6], dtype=np.float32))
        scaled = features(table(z=pa.array(rows, kind)), scale="standardise")
        np.testing.assert_allclose(np.delete(scaled[:, 0], 3), expected, rtol=1e-6)
        np.testing.assert_array_equal(result[:, 1], 0)
        np.testing.assert_array_equal(result[:, 2], [0, 0, 0, 1, 0, 0])
    with pytest.raises(GraphError, match="row 2 is a list of 1 numbers"):
        features(table(z=pa.array([[1, 2], [1], [1, 2], [1, 2], [1, 2], [3, 4]])))
    with pytest.raises(GraphError, match="lists of date32"):
        features(table(z=[[datetime.date(2024, 1, 1)]] * 6))


TAGS = [["a", "b"], ["b"], ["c", "a"], ["a", "b", "c"], [], ["c"]]


@pytest.mark.parametrize(
    "cells",
    [
        TAGS,
        ["|".join(tags) for tags in TAGS],
        ["; ".join(tags) for tags in TAGS],
        [str(tags) for tags in TAGS],
    ],
)
def test_tags_are_a_column_each(cells):
    loaded = read_graph(EDGES, table(z=pa.array(cells)))
    wanted = [[1, 1, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0], [0, 0, 1]]
    x = loaded.graph.features
    np.testing.assert_array_equal(x if isinstance(x, np.ndarray) else x.toarray(), wanted)
    assert loaded.schema.columns[0].kind == "tags"
    assert FeatureSchema.from_dict(loaded.schema.to_dict()) == loaded.schema
    again = read_graph(EDGES, table(z=["b|new"] * 6), schema=loaded.schema)
    x = again.graph.features
    np.testing.assert_array_equal(x if isinstance(x, np.ndarray) else x.toarray(), [[0, 1, 0]] * 6)
    assert any("categories not seen before" in note for note in again.notes)


def test_lists_of_numbers_in_text_are_vectors_and_a_question_mark_is_missing(tmp_path):
    lists = ["[0.5, 1]", "[1 2e1]", "[ 2, 3 ]", "?", "[-4,.5]", "[5, 7]"]
    numbers = [0, 1, "?", 3, 4, 5]
    lines = [f'{name},"{z}",{x}' for name, z, x in zip(IDS, lists, numbers, strict=True)]
    (tmp_path / "n.csv").write_text("id,z,x\n" + "\n".join(lines) + "\n")
    loaded = read_graph(EDGES, tmp_path / "n.csv")
    assert [(c.kind, c.width) for c in loaded.schema.columns] == [("vector", 3), ("numeric", 2)]
    np.testing.assert_array_equal(loaded.graph.features[[0, 1, 4], :2], [[0.5, 1], [1, 20], [-4, 0.5]])
    assert loaded.report.missing_values == {"z": 1, "x": 1}


def test_all_columns_of_free_text_are_refused_at_once():
    many = [f"n{i}" for i in range(30)]
    edges = pa.table({"u": many, "v": many[1:] + many[:1]})
    texts = [f"words of number {i}" for i in range(30)]
    nodes = pa.table({"id": many, "bio": texts, "x": range(30), "about": texts})
    with pytest.raises(GraphError, match=r"2 columns are text: 'bio' \(30 .*'about' \(30 ") as caught:
        read_graph(edges, nodes)
    assert 'drop="bio" drop="about"' in caught.value.fix


def test_moments_are_numbers(tmp_path):
    days = [datetime.date(2024, 1, 1 + i) for i in (0, 1, 2, 3, 4, 9)]
    expected = standard(np.array([0.0, 1, 2, 3, 4, 9]))
    moments = [datetime.datetime(2024, 1, d.day) for d in days]
    text = "id,when\n" + "".join(f"{i},{d}\n" for i, d in zip(IDS, days, strict=True))
    zoned = "id,when\n" + "".join(f"{i},{d}T00:00:00Z\n" for i, d in zip(IDS, days, strict=True))
    sources = (table(when=days), table(when=moments), csv(tmp_path, text), csv(tmp_path, zoned, "z.csv"))
    for nodes in sources:
        loaded = read_graph(EDGES, nodes)
        assert loaded.report.feature_columns == {"when": "time"}
        np.testing.assert_allclose(loaded.graph.features[:, 0], expected, rtol=1e-5)


def test_text_is_refused_hashed_or_ignored():
    ids = [f"n{i}" for i in range(30)]
    edges = pa.table({"u": ids, "v": ids[1:] + ids[:1]})
    bios = [f"person number {i} likes graphs" for i in range(30)]
    nodes = pa.table({"id": ids, "bio": bios, "x": range(30)})
    with pytest.raises(GraphError, match=r"1 column is text.*30 different values") as caught:
        load_graph(edges, nodes)
    assert 'text="hash"' in str(caught.value)
    ignored = read_graph(edges, nodes, text="ignore")
    assert ignored.graph.num_features == 1
    assert "bio" in ignored.report.dropped_columns
    hashed = read_graph(edges, nodes, text="hash")
    block = hashed.graph.features.toarray()[:, :-1]
    np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1, rtol=1e-5)
    assert block[0] @ block[1] > 0.4  # most words are shared


class Model:
    """What sentence-transformers offers: as many columns as the name says, of the lengths of texts."""

    def __init__(self, name, *, local_files_only):
        assert local_files_only
        if name == "nowhere":
            raise OSError("no such model")
        self.width = int(name)

    def encode(self, texts, *, show_progress_bar):
        assert not show_progress_bar
        return np.array([[len(text)] * self.width for text in texts], dtype=np.float32)


def test_text_is_embedded_by_a_model_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Model))
    edges, nodes = texts()
    bios = [None, *nodes["bio"].to_pylist()[1:]]
    nodes = nodes.set_column(1, "bio", pa.array(bios))
    loaded = read_graph(edges, nodes, text="sentence-transformers:3")
    wanted = [[0, 0, 0, 1], *([len(bio)] * 3 + [0] for bio in bios[1:])]
    np.testing.assert_array_equal(loaded.graph.features, wanted)
    assert any("embedded by 3 in 3 columns" in note for note in loaded.notes)
    again = FeatureSchema.from_dict(loaded.schema.to_dict())
    assert again == loaded.schema
    np.testing.assert_array_equal(read_graph(edges, nodes, schema=again).graph.features, wanted)
    for name, table in (("e", edges), ("n", nodes)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    files = (tmp_path / "e.parquet", tmp_path / "n.parquet")
    store = prepare_store(*files, out=tmp_path / "g.store", text="sentence-transformers:3")
    assert store.content_hash == loaded.graph.content_hash
    with pytest.raises(GraphError, match="'nowhere' cannot be loaded: no such model"):
        read_graph(edges, nodes, text="sentence-transformers:nowhere")
    with pytest.raises(ConfigError, match="text is 'sentence-transformers:'"):
        read_graph(edges, nodes, text="sentence-transformers:")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(GraphError, match=r"nodejepa\[text\]"):
        read_graph(edges, nodes, text="sentence-transformers:4")


@pytest.mark.parametrize("stored", [False, True])
def test_a_value_whose_square_overflows_is_refused_by_column_and_row(tmp_path, stored):
    """1e30 fits into float32, its square does not: the eigenproblem of X'X ended in "a bug of ours"."""
    pq.write_table(EDGES, tmp_path / "e.parquet")
    for nodes, options in (
        (table(x=[1.0, 2.0, 1e30, 4.0, 5.0, 6.0]), {"scale": "none"}),
        (table(x=[[1.0, 2.0], [3.0, 1.0], [0.0, -1e30], [1.0, 0.0], [0.0, 0.0], [2.0, 2.0]]), {}),
    ):
        pq.write_table(nodes, tmp_path / "n.parquet")
        files = (tmp_path / "e.parquet", tmp_path / "n.parquet")
        with pytest.raises(GraphError, match=r"row 3 is -?1e\+30.*1e\+14.*column 'x'"):
            prepare_store(*files, out=tmp_path / "g", **options) if stored else load_graph(*files, **options)
    with pytest.raises(GraphError, match=r"row 1, column 0 is 1.*1e\+14"):
        Graph.from_edges([0, 1], [1, 2], features=[[1.0], [1e30], [2.0]])
    scaled = features(table(x=[1.0, 2.0, 1e30, 4.0, 5.0, 6.0]))  # scaled it is a number like others
    assert np.abs(scaled).max() < 3


def texts(count: int = 400) -> tuple[pa.Table, pa.Table]:
    ids = [f"n{i}" for i in range(count)]
    words = [f"w{7 * i} v{i % 50} u{i * i}" for i in range(count)]
    return pa.table({"u": ids, "v": ids[1:] + ids[:1]}), pa.table({"id": ids, "bio": words})


def test_hashed_text_uses_every_column_and_its_width_is_an_option():
    edges, nodes = texts()
    for width, options in ((512, {}), (48, {"text_columns": 48}), (7, {"text_columns": 7})):
        loaded = read_graph(edges, nodes, text="hash", **options)
        used = np.diff(sp.csc_array(loaded.graph.features).indptr) > 0
        assert used.shape == (width,)
        assert used.mean() > 0.75  # by chance one of many columns may stay empty
        again = FeatureSchema.from_dict(loaded.schema.to_dict())
        np.testing.assert_array_equal(
            sp.csr_array(read_graph(edges, nodes, schema=again).graph.features).toarray(),
            sp.csr_array(loaded.graph.features).toarray(),
        )
    for wrong in (0, -1, 2.5, 1 << 21, "wide"):
        with pytest.raises(ConfigError, match="text_columns"):
            read_graph(edges, nodes, text="hash", text_columns=wrong)


def test_text_hashed_by_the_old_rule_is_refused_and_other_old_schemas_are_read():
    edges, nodes = texts()
    hashed = read_graph(edges, nodes, text="hash").schema.to_dict()
    with pytest.raises(DataError, match="'bio' was hashed by an older rule"):
        FeatureSchema.from_dict({**hashed, "version": 1})
    plain = read_graph(EDGES, pa.table({"id": ["a", "b", "c"], "x": [1.0, 2.0, 4.0]})).schema
    assert FeatureSchema.from_dict({**plain.to_dict(), "version": 1}) == plain


def test_words_are_hashed_into_the_same_columns_in_every_process():
    cells = interpret(pa.chunked_array([["Ünïcode words, and more", "x y", None]]), True, "")
    block, _ = encode_column(FeatureColumn("t", "text", buckets=16, indicator=True), cells, 3)
    wanted = np.zeros((3, 17))
    wanted[0, [1, 4, 7, 9]] = [0.5, 0.5, 0.5, -0.5]
    wanted[1, [5, 7]] = [-(0.5**0.5), 0.5**0.5]
    wanted[2, 16] = 1  # a missing text has the mark alone
    np.testing.assert_allclose(block.toarray(), wanted)


def test_many_categories_stay_sparse():
    ids = [str(i) for i in range(1000)]
    nodes = pa.table({"id": ids, "c": [f"kind {i % 90}" for i in range(1000)]})
    matrix = load_graph(pa.table({"u": ids, "v": ids[1:] + ids[:1]}), nodes).features
    assert sp.issparse(matrix)
    assert (matrix.shape, matrix.nnz) == ((1000, 90), 1000)


def test_columns_that_say_nothing_are_left_out():
    nodes = table(
        x=[1, 2, 3, 4, 5, 6], zero=[0.0] * 6, same=["k"] * 6, none=pa.nulls(6), vector=[[1.0, 2.0]] * 6
    )
    loaded = read_graph(EDGES, nodes)
    assert set(loaded.report.dropped_columns) == {"zero", "same", "none", "vector"}
    assert loaded.graph.num_features == 1
    only = read_graph(EDGES, nodes.drop_columns(["x"]))
    assert only.schema.structural == only.graph.num_features == 139
    assert any("features are structural" in note for note in only.notes)


def test_columns_are_chosen():
    nodes = table(x=[1, 2, 3, 4, 5, 6], y=[6, 5, 4, 3, 2, 9], z=[0, 0, 1, 1, 0, 0])
    assert read_graph(EDGES, nodes, columns=["y"]).report.feature_columns == {"y": "numeric"}
    ignored = read_graph(EDGES, nodes, ignore=["y"]).report
    assert set(ignored.feature_columns) == {"x", "z"}
    assert ignored.dropped_columns == {"y": "asked for"}
    with pytest.raises(GraphError, match="no column 'w'"):
        load_graph(EDGES, nodes, ignore=["w"])
    with pytest.raises(GraphError, match="no column 'w'"):
        load_graph(EDGES, nodes, columns="w")


def test_structural_features():
    loaded = read_graph(EDGES)
    places, adjacency = np.split(loaded.graph.features, [11], axis=1)
    np.testing.assert_array_equal(places, descriptors(loaded.graph))
    np.testing.assert_allclose(np.sum(adjacency**2), np.sum(places**2), rtol=1e-5)
    both = read_graph(EDGES, table(x=[1, 2, 3, 4, 5, 6]), structural=True)
    assert both.graph.num_features == both.schema.width == 12
    every = ("pagerank", "degree", "clustering", "spectral", "adjacency")
    assert read_graph(EDGES, structural=("all", "adjacency")).schema.described_by == every


def test_the_adjacency_is_that_of_one_graph(tmp_path):
    loaded = read_graph(EDGES)
    schema = loaded.schema
    note = 'adjacency features cannot be applied to other graphs; structural="all" leaves them out.'
    assert note in loaded.notes
    np.testing.assert_array_equal(
        load_graph(EDGES, schema=FeatureSchema.from_dict(schema.to_dict())).features,
        read_graph(EDGES).graph.features,
    )
    other = tmp_path / "other.csv"
    other.write_text("source,target\na,b\nb,c\n")
    with pytest.raises(GraphError, match=r'adjacency of another graph.*structural=\["pagerank"'):
        load_graph(other, schema=schema)
    assert load_graph(other, schema=read_graph(EDGES, structural="all").schema).num_features == 11


def test_the_adjacency_of_a_large_graph_must_be_asked_for(monkeypatch):
    monkeypatch.setattr(reading_options, "ADJACENCY_UP_TO", 5)
    loaded = read_graph(EDGES)
    assert loaded.schema == FeatureSchema(structural=11)
    assert not loaded.graph.incomparable
    assert any("nodes: the adjacency itself, which" in note for note in loaded.notes)
    assert read_graph(EDGES, structural="adjacency").graph.num_features == 128


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), 1e300])
def test_infinite_numbers(value):
    nodes = table(x=[1.0, 2.0, value, 4.0, 5.0, 6.0])
    with pytest.raises(GraphError, match=r"row 3 .*column 'x'"):
        load_graph(EDGES, nodes)


def test_a_word_among_numbers_is_named(tmp_path):
    rows = "".join(f"{i},{'oops' if i == 17 else i}\n" for i in range(40))
    edges = pa.table({"u": list(range(39)), "v": list(range(1, 40))})
    with pytest.raises(GraphError, match="row 18 is 'oops' in a column of numbers"):
        load_graph(edges, csv(tmp_path, "id,age\n" + rows))
    assert load_graph(edges, csv(tmp_path, "id,age\n" + rows.replace("oops", "NA"))).num_features == 2


def test_what_cannot_be_a_feature():
    for column in ([{"a": 1}] * 6, [b"x"] * 6):
        with pytest.raises(GraphError, match=r"cannot become features .*column 'x'"):
            load_graph(EDGES, table(x=column))


def test_missing_node_ids_are_named(tmp_path):
    with pytest.raises(GraphError, match="row 2 has no id"):
        load_graph(EDGES, csv(tmp_path, "id,x\na,1\n,2\n"))


# ---------------------------------------------------------------- labels


def test_labels_are_values_and_no_features(tmp_path):
    loaded = read_graph(EDGES, table(x=[1, 2, 3, 4, 5, 6], y=["k", "m", None, "k", "k", "m"]), labels="y")
    assert loaded.labels.tolist() == [0, 1, -1, 0, 0, 1]
    assert loaded.class_names == ("k", "m")
    assert loaded.graph.num_features == 1
    for nodes in (
        table(x=[1, 2, 3, 4, 5, 6], y=[10, 9, None, 10, 2, 9]),
        table(x=[1, 2, 3, 4, 5, 6], y=[10.0, 9.0, float("nan"), 10.0, 2.0, 9.0]),
        csv(tmp_path, "id,x,y\na,1,10\nb,2,9\nc,3,\nd,4,10\ne,5,2\nf,6,9\n"),
    ):
        loaded = read_graph(EDGES, nodes, labels="y")
        assert loaded.class_names == ("2", "9", "10")
        assert loaded.labels.tolist() == [2, 1, -1, 2, 0, 1]
    truth = read_graph(EDGES, table(x=range(6), y=[True, False, True, True, None, True]), labels="y")
    assert truth.class_names == ("false", "true")
    assert truth.labels.tolist() == [1, 0, 1, 1, -1, 1]


def test_a_node_table_of_nothing_but_ids_and_labels():
    nodes = table(y=["k", "m", "k", "m", "k", "k"])
    loaded = read_graph(pa.table({"u": IDS, "v": ["new", *IDS[1:]]}), nodes, labels="y")
    assert loaded.labels.tolist() == [0, 1, 0, 1, 0, 0, -1]
    assert (loaded.schema.columns, loaded.schema.structural) == ((), 139)
    bare = read_graph(pa.table({"u": IDS, "v": ["new", *IDS[1:]]}), nodes.select(["id"]))
    assert (bare.graph.num_nodes, bare.graph.num_features) == (7, 139)


def test_hostile_labels_are_kept():
    names = ["<b>x</b>", "=1+1", "../x", "\U0001f600", "a\0b", "nan"]
    loaded = read_graph(EDGES, table(x=range(6), y=names), labels="y")
    assert [loaded.class_names[c] for c in loaded.labels] == names


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.nulls(6), "no node has a label"),
        ([[1]] * 6, "one class a node"),
        ([datetime.date(2020, 1, 1)] * 6, "no classes"),
    ],
)
def test_what_is_no_label(column, message):
    with pytest.raises(GraphError, match=message):
        read_graph(EDGES, table(x=range(6), y=column), labels="y")


def test_continuous_labels_and_labels_that_are_ids():
    ids = list(range(300))
    edges = pa.table({"u": ids, "v": ids[1:] + ids[:1]})
    with pytest.raises(GraphError, match="are no classes"):
        read_graph(edges, pa.table({"id": ids, "y": np.linspace(0, 1, 300)}), labels="y")
    with pytest.raises(GraphError, match="cannot be their label"):
        read_graph(edges, pa.table({"id": ids, "y": ids}), labels="id")


# ---------------------------------------------------------------- the same encoding once more

TRAINED = table(
    x=[1.0, None, 3, 4, 5, 9],
    colour=["red", "blue", None, "red", "red", "blue"],
    ok=[True, False, True, True, False, True],
    z=[[1.0, 2.0], [2.0, 1.0], [0.0, 0.0], [1.0, 1.0], [5.0, 5.0], [1.0, 7.0]],
    when=[datetime.date(2024, 1, 1 + i) for i in range(6)],
)


def test_schema_survives_json_and_repeats_the_encoding():
    first = read_graph(EDGES, TRAINED)
    schema = FeatureSchema.from_dict(json.loads(json.dumps(first.schema.to_dict())))
    assert schema == first.schema
    assert schema.width == first.graph.num_features
    again = read_graph(EDGES, TRAINED, schema=schema)
    np.testing.assert_array_equal(again.graph.features, first.graph.features)
    order = ["when", "z", "id", "ok", "x", "colour"]
    turned = read_graph(
        EDGES, TRAINED.select(order).append_column("extra", pa.array(range(6))), schema=schema
    )
    np.testing.assert_array_equal(turned.graph.features, first.graph.features)
    assert any("no use for column 'extra'" in note for note in turned.notes)


def test_some_rows_alone_are_encoded_as_among_all():
    first = read_graph(EDGES, TRAINED)
    part = read_graph(pa.table({"u": ["b"], "v": ["d"]}), TRAINED.take(pa.array([3, 1])), schema=first.schema)
    np.testing.assert_array_equal(part.graph.features, first.graph.features[[3, 1]])


def test_text_files_are_read_by_the_schema(tmp_path):
    first = read_graph(EDGES, csv(tmp_path, "id,zip,n\na,x1,1\nb,x1,2\nc,7,3\nd,7,4\ne,x1,5\nf,7,9\n"))
    assert first.report.feature_columns == {"zip": "category", "n": "numeric"}
    only_numbers = csv(tmp_path, "id,zip,n\na,7,4\nb,7,4\n", "m.csv")
    part = read_graph(pa.table({"u": ["a"], "v": ["b"]}), only_numbers, schema=first.schema)
    np.testing.assert_array_equal(part.graph.features, first.graph.features[[3, 3]])


def test_new_categories_are_zeros_and_said():
    schema = read_graph(EDGES, table(c=["p", "q", "p", "q", "p", "q"])).schema
    loaded = read_graph(EDGES, table(c=["p", "new", "p", "q", None, "q"]), schema=schema)
    np.testing.assert_array_equal(loaded.graph.features, [[1, 0], [0, 0], [1, 0], [0, 1], [0, 0], [0, 1]])
    assert "values of categories not seen before, which are encoded as zeros: 'c' (1)." in loaded.notes
    assert any("nothing marks" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["x", "ok"]), "lacks columns 'x', 'ok'"),
        (lambda t: t.set_column(1, "x", pa.array(["a"] * 6)), "holds text where numbers"),
        (lambda t: t.set_column(2, "colour", pa.array(range(6))), "holds numbers where text"),
        (lambda t: t.set_column(4, "z", pa.array([[1.0]] * 6)), "1 numbers where 2 are expected"),
        (lambda t: t.set_column(1, "x", pa.array([float("inf")] * 6)), "row 1 is inf"),
    ],
)
def test_schema_mismatches_are_explained(change, message):
    schema = read_graph(EDGES, TRAINED).schema
    with pytest.raises(GraphError, match=message):
        read_graph(EDGES, change(TRAINED), schema=schema)


def test_schema_of_matrices_and_structure():
    ring = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], features=np.ones((5, 3)))
    schema = read_graph(ring).schema
    for nodes in ((), (table(x=range(6)),)):
        with pytest.raises(GraphError, match="matrix of 3 columns"):
            load_graph(EDGES, *nodes, schema=schema)
    with pytest.raises(GraphError, match="need a node table"):
        load_graph(EDGES, schema=read_graph(EDGES, TRAINED).schema)
    structural = read_graph(EDGES, structural="all").schema
    assert load_graph(EDGES, schema=structural).num_features == 11


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"format": "other"},
        {"version": 2},
        {"version": 3, "columns": [], "structural": 0},
        {"columns": 3, "structural": 0},
        {"columns": [{}], "matrix_width": None, "structural": 0},
        {"columns": [{"name": "x", "kind": "number"}], "structural": 0},
        {"columns": [{"name": "x", "kind": "text", "buckets": -1}], "structural": 0},
    ],
)
def test_damaged_schemas(content):
    whole = {"format": "nodejepa feature schema", "version": 2}
    with pytest.raises(DataError):
        FeatureSchema.from_dict({**whole, **content} if isinstance(content, dict) else content)


def test_dots_that_may_stand_between_thousands_are_warned_of(tmp_path):
    """As spreadsheets of many countries write numbers: 5.765 is 5765 there."""
    edges = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})

    def warnings_of(*cells):
        nodes = tmp_path / "nodes.csv"
        nodes.write_text("id;sales\n" + "".join(f"{i};{cell}\n" for i, cell in enumerate(cells)))
        return read_graph(edges, nodes).report.warnings

    (warning,) = warnings_of("642", "5.765", "12.300", "")
    assert "'sales'" in warning
    assert "5765" in warning
    for cells in (("1", "5.765", "12.300"), ("642", "5.765", "0.300"), ("642", "5.76", "12.300")):
        assert not warnings_of(*cells, "2.125")
    with pytest.raises(GraphError, match=r"numbers have dots, such as '1\.205\.765'"):
        warnings_of("642", "1.205.765", "2.712.300", "12")


def test_numbers_that_may_stand_for_missing_values_are_warned_of():
    edges = pa.table({"source": range(59), "target": range(1, 60)})

    def warnings_of(*values):
        x = [*values, *np.arange(60 - len(values)) / 2]
        return read_graph(edges, pa.table({"id": range(60), "x": x})).report.warnings

    (warning,) = warnings_of(-999.0, 3, -999.0)
    assert "'x': -999 is there 2 times" in warning
    assert "9999 is there 3 times" in warnings_of(9999.0, 9999.0, 9999.0)[0]
    for usual in ([-999.0], [99.0, 99.0, 120.0], [-999.0, -999.0, -1800.0, 2000.0]):
        assert not warnings_of(*usual)


def test_a_spread_of_another_unit_is_warned_of():
    edges = pa.table({"source": range(59), "target": range(1, 60)})
    values = 0.3 + 0.5 * np.sin(np.arange(60))
    fitted = read_graph(edges, pa.table({"id": range(60), "x": values})).schema

    def warnings_of(x):
        return read_graph(edges, pa.table({"id": range(60), "x": x}), schema=fitted).report.warnings

    for factor in (0.1, 4.0):
        assert any("'x' lie far" in said for said in warnings_of(factor * values))
    few = pa.array([*(0.1 * values[:20]), *[None] * 40])
    for usual in (values / 2, pa.array([*values[:40], *[None] * 20]), few):
        assert not warnings_of(usual)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["12%", "15%", "8%", "15%", "3.5%", "12%"], "'12%'"),
        (["$5", "$1,200", "$7", "$5", "$6", "$9"], "'$5'"),
        (["12 km", "3 km", "4.5 km", "12 km", "3 km", "4 km"], "'12 km'"),
        (["12 km", "3 m", "4 km", "12 m", "3 km", "4 cm"], ""),
        (["007", "008", "009", "010", "011", "012"], ""),
        (["A1", "A2", "A3", "A1", "A2", "A3"], ""),
        (["1 of 2", "2 of 2", "1 of 3", "2 of 3", "3 of 3", "1 of 2"], ""),
        (["3", "5", "7", "3", "5", "9"], "'3'"),
    ],
)
def test_numbers_that_are_stored_as_text_are_warned_of(tmp_path, cells, said, stored):
    """They became categories without a word: the size of a number was lost."""
    rows = "".join(f'{name},"{cell}"\n' for name, cell in zip(IDS, cells, strict=True))
    nodes = csv(tmp_path, f"id,share\n{rows}") if stored else table(share=cells)
    warned = read_graph(EDGES, nodes).report.warnings
    if stored and cells[0].isdecimal():
        assert not warned  # numbers of a text file are numbers
        return
    assert [f"numbers as text, such as {said}" in text for text in warned] == ([True] if said else [])


def test_more_ways_to_say_that_a_cell_is_missing(tmp_path):
    rows = "".join(
        f"{name},{cell}\n" for name, cell in zip(IDS, ("1", "na", "2", "<NA>", "3", "4"), strict=True)
    )
    loaded = read_graph(EDGES, csv(tmp_path, f"id,age\n{rows}"))
    assert loaded.report.missing_values == {"age": 2}
    assert loaded.report.feature_columns == {"age": "numeric"}


def test_a_node_table_without_rows_is_told_so(tmp_path):
    with pytest.raises(GraphError, match=r"the node table has no rows"):
        read_graph(EDGES, csv(tmp_path, "id,x\n"))
