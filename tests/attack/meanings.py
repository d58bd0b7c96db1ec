"""Damage to what a table or an object means: types, columns, values and encodings, through the Python API.

    OMP_NUM_THREADS=1 python -m tests.attack.meanings [--number 300] [--seed 0] [--out FILE]

One process; every case reads a mutated graph, embeds it and applies an undamaged model to it, or applies a
damaged model to an undamaged graph. Good ends are ``accepted`` and ``refused`` (a NodeJEPAError). Anything
else is a bug of ours: another exception, a hang, or embeddings that are not finite.
"""

from __future__ import annotations

import argparse
import collections
import decimal
import gzip
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from tests.attack import mutations

import nodejepa
from nodejepa import (
    LinearJEPA,
    NodeJEPAError,
    apply_run,
    compare,
    embed_graph,
    load_graph,
    read_embeddings,
)
from nodejepa.diagnostics import diagnose

CPU_SECONDS, WALL_SECONDS = 60, 900  # a case that takes longer hangs; other processes may take the machine
GROWTH_MB = 2000  # of the process, over all cases
NODES = 60
RECORD = Path(__file__).with_name("meanings.json")
CELLS: list[Any] = [None, float("nan"), float("inf"), 1e30, 1e308, -1e308, 5e-324, 2**53 + 1, 2**63, -(2**63)]
CELLS += [
    "",
    " ",
    "x" * 100_000,
    "9" * 400,
    "\x00",
    "\u202e",
    "a,b",
    '"',
    "\n",
    "\ud800",
    "nan",
    "None",
    "-0",
]
CELLS += [True, b"\xff\xfe", [1, 2], [], {}, {"a": 1}, (1, 2), 1 + 2j, decimal.Decimal("NaN"), object]
NAMES = ["", " ", "id", "source", "weight", "label", "x\x00y", "\n", "__index_level_0__", 0, None, ("a", "b")]
NAMES += ["Unnamed: 0", "é" * 300]
KINDS: list[Callable[[pd.Series], Any]] = [
    lambda s: s.astype(str),
    lambda s: s.astype("category"),
    lambda s: s.astype(str).map(lambda v: v.encode()),
    lambda s: pd.to_datetime(pd.Series(range(len(s))), unit="D"),
    lambda s: pd.Series([pd.Timestamp("2020-01-01", tz="Asia/Tokyo")] * len(s)),
    lambda s: pd.to_timedelta(pd.Series(range(len(s))), unit="s"),
    lambda s: pd.Series([[i, i + 1.0] for i in range(len(s))]),
    lambda s: pd.Series([[1.0] * (i % 3) for i in range(len(s))]),
    lambda s: pd.Series([{"a": i} for i in range(len(s))]),
    lambda s: pd.Series([decimal.Decimal(i) / 7 for i in range(len(s))]),
    lambda s: pd.Series([None] * len(s)),
    lambda s: pd.Series([i % 2 == 0 for i in range(len(s))]),
    lambda s: pd.Series([i if i % 2 else str(i) for i in range(len(s))], dtype=object),
    lambda s: pd.Series(np.arange(len(s)), dtype="Int64").where(np.arange(len(s)) % 3 > 0),
    lambda s: pd.Series(np.arange(len(s)), dtype="float16"),
    lambda s: pd.Series(np.arange(len(s)) + 2**63, dtype="uint64"),
    lambda s: pd.Series(np.arange(len(s)) + 1j),
    lambda s: pd.Series(pd.period_range("2000", periods=len(s), freq="D")),
    lambda s: pd.Series(pd.arrays.SparseArray(np.arange(len(s)) % 2)),
    lambda s: pd.Series(pd.interval_range(0, len(s))),
]
Case = Callable[[Path, random.Random], tuple[Any, Any]]


class Hang(BaseException):
    """A case took longer than anybody should wait."""


def edge_frame() -> pd.DataFrame:
    """Sixty nodes in two groups."""
    chance = random.Random(3)
    pairs = [(chance.randrange(NODES), chance.randrange(NODES)) for _ in range(400)]
    pairs = [(a, b) for a, b in pairs if a != b and (a % 2 == b % 2 or chance.random() < 0.1)]
    frame = pd.DataFrame(pairs, columns=["source", "target"]).drop_duplicates(ignore_index=True)
    return frame.assign(weight=np.linspace(0.5, 2, len(frame)))


