"""A user's large files: a million edges from CSV to embeddings, ten million edges read.

``python -m benchmarks.own_graph`` writes ``benchmarks/own_graph.json``. Each part runs in a process of its
own, so that its peak memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.load_graph import write_edges
from nodejepa.files import write_json

_EMBED = """
import json, sys
from nodejepa import embed_graph
from nodejepa.machine import peak_memory_mb
asked = {"method": "patchjepa", "settings": {"epochs": 3, "encoder.hidden": 64},
         "structural": ["degree", "pagerank", "clustering"]}
embed_graph(sys.argv[1], out=sys.argv[1] + ".parquet", **asked)
manifest = json.load(open(sys.argv[1] + ".json"))
print(json.dumps({"seconds": manifest["seconds"], "peak_memory_mb": round(peak_memory_mb()), "asked": asked}))
"""
_READ = """
import json, sys, time
from nodejepa.tables import read_graph
from nodejepa.machine import peak_memory_mb
started = time.perf_counter()
graph = read_graph(sys.argv[1], structural=False).graph
print(json.dumps({"seconds": round(time.perf_counter() - started, 2), "nodes": graph.num_nodes,
                  "peak_memory_mb": round(peak_memory_mb())}))
"""


def main() -> None:
    record = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, code, edges in (
            ("embed_1_million_edges", _EMBED, 1_000_000),
            ("read_10_million_edges", _READ, 10_000_000),
        ):
            path = Path(folder) / f"{edges}.csv"
            write_edges(path, edges=edges)
            done = subprocess.run([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, check=True)
            record[name] = json.loads(done.stdout)
            print(name, json.dumps(record[name]))
    write_json(Path(__file__).with_name("own_graph.json"), record)


if __name__ == "__main__":
    main()
