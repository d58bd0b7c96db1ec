"""What people pick today beside LinearJEPA: node2vec (pecanpy), in one run, accuracy and seconds.

``python -m benchmarks.node2vec --python ENV/bin/python [graph ...]``: ENV is an environment of its own with
pecanpy (``pip install pecanpy``), which is no dependency of this package. A record a graph in node2vec.json;
graphs that are there are not measured again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nodejepa.data import Dataset, load_dataset
from nodejepa.evaluation import linear_probe
from nodejepa.files import write_json
from nodejepa.graph import Graph
from nodejepa.methods import make_method

GRAPHS = ("photo", "computers", "cs", "physics", "blogcatalog")
RESULTS = Path(__file__).with_name("node2vec.json")
SPLITS, SEEDS = ("20-30", "5-30"), range(42, 47)
# pecanpy's own defaults (10 walks of 80 steps, window 10, one epoch) at the width of ours
OTHERS = """
import json, sys, time
import numpy as np
from pecanpy import pecanpy
edges, out, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
started = time.perf_counter()
g = pecanpy.SparseOTF(p=1, q=1, workers=workers, verbose=False)
g.read_edg(edges, weighted=False, directed=False)
z = g.embed(dim=256, num_walks=10, walk_length=80, window_size=10, epochs=1)
seconds = time.perf_counter() - started
order = np.argsort([int(name) for name in g.nodes])
np.savez(out, nodes=np.array([int(name) for name in g.nodes])[order], z=z[order])
print(json.dumps({"seconds": seconds}))
"""


def main() -> int:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(prog="benchmarks.node2vec", description=__doc__)
    parser.add_argument("--python", required=True, help="of an environment that has pecanpy")
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    asked = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in asked.graphs:
        if name not in known:
            known[name] = measure(load_dataset(name), asked.python)
            write_json(RESULTS, known)
            print(name, json.dumps(known[name], indent=2), flush=True)
    return 0


def measure(dataset: Dataset, python: str) -> dict[str, Any]:
    """Both on one graph, one after the other, with the same threads and the same probe."""
    threads = torch.get_num_threads()
    found: dict[str, Any] = {"threads": threads, "seeds": [SEEDS[0], SEEDS[-1]]}
    for method in ("linear-jepa", "sgc", "raw"):
        started = time.perf_counter()
        z = make_method(method).fit(dataset.graph).transform(dataset.graph)
        found[method] = {"seconds": round(time.perf_counter() - started, 2)} | scores(z, dataset)
    z, seconds = node2vec(dataset.graph, python, threads)
    found["node2vec"] = {"seconds": round(seconds, 2)} | scores(z, dataset)
    return found


def node2vec(graph: Graph, python: str, workers: int) -> tuple[npt.NDArray[np.float32], float]:
    """Embeddings ``[N, 256]`` from the edges alone (none: zeros), and seconds for reading and training."""
    source, target, _ = graph.edge_arrays()
    once = source < target
    with tempfile.TemporaryDirectory() as folder:
        edges, out = Path(folder, "edges.tsv"), Path(folder, "z.npz")
        np.savetxt(edges, np.column_stack([source[once], target[once]]), fmt="%d", delimiter="\t")
        command = [python, "-c", OTHERS, str(edges), str(out), str(workers)]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        seconds = float(json.loads(said.splitlines()[-1])["seconds"])
        with np.load(out) as arrays:
            z = np.zeros((graph.num_nodes, 256), dtype=np.float32)
            z[arrays["nodes"]] = arrays["z"]
    return z, seconds


def scores(z: Any, dataset: Dataset) -> dict[str, str]:
    """Test accuracy under the fair probe, mean and standard deviation over seeds, by split."""
    told = {}
    for name in SPLITS:
        splits = [dataset.split(name, seed=seed) for seed in SEEDS]
        values = [score.test_accuracy for score in linear_probe(z, dataset.labels, splits).scores]
        told[name] = f"{fmean(values):.2f} ± {stdev(values):.2f}"
    return told


if __name__ == "__main__":
    raise SystemExit(main())