def node_frame() -> pd.DataFrame:
    """A column of every kind that a table of people may have."""
    chance = random.Random(4)
    return pd.DataFrame(
        {
            "id": range(NODES),
            "age": [30 + 5 * (i % 2) + chance.gauss(0, 1) for i in range(NODES)],
            "city": [chance.choice(["Rome", "Oslo", "Łódź"]) for _ in range(NODES)],
            "active": [i % 3 == 0 for i in range(NODES)],
            "text": [f"node {i} likes {chance.choice(['tea', 'maps'])}" for i in range(NODES)],
            "label": [f"k{i % 2}" for i in range(NODES)],
        }
    )


def wounded(frame: pd.DataFrame, chance: random.Random) -> pd.DataFrame:
    """The table with one to three things changed about its columns, rows, types or values."""
    frame = frame.copy()
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        if frame.shape[1] == 0:
            break
        at, row = chance.randrange(frame.shape[1]), chance.randrange(max(len(frame), 1))
        kind = chance.randrange(10)
        if kind == 0:  # columns swapped
            order = list(range(frame.shape[1]))
            chance.shuffle(order)
            frame = frame.iloc[:, order]
        elif kind == 1:  # rows truncated
            frame = frame.iloc[: chance.choice([0, 1, 2, row])].reset_index(drop=True)
        elif kind == 2:  # rows repeated or shuffled, the index with them
            frame = frame.sample(
                frac=chance.choice([1.0, 2.0]), replace=True, random_state=chance.randrange(99)
            )
        elif kind == 3:  # a column left out
            frame = frame.drop(columns=frame.columns[at])
        elif kind == 4:  # a column renamed, perhaps to the name of another
            names = list(frame.columns)
            names[at] = chance.choice([*NAMES, *names])
            frame.columns = pd.Index(names, dtype=object)
        elif kind in (5, 6):  # another type
            values = list(chance.choice(KINDS)(frame.iloc[:, at].reset_index(drop=True)))
            if chance.random() < 0.5 and len(frame):  # with the type itself, not only with its values
                values = pd.Series(chance.choice(KINDS)(frame.iloc[:, at].reset_index(drop=True)))
            frame = _with_column(frame.reset_index(drop=True), at, values)
        elif len(frame):  # single values
            values = frame.iloc[:, at].astype(object).tolist()
            for place in {row, chance.randrange(len(frame))} if kind == 7 else {row}:
                values[place] = chance.choice(CELLS)
            column: Any = pd.Series(values, dtype=object)
            if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
                column = column.astype(float)
            frame = _with_column(frame.reset_index(drop=True), at, column)
    return frame


def _with_column(frame: pd.DataFrame, at: int, values: Any) -> pd.DataFrame:
    names = list(frame.columns)
    columns = [frame.iloc[:, i] for i in range(len(names))]
    columns[at] = pd.Series(values)
    changed = pd.concat([c.reset_index(drop=True) for c in columns], axis=1)
    changed.columns = pd.Index(names, dtype=object)
    return changed


def written(frame: pd.DataFrame, path: Path, chance: random.Random) -> Path | pd.DataFrame:
    """As a file of some format and encoding; the frame itself where that is chosen, or cannot be written."""
    kind = chance.choice(["frame", "csv", "csv", "parquet", "parquet", "odd csv"])
    try:
        if kind == "parquet":
            path = path.with_suffix(".parquet")
            frame.to_parquet(path, index=chance.choice([None, True]))
            return path
        if kind == "frame":
            return frame
        text = frame.to_csv(index=chance.random() < 0.3, sep=chance.choice([",", ",", "\t", ";", "|"]))
        if kind == "odd csv":
            lines = text.splitlines()
            at = chance.randrange(len(lines))
            lines[at] = chance.choice(
                [lines[at] + ",1", lines[at][:-3], '"' + lines[at], "", "# " + lines[at]]
            )
            text = chance.choice(["\n", "\r\n", "\r", "\n\n"]).join(lines)
        codecs = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp037", "utf-7", "shift-jis"]
        content = text.encode(chance.choice(codecs), errors="replace")
        content = gzip.compress(content) if chance.random() < 0.2 else content
    except Exception:
        return frame  # pandas refuses to write it
    path.write_bytes(content)
    return path


def tables(folder: Path, chance: random.Random) -> tuple[Any, Any]:
    """Edges and nodes as tables, one of them or both wounded."""
    edges, nodes = edge_frame(), node_frame()
    which = chance.choice(["edges", "nodes", "nodes", "both"])
    edges = wounded(edges, chance) if which != "nodes" else edges
    nodes = wounded(nodes, chance) if which != "edges" else nodes
    given = written(edges, folder / "edges.csv", chance)
    return given, None if chance.random() < 0.1 else written(nodes, folder / "nodes.csv", chance)


