"""Damage: to the bytes of any file, and to the meaning of our own files, their digests made right again."""

from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

TOKENS = [
    b",",
    b'"',
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"9" * 40,
]
TOKENS += [b"\xed\xa0\x80", b"#", b"%%MatrixMarket", b"\t", b";", b" ", b"0x1", b"''", b"id", b"weight"]
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    10**6,
    10**12,
    10**30,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    {"a": 1},
    [None],
]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The bytes with one to three wounds."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data) + 1)
        length = chance.choice([1, 1, 2, 8, 64, 1024])
        kind = chance.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at:at] = chance.choice(TOKENS) * chance.choice([1, 1, 3, 100])
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at : at + length] = chance.randbytes(length)
        elif kind == 4:
            del data[at:]
        else:
            data[at:at] = data[at : at + length]
    return bytes(data)


def inputs(edges: bytes, nodes: bytes) -> dict[str, bytes]:
    """The same small graph in every format that is read: name -> content."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    def packed(write: Any) -> bytes:
        out = io.BytesIO()
        write(out)
        return out.getvalue()

    table = pyarrow.csv.read_csv(io.BytesIO(edges))
    return {
        "edges.csv": edges,
        "edges.tsv": edges.replace(b",", b"\t"),
        "edges.csv.gz": gzip.compress(edges),
        "edges.parquet": packed(lambda out: pq.write_table(table, out)),
        "nodes.csv": nodes,
        "nodes.parquet": packed(
            lambda out: pq.write_table(pa.table(pyarrow.csv.read_csv(io.BytesIO(nodes))), out)
        ),
    }


def inside_archive(content: bytes, chance: random.Random) -> bytes:
    """What an archive holds is damaged, its checksums are right."""
    return gzip.compress(damaged(gzip.decompress(content), chance))


def odd(value: Any, chance: random.Random) -> Any:
    """The value with one place of it replaced, removed or buried."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        name = chance.choice(sorted(value))
        if chance.random() < 0.2:
            return {key: kept for key, kept in value.items() if key != name}
        return value | {name: odd(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.6:
        at = chance.randrange(len(value))
        return [*value[:at], odd(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD)


def buried(text: str, chance: random.Random) -> str:
    """One number of a JSON text nested a hundred thousand deep, or made of five thousand digits."""
    at = text.find("1", chance.randrange(len(text)))
    deep = chance.choice(["[" * 100_000 + "]" * 100_000, "9" * 5000, "1e999", "NaN"])
    return text[: max(at, 1)] + deep + text[max(at, 1) + 1 :]


def own_json(path: Path, chance: random.Random) -> None:
    """Another meaning for one of our JSON files (or one line of it); a schema's digest is made right."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    at = chance.randrange(len(lines))
    value = odd(json.loads(lines[at]), chance)
    if isinstance(value, dict) and "sha256" in value and "features" in value:
        from nodejepa.files import json_digest

        kept = {k: v for k, v in value.items() if k not in ("format", "version", "sha256")}
        value = value | {"sha256": json_digest(kept)}
    text = json.dumps(value)
    lines[at] = buried(text, chance) if chance.random() < 0.15 else text
    path.write_text("\n".join(lines) + "\n")


def own_tensors(path: Path, chance: random.Random) -> None:
    """Other facts, shapes, types or names in a model or checkpoint, under a digest that is right."""
    import torch

    from nodejepa.training.run import load_tensors, save_tensors

    tensors, facts = load_tensors(path)
    if chance.random() < 0.6:
        facts = odd(facts, chance)
    else:
        name = chance.choice(sorted(tensors))
        tensor = tensors.pop(name)
        kind = chance.randrange(5)
        if kind == 0:
            tensors[name] = tensor.to(chance.choice([torch.float64, torch.int64, torch.float16, torch.bool]))
        elif kind == 1:
            tensors[name] = torch.zeros(3, 5)
        elif kind == 2:
            tensors[name + ".x"] = tensor
        elif kind == 3:
            tensors[name] = torch.full_like(tensor, float("nan"))
    try:
        save_tensors(path, tensors, facts)
    except (TypeError, ValueError):  # what our own writer refuses
        save_tensors(path, tensors, {"facts": str(facts)[:50]})
