"""How many columns hashed text wants: ``OMP_NUM_THREADS=1 python studies/log/text-width/measure.py FOLDER``.

FOLDER holds ``practice/`` and ``development/``. Debian's packages have a column of free text. The development
graphs have none but bags of words: each node's words are written out as one, by the numbers of their columns.
LinearJEPA's embeddings are scored by the linear probe at 20 labels per class; one record per graph, width and
draw of labels goes to ``records.jsonl``. ``half`` is the old rule: every second column stays empty.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
import torch

from nodejepa import LinearJEPA, linear_probe, read_graph
from nodejepa.data.splits import make_split
from nodejepa.tables import columns as encode_columns

WORDS = ("citeseer", "acm", "actor", "dblp", "pubmed", "blogcatalog", "facebook_pagepage")
WIDTHS = ("half 128", 128, 256, 512, 1024)
DRAWS = (0, 1)
MOST_CLASSES = 20  # of Debian's 58, the largest
RECORDS = Path(__file__).with_name("records.jsonl")
RULE = encode_columns._token_hash


def words(path):
    """Edges, nodes with a column of text, and labels of a development graph."""
    with np.load(path, allow_pickle=False) as file:
        x = sp.csr_array(file["x"]) if "x" in file else None
        if x is None:
            x = sp.csr_array((file["x_data"], file["x_indices"], file["x_indptr"]), shape=file["x_shape"])
        edges, labels = file["edge_index"], np.asarray(file["y"], dtype=np.int64)
    texts = [" ".join(f"w{j}" for j in row) for row in np.split(x.indices, x.indptr[1:-1])]
    nodes = pa.table({"id": np.arange(len(labels)), "text": texts, "label": labels.astype(str)})
    return pa.table({"source": edges[0], "target": edges[1]}), nodes, "label"


def graphs(folder):
    """Name, edges, nodes and the label column of every graph."""
    for name in WORDS:
        yield name, *words(folder / "development" / f"{name}.npz")
    practice = folder / "practice"
    yield "debian", practice / "debian_edges.csv.gz", practice / "debian_nodes.csv.gz", "section"


def kept(labels):
    """Of many classes the labels of the largest only; the others are unknown."""
    counts = np.bincount(labels[labels >= 0])
    few = np.argsort(-counts)[:MOST_CLASSES]
    return np.where(np.isin(labels, few[counts[few] >= 50]), labels, -1)


def main(folder):
    """Write the records that are not there yet."""
    torch.set_num_threads(1)
    done = {tuple(json.loads(line)[k] for k in ("graph", "width")) for line in lines()}
    for name, edges, nodes, label in graphs(folder):
        for width in WIDTHS:
            if (name, width) in done:
                continue
            half = isinstance(width, str)
            encode_columns._token_hash = (lambda token: RULE(token) | 2 if token else 0) if half else RULE
            columns = 128 if half else width
            loaded = read_graph(edges, nodes, labels=label, text="hash", text_columns=columns)
            begun = time.perf_counter()
            z = LinearJEPA().fit_transform(loaded.graph)
            seconds = time.perf_counter() - begun
            labels = kept(loaded.labels)
            for draw in DRAWS:
                split = make_split("20-30", labels, draw)
                score = linear_probe(z, labels, [split]).test_accuracy_mean
                record = {"graph": name, "width": width, "draw": draw, "test": round(score, 2)}
                record |= {"features": loaded.graph.num_features, "seconds": round(seconds, 2)}
                with RECORDS.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(record, flush=True)


def lines():
    """Records that are there."""
    return RECORDS.read_text().splitlines() if RECORDS.exists() else []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
