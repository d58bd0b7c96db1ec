"""Bad inputs by the hundred: each ends in a NodeJEPAError or in a sound graph, never in anything else.

Every case is drawn from its own seed, so a failure can be repeated by its number.
"""

from __future__ import annotations

import random
import string

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from tests.attack.mutations import damaged, inputs, inside_archive

from nodejepa import FeatureSchema, NodeJEPAError, read_graph

CELLS = [
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-0",
    "007",
    "9" * 25,
    str(2**63),
    "1.5",
    "1,5",
    "true",
    "NULL",
    "2024-02-30",
    "2024-02-29T12:00:00Z",
    '"',
    '""',
    '"open',
    "it's",
    "\0",
    "\u202e",
    "\U0001f600",
    "<b>",
    "=1+1",
    "../../x",
    "x" * 3000,
    "[1, 2]",
    "a\tb",
    "a;b",
    "a\rb",
    "#",
    "%",
    "\ufeff",
]
HEADERS = [
    "source",
    "target",
    "weight",
    "id",
    "",
    " ",
    "source",
    "1",
    "a,b",
    '"q',
    "label",
    "x" * 500,
    "\0",
    "é",
]


def drawn():
    """Edges with weights, and nodes with a column of every kind, as text."""
    rng = random.Random(0)
    rows = [f"n{rng.randrange(20)},n{rng.randrange(20)},{rng.random():.3f}" for _ in range(30)]
    nodes = [f"n{i},{rng.random():.3f},{rng.choice(['red', 'blue'])},{rng.choice('tf')}" for i in range(20)]
    edges = "source,target,weight\n" + "\n".join(rows) + "\n"
    return edges.encode(), ("id,size,colour,y\n" + "\n".join(nodes) + "\n").encode()


FILES = {name: content for name, content in inputs(*drawn()).items() if ".np" not in name}


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


def outcome(edges, nodes=None, **options):
    """Read it: True if there is a graph, False for an error that says what is wrong; anything else fails."""
    try:
        loaded = read_graph(edges, nodes, structural=False, **options)
    except NodeJEPAError:
        return False
    sound(loaded)
    return True