def bytes_flipped(folder: Path, chance: random.Random) -> tuple[Any, Any]:
    """Files of every format with bytes changed, also inside archives."""
    edges, nodes = edge_frame(), node_frame()
    named = "source,target\n" + "".join(f"u{a},u{b}\n" for a, b in edges.iloc[:, :2].itertuples(index=False))
    files = mutations.inputs(
        named.encode(), nodes.assign(id=[f"u{i}" for i in nodes["id"]]).to_csv(index=False).encode()
    )
    name = chance.choice(sorted(files))
    archived = name.endswith(".gz") and chance.random() < 0.5
    path, other = folder / f"bad-{name}", folder / "edges.csv"
    path.write_bytes((mutations.inside_archive if archived else mutations.damaged)(files[name], chance))
    other.write_text(named)
    return (path, None) if "edges" in name else (other, path)


def objects(_: Path, chance: random.Random) -> tuple[Any, Any]:
    """Objects of SciPy, NetworkX, PyG and pandas that are not what they should be."""
    from torch_geometric.data import Data

    pairs = edge_frame()[["source", "target"]].to_numpy().T
    weights = np.ones(pairs.shape[1])
    weights[chance.randrange(len(weights))] = chance.choice([np.nan, np.inf, -1.0, 0.0, 1e300, 1e-320])
    kind = chance.randrange(4)
    if kind == 0:
        shape = chance.choice([(NODES, NODES), (NODES, NODES + 1), (NODES + 5, NODES + 5)])
        matrix = sp.coo_matrix((weights, pairs), shape=shape)
        matrix = matrix.astype(chance.choice(["f8", "f4", "c16", "?", "i1"]))
        return chance.choice([matrix, matrix.tocsr(), matrix.tocsc(), matrix.todia(), matrix.todense()]), None
    if kind == 1:
        made: Any = chance.choice([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])()
        odd = chance.choice([None, "x", (1, 2), 2.5, frozenset([1]), "7", b"b"])
        made.add_edges_from(
            [(int(a), int(b), {"weight": w}) for (a, b), w in zip(pairs.T, weights, strict=True)]
        )
        if odd is not None:
            made.add_edge(odd, 0, **{chance.choice(["weight", "kind"]): chance.choice(CELLS)})
        for node in made:
            made.nodes[node]["x"] = [1.0, float(hash(node) % 7)]
        made.nodes[0]["x"] = chance.choice([*CELLS, [1.0], [1.0, 2.0]])
        return made, chance.choice([None, "x", ["x"]])
    data = Data(
        x=torch.randn(NODES, 4, generator=torch.Generator().manual_seed(0)), edge_index=torch.tensor(pairs)
    )
    changes: list[tuple[str, Any]] = [
        ("x", data.x.half()),
        ("x", data.x.long()),
        ("x", data.x.to_sparse()),
        ("x", data.x[:-1]),
        ("x", data.x[:, :0]),
        ("x", data.x[..., None]),
        ("x", torch.full_like(data.x, float("nan"))),
        ("x", data.x.to(torch.complex64)),
        ("x", data.x * 1e30),
        ("x", None),
        ("edge_index", data.edge_index.float()),
        ("edge_index", data.edge_index.t()),
        ("edge_index", data.edge_index + 10**9),
        ("edge_index", data.edge_index - 1),
        ("edge_index", data.edge_index[:, :0]),
        ("edge_index", None),
        ("edge_attr", torch.tensor(weights)),
        ("edge_attr", torch.tensor(weights)[:, None]),
        ("edge_attr", torch.ones(pairs.shape[1], 3)),
        ("edge_attr", torch.tensor(weights[:-1])),
        ("edge_weight", torch.tensor(weights)),
        ("edge_weight", torch.ones(3)),
        ("edge_weight", torch.ones(pairs.shape[1], dtype=torch.bool)),
        ("num_nodes", 10),
        ("num_nodes", 10**12),
        ("num_nodes", NODES + 3),
        ("num_nodes", -1),
        ("y", torch.ones(3)),
    ]
    name, value = chance.choice(changes)
    setattr(data, name, value)
    return data, None


CASES: dict[str, Case] = {"tables": tables, "bytes": bytes_flipped, "objects": objects}


def checked(z: Any) -> None:
    """Refuse embeddings that are not finite, which nobody was told of."""
    dense = z.toarray() if sp.issparse(z) else np.asarray(z)
    if not np.isfinite(dense).all():
        raise FloatingPointError("embeddings are not finite")


