"""The same graph in other writing is read as the same, or refused, or the reading says what differs."""

from __future__ import annotations

import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from nodejepa import NodeJEPAError, read_graph
from nodejepa.tables import LoadedGraph

NODES = 40
RNG = np.random.default_rng(0)
EDGES = pd.DataFrame({"source": RNG.integers(0, NODES, 150), "target": RNG.integers(0, NODES, 150)})
TABLE = pd.DataFrame(
    {"id": np.arange(NODES), "age": RNG.normal(40, 10, NODES).round(3), "team": list("abcd") * 10}
)
WORDS = {name: EDGES[name].map("user_{}".format) for name in EDGES}

FRAMES = {  # what is done with the edges, and with the nodes
    "ids as floats": (EDGES.astype(float), TABLE.assign(id=TABLE.id.astype(float))),
    "ids as floats in one table": (EDGES, TABLE.assign(id=TABLE.id.astype(float))),
    "nullable integers": (EDGES.astype("Int64"), TABLE.assign(id=TABLE.id.astype("Int64"))),
    "unsigned": (EDGES.astype("uint64"), TABLE.assign(id=TABLE.id.astype("int16"))),
    "categorical ids": (EDGES.astype("category"), TABLE.assign(id=TABLE.id.astype("category"))),
    "ids as text in one table": (EDGES.astype(str), TABLE),
    "ids as bytes": (
        EDGES.astype(str).map(str.encode),
        TABLE.assign(id=TABLE.id.astype(str).map(str.encode)),
    ),
    "ids as decimals": (EDGES, TABLE.assign(id=[Decimal(i) for i in TABLE.id])),
    "ids as moments": (EDGES.apply(pd.to_datetime), TABLE.assign(id=pd.to_datetime(TABLE.id))),
    "leading zeros in one table": (EDGES, TABLE.assign(id=TABLE.id.map("{:03}".format))),
    "one missing id": (EDGES.astype(float).replace(7.0, np.nan), TABLE),
    "shuffled rows": (EDGES.sample(frac=1, random_state=0), TABLE.sample(frac=1, random_state=1)),
    "shuffled columns": (EDGES[["target", "source"]], TABLE[["team", "id", "age"]]),
    "ids as the index": (EDGES, TABLE.set_index("id").sample(frac=1, random_state=2)),
    "two levels of an index": (
        EDGES.set_index(["source", "target"]).assign(kind=1),
        TABLE.set_index(["id", "age"]),
    ),
    "edges in both directions": (
        pd.concat([EDGES, EDGES.rename(columns={"source": "target", "target": "source"})]),
        TABLE,
    ),
    "numbers as decimals": (EDGES, TABLE.assign(age=[Decimal(str(v)) for v in TABLE.age])),
    "numbers as text": (EDGES, TABLE.assign(age=TABLE.age.astype(str))),
    "a duplicate id": (EDGES, pd.concat([TABLE, TABLE[:1]])),
    "names in another case": (EDGES, TABLE.rename(columns={"id": "ID"})),
    "half of the ids in capitals": (
        pd.DataFrame(WORDS),
        TABLE.assign(id=[f"{'user' if i % 2 else 'USER'}_{i}" for i in TABLE.id]),
    ),
    "lists as ids": (EDGES, TABLE.assign(id=[[i] for i in TABLE.id])),
}
TEXTS = {  # how both tables are written
    "comma": lambda frame: frame.to_csv(index=False).encode(),
    "byte order mark": lambda frame: frame.to_csv(index=False).encode("utf-8-sig"),
    "Windows line ends": lambda frame: frame.to_csv(index=False, lineterminator="\r\n").encode(),
    "old Mac line ends": lambda frame: frame.to_csv(index=False, lineterminator="\r").encode(),
    "semicolons": lambda frame: frame.to_csv(index=False, sep=";").encode(),
    "decimal commas": lambda frame: frame.to_csv(index=False, sep=";", decimal=",").encode(),
    "quotes everywhere": lambda frame: frame.to_csv(index=False, quoting=1).encode(),
    "spaces after commas": lambda frame: frame.to_csv(index=False).replace(",", ", ").encode(),
    "an index": lambda frame: frame.to_csv().encode(),
    "blank lines": lambda frame: frame.to_csv(index=False).replace("\n", "\n\n").encode(),
    "compressed": lambda frame: gzip.compress(frame.to_csv(index=False).encode()),
    "compressed in parts": lambda frame: b"".join(
        gzip.compress(part.encode()) for part in frame.to_csv(index=False).splitlines(keepends=True)
    ),
    "UTF-16": lambda frame: frame.to_csv(index=False).encode("utf-16"),
    "joined with their headers": lambda frame: (
        frame[:20].to_csv(index=False).encode() + frame[20:].to_csv(index=False).encode()
    ),
    "cut off": lambda frame: frame.to_csv(index=False).encode()[:-3],
}


def meaning(loaded: LoadedGraph) -> tuple[dict[str, list[float]], set[tuple[str, str]]]:
    """Features by id and edges by ids, whatever their order."""
    graph = loaded.graph
    names = [str(name).removeprefix("user_") for name in graph.node_ids.tolist()]
    widths = [(column.name, column.width) for column in loaded.schema.columns]
    starts = dict(zip([n for n, _ in widths], np.cumsum([0, *(w for _, w in widths)]).tolist(), strict=False))
    order = [starts[name] + k for name, width in sorted(widths) for k in range(width)]
    rows = np.asarray(graph.features)[:, order].round(4).tolist()
    source, target, _ = graph.edge_arrays()
    return dict(zip(names, rows, strict=True)), {
        (names[a], names[b]) for a, b in zip(source, target, strict=True)
    }


WANTED = meaning(read_graph(EDGES, TABLE, structural=[]))
USUAL = (
    "edges run",
    "node ids are",
    "features from",
    "repeat another",
    "listed in both",
    "themselves",
    "itself",
)


def check(edges: object, nodes: object) -> None:
    try:
        loaded = read_graph(edges, nodes, structural=[])
    except NodeJEPAError:
        return
    said = [note for note in loaded.notes if not any(usual in note for usual in USUAL)]
    assert meaning(loaded) == WANTED or said


@pytest.mark.parametrize("case", FRAMES)
def test_frames(case):
    check(*FRAMES[case])


@pytest.mark.parametrize("case", FRAMES)
def test_parquet(case, tmp_path):
    paths = []
    for name, frame in zip(("e", "n"), FRAMES[case], strict=True):
        paths.append(tmp_path / f"{name}.parquet")
        frame.to_parquet(paths[-1])
    check(*paths)


@pytest.mark.parametrize("case", TEXTS)
def test_text(case, tmp_path):
    for name, frame in (("e", EDGES), ("n", TABLE)):
        (tmp_path / f"{name}.csv").write_bytes(TEXTS[case](frame))
    check(tmp_path / "e.csv", tmp_path / "n.csv")


def test_arrow_in_chunks_and_dictionaries():
    parts = [pa.Table.from_pandas(EDGES[low : low + 50], preserve_index=False) for low in (0, 50, 100)]
    nodes = pa.Table.from_pandas(TABLE.astype({"id": "category", "team": "category"}))
    assert meaning(read_graph(pa.concat_tables(parts), nodes, structural=[])) == WANTED