def read(folder, name, content, **options):
    """A file in its place; edges beside a table of nodes are unharmed."""
    (folder / name).write_bytes(content)  # the last one there is the one that failed
    if "edges" in name:
        return outcome(folder / name, directed=options["text"] == "hash")
    (folder / "edges.csv").write_bytes(FILES["edges.csv"])
    return outcome(folder / "edges.csv", folder / name, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_mutated_files(tmp_path, name):
    """One test for all seeds: hundreds of them would cost more to collect than to run."""
    assert read(tmp_path, name, FILES[name], text="refuse")
    for seed in range(120):
        rng = random.Random(f"{name} {seed}")
        wounds = inside_archive if name.endswith(".gz") and seed % 2 else damaged
        content = wounds(FILES[name], rng)
        for text in ("refuse", "hash"):
            read(tmp_path, f"{seed}-{name}", content, text=text, labels="y" if seed % 2 else None)


@pytest.mark.parametrize("seed", range(80))
def test_random_tables_of_nasty_cells(tmp_path, seed):
    rng = random.Random(f"cells {seed}")
    delimiter = rng.choice(",;\t |")
    ending = rng.choice(["\n", "\r\n", "\r"])
    for name in ("e.csv", "n.csv"):
        width = rng.randrange(1, 6)
        rows = [[rng.choice(HEADERS) for _ in range(width)]] if rng.random() < 0.8 else []
        for _ in range(rng.randrange(12)):
            wanted = width if rng.random() < 0.97 else rng.randrange(7)
            plain = rng.choice(string.ascii_letters) if rng.random() < 0.6 else rng.choice(CELLS)
            rows.append([plain, *(rng.choice([*"abc", *CELLS]) for _ in range(wanted - 1))])
        quote = rng.random() < 0.5
        text = ending.join(
            delimiter.join(f'"{c.replace(chr(34), chr(34) * 2)}"' if quote else c for c in r) for r in rows
        )
        (tmp_path / name).write_bytes(text.encode("utf-8"))
    outcome(tmp_path / "e.csv")
    outcome(tmp_path / "e.csv", tmp_path / "n.csv", text="hash")


def random_column(rng, rows):
    """An Arrow column of any type, with gaps."""
    makers = [
        lambda: pa.array([rng.choice([None, 0, 1, -1, 2**62]) for _ in range(rows)], pa.int64()),
        lambda: pa.array([rng.choice([0, 2**64 - 1]) for _ in range(rows)], pa.uint64()),
        lambda: pa.array(
            [rng.choice([None, 0.0, -1.5, 1e308, float("nan"), float("inf")]) for _ in range(rows)]
        ),
        lambda: pa.array([rng.choice(["", "a", "b", None, *CELLS]) for _ in range(rows)], pa.string()),
        lambda: pa.array([rng.choice(CELLS) for _ in range(rows)], pa.large_string()),
        lambda: pa.array([rng.choice(CELLS) for _ in range(rows)]).dictionary_encode(),
        lambda: pa.array([rng.choice([True, False, None]) for _ in range(rows)], pa.bool_()),
        lambda: pa.array([rng.choice([b"\xff", b"a", None]) for _ in range(rows)], pa.binary()),
        lambda: pa.array([rng.choice([b"0" * 16, b"1" * 16]) for _ in range(rows)], pa.binary(16)),
        lambda: pa.array([[1.0] * rng.randrange(3) for _ in range(rows)], pa.list_(pa.float64())),
        lambda: pa.array(
            [rng.choice([[1.0, None], [2.0, float("inf")]]) for _ in range(rows)], pa.list_(pa.float32(), 2)
        ),
        lambda: pa.array([{"a": 1}] * rows),
        lambda: pa.nulls(rows),
        lambda: pa.array(
            [rng.choice([None, 0, 2**50]) for _ in range(rows)], pa.timestamp(rng.choice(["s", "ns"]))
        ),
        lambda: pa.array([rng.choice([None, 0, 10]) for _ in range(rows)], pa.date32()),
        lambda: pa.array([rng.choice([None, 0, 10]) for _ in range(rows)], pa.time32("s")),
        lambda: pa.array([rng.choice([None, 0, 10]) for _ in range(rows)], pa.duration("ms")),
        lambda: pa.array([rng.randrange(rows) for _ in range(rows)], pa.int32()),
        lambda: pa.array([f"n{rng.randrange(rows)}" for _ in range(rows)]),
        lambda: pa.array([1.5] * rows, pa.float16()),
        lambda: pa.array(range(rows)),
    ]
    return rng.choice(makers)()


def random_table(rng):
    rows = rng.choice([1, 2, 7, 30])
    columns = [random_column(rng, rows) for _ in range(rng.randrange(1, 6))]
    names = [rng.choice([*HEADERS, *(f"c{i}" for i in range(9))]) for _ in columns]
    return pa.table(columns, names=names)


@pytest.mark.parametrize("seed", range(120))
def test_random_typed_tables(tmp_path, seed):
    rng = random.Random(f"typed {seed}")
    edges, nodes = random_table(rng), random_table(rng)
    if seed % 3 == 0:
        pq.write_table(edges, tmp_path / "e.parquet")
        edges = tmp_path / "e.parquet"
    options = {"text": rng.choice(["refuse", "hash", "ignore"])}
    labels = rng.choice([None, *nodes.column_names])
    outcome(edges)
    outcome(edges, nodes, labels=labels, **options)
    numbered = pa.table({"source": list(range(nodes.num_rows)), "target": [0] * nodes.num_rows})
    named = pa.table(
        [pa.array(range(nodes.num_rows)), *nodes.columns], names=["id", *map(str, range(nodes.num_columns))]
    )
    outcome(numbered, named, **options)