def whole_way(folder: Path, model: Path, kind: str, chance: random.Random) -> list[Callable[[], None]]:
    """What is done with a mutated graph: embed it, with scores, and apply the undamaged model to it."""
    edges, nodes = CASES[kind](folder, chance)
    if kind == "objects":
        return [lambda: embed_object(edges, nodes, chance.random() < 0.1)]
    options: dict[str, Any] = {"use": chance.choice([None, "auto", "both", "structure"])}
    more: dict[str, Any] = {"report": chance.random() < 0.2}
    if nodes is not None:
        more |= chance.choice([{"text": "hash"}, {"text": "hash"}, {"drop": ["text"]}])
        more |= chance.choice([{}, {"labels": "label"}])
    out = folder / "z.parquet"
    return [
        lambda: checked(embed_graph(edges, nodes, out=out, **options, **more).embeddings),
        lambda: checked(apply_run(model, edges, nodes).embeddings),
    ]


def embed_object(given: Any, features: Any, compared: bool) -> None:
    """Embed an object of another library."""
    graph = load_graph(given) if features is None else nodejepa.from_networkx(given, features=features)
    checked(LinearJEPA().fit(graph).transform(graph))
    diagnose(LinearJEPA().fit_transform(graph))
    if compared:
        compare(graph, methods=["raw"])


def own_files(folder: Path, model: Path, _: str, chance: random.Random) -> list[Callable[[], None]]:
    """A damaged file of a run: apply it, resume it, read its embeddings."""
    here = folder / "own"
    shutil.copytree(model.parent, here)
    names = sorted(str(path.relative_to(here)) for path in here.rglob("*") if path.is_file())
    path = here / chance.choice(names)
    if path.suffix == ".parquet" or chance.random() < 0.35:
        path.write_bytes(mutations.damaged(path.read_bytes(), chance))
    else:
        (mutations.own_tensors if path.suffix == ".safetensors" else mutations.own_json)(path, chance)
    edges, nodes = edge_frame(), node_frame().drop(columns="label")
    run, options = here / "z.run", {"text": "hash", "resume": True, "report": False}
    return [
        lambda: checked(read_embeddings(here / "z.parquet").matrix),
        lambda: checked(apply_run(run, edges, nodes, out=here / "new.parquet", force=True).embeddings),
        lambda: checked(embed_graph(edges, nodes, out=here / "z.parquet", **options).embeddings),
    ]


def outcome(work: Callable[[], None]) -> str:
    """How it ends."""

    def hang(*_: object) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, hang)
    signal.signal(signal.SIGPROF, hang)
    signal.alarm(WALL_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()
    except NodeJEPAError:
        return "refused"
    except Hang:
        return "hang"
    except BaseException as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "nodejepa" in f.filename]
        at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "-"
        return f"bug: {type(error).__name__}: {str(error)[:200]} at {at}"
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "accepted"


def prepared(folder: Path, model: Path, chance: random.Random) -> tuple[str, list[Callable[[], None]]]:
    """A kind of damage and what is done with it; drawn again where pandas or NumPy refuse to do it."""
    while True:
        folder.mkdir()
        kind = chance.choice(["tables", "tables", "tables", "bytes", "objects", "own files"])
        try:
            way = own_files if kind == "own files" else whole_way
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return kind, way(folder, model, kind, chance)
        except (TypeError, ValueError, OverflowError, AttributeError, ArithmeticError):
            shutil.rmtree(folder)


def attack(number: int, seed: int, only: int | None = None) -> dict[str, Any]:
    """Counts by kind and outcome, and how much memory the process took."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as name:
        good = Path(name, "good")
        good.mkdir()
        embed_graph(
            edge_frame(),
            node_frame().drop(columns="label"),
            out=good / "z.parquet",
            text="hash",
            report=False,
        )
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for i in range(number) if only is None else [only]:
            chance = random.Random(f"{seed} {i}")
            folder = Path(name, str(i))
            kind, steps = prepared(folder, good / "z.run", chance)
            if only is not None:
                for step in steps:
                    step()
            for end in {outcome(step).replace(name, "FOLDER") for step in steps}:
                counts[kind][end] += 1
                if end not in ("accepted", "refused"):
                    print(f"case {i}, {kind}: {end}", flush=True)
            shutil.rmtree(folder)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    told = {"nodejepa": nodejepa.__version__, "seed": seed, "cases": number, "grown_mb": round(grown)}
    return told | {kind: dict(sorted(counts[kind].items())) for kind in sorted(counts)}


def main() -> int:
    """Attack, print, write the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="this one alone, with its traceback")
    parser.add_argument("--out", type=Path, default=RECORD)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    record = attack(asked.number, asked.seed, asked.case)
    print(json.dumps(record, indent=2))
    if asked.case is None:
        asked.out.write_text(json.dumps(record, indent=2) + "\n")
    ends = {end for counts in record.values() if isinstance(counts, dict) for end in counts}
    return int(bool(ends - {"accepted", "refused"}) or record["grown_mb"] > GROWTH_MB)


if __name__ == "__main__":
    sys.exit(main())
