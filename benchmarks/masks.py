"""What capping the neighbourhood search does to NodeJEPA's masks: time, and the masks themselves.

``python -m benchmarks.masks`` writes ``benchmarks/masks.json``. The cap (10) is GraphSAGE's second
fan-out. Shares are means over masks or pairs of masks. Beside them, what one mask takes when neighbourhoods
are searched one by one, as the paper has it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from benchmarks.khop_mask import seed_by_seed
from benchmarks.timing import best_of
from nodejepa.data import load_dataset
from nodejepa.files import write_json
from nodejepa.graph import Graph
from nodejepa.masking.khop import khop_mask

CAP, MASKS = 10, 20
PHASES = ((0.2, 1), (0.5, 2))  # the curriculum's ends: share of the nodes, hops
Maker = Callable[[int], npt.NDArray[np.bool_]]


def ways(graph: Graph, ratio: float, hops: int) -> dict[str, Maker]:
    """Each way to make a mask, as a function of the seed."""
    return {
        "plain": lambda seed: khop_mask(graph, ratio, hops, np.random.default_rng(seed)),
        "capped": lambda seed: khop_mask(graph, ratio, hops, np.random.default_rng(seed), max_neighbours=CAP),
    }


def describe(graph: Graph, make: Maker) -> dict[str, float]:
    """Milliseconds of a mask, and what the masks are like."""
    masks = [make(seed) for seed in range(MASKS)]
    seconds = best_of(lambda: make(1), 20)
    common = [(a & b).sum() / a.sum() for a, b in itertools.combinations(masks[:10], 2)]
    inner, pieces = [], []
    for mask in masks[:5]:
        visible_neighbours = graph.adjacency @ (~mask).astype(np.float64)
        inner.append(np.mean(visible_neighbours[mask] == 0))
        _, label = connected_components(graph.adjacency[mask][:, mask], directed=False)
        pieces.append(np.bincount(label).max() / mask.sum())
    return {
        "milliseconds": round(1000 * seconds, 3),
        "masked": int(masks[0].sum()),
        "shared by two masks": round(float(np.mean(common)), 4),
        "never masked": round(float(np.mean(~np.any(masks, axis=0))), 4),
        "masked without a visible neighbour": round(float(np.mean(inner)), 4),
        "in the largest piece": round(float(np.mean(pieces)), 4),
    }


def main() -> None:
    record: dict[str, object] = {"cap": CAP, "masks": MASKS}
    for name in ("photo", "computers", "synthetic-arxiv"):
        graph = load_dataset(name).graph
        for ratio, hops in PHASES:
            found = {way: describe(graph, make) for way, make in ways(graph, ratio, hops).items()}
            seconds, _, neighbourhoods = seed_by_seed(graph, ratio, hops, repeats=1)
            found["seed by seed"] = {
                "milliseconds": round(1000 * seconds, 3),
                "neighbourhoods": neighbourhoods,
            }
            for numbers in found.values():
                numbers["time against plain"] = round(
                    numbers["milliseconds"] / found["plain"]["milliseconds"], 3
                )
            record[f"{name}, {ratio:.0%} at {hops} hop{'s' if hops > 1 else ''}"] = found
    write_json(Path(__file__).with_name("masks.json"), record)
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
