"""What a step on joined parts sees, without labels or training: ``python .../steps.py GRAPH ...``.

Of every partition, a quarter of the parts a step: the share of its nodes' edges that stay among them,
and how far the means of S^2 X of a step are from those of the graph, squared and summed over columns, in
multiples of what as many nodes drawn at random would give.
"""

import json
import sys
from pathlib import Path

import numpy as np

from nodejepa.data import load_dataset
from nodejepa.methods import make_method
from nodejepa.nn.sparse import to_dense
from nodejepa.structure.partition import partition, random_parts

DRAWS = 200


def main():
    """A line of ``steps.jsonl`` for every graph and partition."""
    for name in sys.argv[1:]:
        graph = load_dataset(name).graph
        z = make_method("sgc").fit(graph).transform(graph)
        z = np.asarray(z if isinstance(z, np.ndarray) else to_dense(z), dtype=np.float32)
        z -= z.mean(axis=0, dtype=np.float64).astype(np.float32)
        by_chance = 3 / graph.num_nodes * float(np.square(z, dtype=np.float64).sum()) / graph.num_nodes
        rows = graph.adjacency.tocoo()
        for kind, parts in (("random", 16), *(("metis", n) for n in (16, 64, 128, 256, 512))):
            found = (partition if kind == "metis" else random_parts)(graph, parts)
            sums = np.zeros((parts, z.shape[1]))
            np.add.at(sums, found, z)
            sizes, rng = np.bincount(found, minlength=parts), np.random.default_rng(0)
            apart, kept = [], []
            for _ in range(DRAWS):
                chosen = rng.permutation(parts)[: parts // 4]
                inside = np.zeros(parts, dtype=bool)
                inside[chosen] = True
                begun = inside[found[rows.row]]
                kept.append(np.mean(inside[found[rows.col]][begun]))
                apart.append(np.square(sums[chosen].sum(axis=0) / sizes[chosen].sum()).sum() / by_chance)
            record = {"graph": name, "partition": kind, "parts": parts, "parts_per_step": parts // 4}
            record |= {
                "edges_kept": round(float(np.mean(kept)), 4),
                "means_apart": round(float(np.mean(apart)), 2),
            }
            with (Path(__file__).parent / "steps.jsonl").open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(record, flush=True)


if __name__ == "__main__":
    main()
