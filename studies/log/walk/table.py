"""The table of this folder's README, from its records: ``python studies/log/walk/table.py``."""

import json
from pathlib import Path

import numpy as np

# name in the records, in words, what it is compared with
SHOWN = [
    ("L256 pca", "256 latents, then principal components", "base"),
    ("rown.5", "rows of latents divided by the root of their length", "base"),
    ("rown1", "rows of latents of unit length", "base"),
    ("p1 T6", "weights rho, sum of abs(rho) 6", "base"),
    ("multi 1.5,3,6,12 L256", "mean kernel of four shrinkages (by sum of rho)", "base"),
    ("multi shr 4,6,8,10 p1 L256", "mean kernel of four fixed shrinkages, weights rho", "base"),
    ("h 1,1,1", "hops 0 to 2, no high part", "base"),
    ("h 1*7", "hops 0 to 6, no high part", "base"),
    ("h S4", "S^4 alone", "base"),
    ("h ppr.2", "walk, restart .2, nothing beside it", "base"),
    ("h ppr.1", "walk, restart .1, nothing beside it", "base"),
    ("h ppr.05", "walk, restart .05, nothing beside it", "base"),
    ("q .1 h.5R1", "walk .1 and (1-R)/2 (b0 - b1) beside it", "base"),
    ("q .1 h1R1 b0", "walk .1 and (1-R) b0 beside it", "base"),
    ("c .1 k½ c1", "walk .1, mean kept sqrt R", "base"),
    ("c .15 k½ c1", "walk .15, mean kept sqrt R", "base"),
    ("c .2 k½ c1", "walk .2, mean kept sqrt R", "base"),
    ("c .15 kR c1", "walk .15, mean kept R", "base"),
    ("c .15 kR c.5", "walk .15, mean kept R, b0 at half (A)", "base"),
    ("c .15 k0 c1", "walk .15, mean removed", "base"),
    ("c a.1+.2 kR c.5", "restart .1 + .2 (1 - R)", "base"),
    ("d T2", "A, sum of abs(rho) 2", "base2"),
    ("d T4.5", "A, sum of abs(rho) 4.5", "base2"),
    ("d T6", "A, sum of abs(rho) 6", "base2"),
    ("d p1T12", "A, weights rho, sum 12", "base2"),
    ("d L256", "A, 256 latents", "base2"),
    ("d rown.5", "A, rows divided by the root of their length", "base2"),
    ("d K8", "A, 8 hops instead of 12", "base2"),
    ("d K20", "A, 20 hops", "base2"),
    ("d c.5 const", "A, b0 at half everywhere", "base2"),
    ("d knn10", "A, plus the mean over the 10 nearest nodes", "base2"),
    ("d knn20", "A, plus the mean over the 20 nearest nodes", "base2"),
    ("e pry12", "A, eps by participation ratio 12", "base2"),
    ("e tr/64", "A, eps = tr/64", "base2"),
    ("e tr/256", "A, eps = tr/256", "base2"),
    ("f geo", "A, eps between the two rules", "base2"),
    ("f ctx1", "A, context two hops away instead of one", "base2"),
    ("n nat c.15", "**as built**: no equal loudness, sum 4, 10 hops, b0 at restart (1 - R)", "base2"),
    ("n nat c1", "the same, b0 at (1 - R)", "base2"),
]


def gains(scores, base, shots):
    """Mean difference in accuracy on every graph that both have."""
    return {
        graph: float(np.mean(np.subtract(record[shots], base[graph][shots])))
        for graph, record in scores.items()
        if graph in base
    }


def main():
    """Mean and worst graph of every variant, 20 and 5 labels per class."""
    found = {}
    for line in (Path(__file__).parent / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        place = found.setdefault((record["variant"], *record["seeds"]), {})
        place[record["graph"]] = record
    print("| variant | against | graphs | 20 labels: mean | worst | 5 labels: mean | worst |")
    print("|---|---|---|---|---|---|---|")
    for name, words, base in SHOWN:
        cells = []
        for shots in ("20", "5"):
            by_graph = gains(found[name, 100, 109], found[base, 100, 109], shots)
            worst = min(by_graph, key=by_graph.get)
            cells += [f"{np.mean(list(by_graph.values())):+.2f}", f"{by_graph[worst]:+.1f} {worst[:6]}"]
        against = "first recipe" if base == "base" else "A"
        print(f"| {words} | {against} | {len(by_graph)} | {' | '.join(cells)} |")
    print("\nOn seeds 120-129, against the first recipe: 20 and 5 labels, mean and worst graph")
    for (name, first, _), scores in found.items():
        if first == 120 and name != "base":
            pairs = (gains(scores, found["base", 120, 129], shots).values() for shots in ("20", "5"))
            print(name, *(f"{np.mean(list(values)):+.2f} {min(values):+.2f}" for values in pairs))


if __name__ == "__main__":
    main()
