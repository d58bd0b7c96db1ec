"""Figures of "how it works", drawn from real graphs: ``python -m tools.figures`` writes them.

Zachary's karate club, masked, cut and embedded by the functions of the package; the digits for a spectrum.
What a colour says, a shape, a pattern or a word says as well: the figures can be read in grey.
"""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import scipy.sparse.csgraph as csgraph
import torch

from nodejepa import LinearJEPA, from_networkx
from nodejepa.data import load_dataset
from nodejepa.masking.khop import khop_mask
from nodejepa.masking.patches import Patches
from nodejepa.methods.closed_form import Spectrum, second_moments
from nodejepa.nn.inputs import WholeGraph
from nodejepa.structure.partition import partition
from tools.svg import DARK, GREY, ORANGE, PALE, Canvas

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "figures"
WIDTH, HEIGHT, MARGIN = 420, 330, 30


class Club:
    """The graph, where its nodes are drawn and who went with whom when the club split."""

    def __init__(self) -> None:
        club = nx.karate_club_graph()
        plain = nx.Graph(list(club.edges))  # weights would only move the nodes
        self.graph = from_networkx(plain)
        self.places = scaled(np.array(list(nx.kamada_kawai_layout(plain).values())), WIDTH, HEIGHT)
        self.stayed = np.array([club.nodes[node]["club"] == "Mr. Hi" for node in plain])
        self.edges = np.argwhere(np.triu(self.graph.adjacency.toarray()))

    def panel(self, title: str) -> Canvas:
        """A canvas with the edges, and room for words below."""
        canvas = Canvas(WIDTH, HEIGHT + 60, title)
        for a, b in self.edges:
            canvas.line(*self.places[a], *self.places[b], colour=GREY)
        return canvas


def scaled(points: np.ndarray, width: int, height: int) -> np.ndarray:
    """Whole pixels inside of the margins: the last bits of a layout differ between machines."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.array([width, height]) - 2 * MARGIN
    return (MARGIN + (points - low) / (high - low) * size).round().astype(int)


def overview(club: Club) -> Canvas:
    """A graph, and its embeddings on a map."""
    canvas = Canvas(600, 370, "A graph goes in, a map of its embeddings comes out")
    z = LinearJEPA().fit(club.graph).transform(club.graph)
    u, s, v = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    plane = u[:, :2] * s[:2] * np.sign(v[:2, :1]).T  # a singular vector's sign is free
    for places, left in ((scaled(club.places, 285, 290), 0), (scaled(plane, 285, 290), 315)):
        places = places + np.array([left, 0])
        if not left:
            for a, b in club.edges:
                canvas.line(*places[a], *places[b], colour=GREY)
        for (x, y), stayed in zip(places, club.stayed, strict=True):
            (canvas.circle if stayed else canvas.square)(x, y, 9, fill=DARK if stayed else ORANGE)
    canvas.arrow(232, 306, 335, 306)
    canvas.text(140, 312, "a graph goes in", size=20)
    canvas.text(452, 312, "embeddings come out", size=20)
    canvas.text(300, 345, "circles, squares: how the club split; no method saw it", size=19)
    return canvas


def nodejepa_views(club: Club) -> dict[str, Canvas]:
    """The same mask as both encoders see it."""
    hidden = khop_mask(club.graph, 0.35, 1, np.random.default_rng(2))
    context = club.panel("What NodeJEPA's context encoder sees")
    target = club.panel("What NodeJEPA's target encoder sees")
    for (x, y), gone in zip(club.places, hidden, strict=True):
        if gone:
            context.circle(x, y, 11, fill="white", edge=ORANGE, dashed=True)
            context.text(x, y + 5, "?", size=15, colour=ORANGE)
            target.square(x, y, 10, fill=ORANGE)
        else:
            context.circle(x, y, 10, fill=DARK)
            target.circle(x, y, 10, fill=PALE, edge=GREY)
    context.words(
        HEIGHT, f"{hidden.sum()} of 34 nodes are hidden (?):", "1-hop neighbourhoods of random nodes"
    )
    target.words(HEIGHT, "nothing is hidden; squares: nodes whose", "embeddings are predicted")
    return {"nodejepa-context": context, "nodejepa-target": target}


def patches(club: Club) -> Canvas:
    """METIS parts with one hop around: one context, four targets. Nothing is hidden."""
    parts = partition(club.graph, 8)
    cut = Patches.from_partition(club.graph, parts)
    contexts, targets = cut.sample(np.random.default_rng(0), 1, 4)
    canvas = club.panel("Patches of PatchJEPA")
    seen = set(cut.expanded(int(contexts[0])).tolist())
    names = {int(p): str(i + 1) for i, p in enumerate(targets)}
    for node, (x, y) in enumerate(club.places):
        part = int(parts[node])
        if part in names:
            canvas.circle(x, y, 11, fill="white", edge=ORANGE)
            canvas.text(x, y + 5, names[part], size=15, colour=ORANGE)
        elif part == contexts[0]:
            canvas.circle(x, y, 10, fill=DARK)
        else:
            canvas.circle(x, y, 7, fill=PALE, edge=GREY)
        if node in seen and part != contexts[0]:
            canvas.circle(x, y, 15, fill="none", edge=DARK)
    canvas.words(
        HEIGHT,
        "both encoders see all 34 nodes; filled and ringed:",
        "context patch and its 1-hop margin; 1 to 4: targets",
    )
    return canvas


def hops(club: Club) -> Canvas:
    """How far every node is from one of them."""
    distances = csgraph.shortest_path(club.graph.adjacency, unweighted=True).astype(int)
    away = distances[distances.max(axis=1).argmax()]  # from the node with the longest way
    canvas = club.panel("Hops of LinearJEPA")
    shades = [DARK, "#4a7fb0", "#9dbfdc", "#d6e4ef", "white", "white"]
    for (x, y), hop in zip(club.places, away, strict=True):
        canvas.circle(x, y, 12, fill=shades[hop], edge=DARK)
        canvas.text(x, y + 5, str(hop), size=15, colour="white" if hop < 2 else "#111111")
    canvas.words(
        HEIGHT,
        "hops from the node marked 0: each hop averages",
        "over neighbours; far nodes have less weight",
    )
    return canvas


def predicted() -> Canvas:
    """Two directions of the digits' features, one that neighbours predict and one that they do not."""
    graph = load_dataset("digits").graph
    moments = second_moments(WholeGraph(graph, torch.device("cpu")), basis=64)
    spectrum = Spectrum(moments.centred())
    v, rho = spectrum.solve(2**-10 * spectrum.trace, 64)
    latents = np.asarray(graph.features, dtype=np.float64) @ v.numpy()
    neighbours = graph.adjacency.astype(np.float64)
    means = (neighbours @ latents) / neighbours.sum(axis=1).reshape(-1, 1)
    canvas = Canvas(730, 300, "Directions that neighbours predict have a large weight")
    for left, j in ((0, 0), (225, 50)):
        points = np.stack([means[::12, j], -latents[::12, j]], axis=1)
        for x, y in scaled(points, 230, 230):
            canvas.circle(left + int(x), int(y), 3, fill=DARK, edge="none")
        canvas.line(left + MARGIN - 8, MARGIN, left + MARGIN - 8, 208)
        canvas.line(left + MARGIN - 8, 208, left + 200, 208)
        canvas.text(left + 115, 228, "mean latent of its neighbours", size=14)
        canvas.text(left + 115, 18, "a node's latent", size=14)
        words = "large weight" if j == 0 else "small weight"
        canvas.text(left + 115, 258, f"direction {j + 1}, rho = {float(rho[j]):.2f}", size=16)
        canvas.text(left + 115, 280, words, size=16)
    for j, value in enumerate(rho.abs().tolist()):
        height = round(170 * value)
        canvas.line(
            490 + 3 * j, 208, 490 + 3 * j, 208 - height, colour=ORANGE if j in (0, 50) else DARK, width=2
        )
    canvas.text(590, 18, "|rho| of every direction", size=14)
    canvas.text(590, 228, "largest first", size=14)
    canvas.text(590, 258, "orange: the two on the left", size=16)
    canvas.text(590, 280, "weight of a latent: root of |rho|", size=16)
    return canvas


def flow(title: str, left: list[str], right: list[str], below: str) -> Canvas:
    """A prediction and its target, made step by step, meet in a loss; networks are filled."""
    canvas = Canvas(WIDTH, HEIGHT + 60, title)
    for x, names, end in ((105, left, 180), (315, right, 240)):
        gap = 240 // (len(names) - 1)
        for i, name in enumerate(names):
            canvas.box(x, 32 + gap * i, 196, name, filled="encoder" in name or "predictor" in name)
            if i:
                canvas.arrow(x, 52 + gap * (i - 1), x, 10 + gap * i)
        canvas.arrow(x, 292, end, 328)
    canvas.box(210, 350, 400, below)
    return canvas


def figures() -> dict[str, str]:
    """Every figure by name, as SVG."""
    club = Club()
    drawn = {
        "overview": overview(club),
        **nodejepa_views(club),
        "nodejepa-flow": flow(
            "NodeJEPA step by step",
            ["visible nodes", "context encoder", "predictor + descriptors", "predictions"],
            ["the whole graph", "target encoder (EMA)", "no gradient", "targets"],
            "loss: cosine distance, VICReg, SIGReg",
        ),
        "patchjepa-patches": patches(club),
        "patchjepa-flow": flow(
            "PatchJEPA step by step",
            [
                "the whole graph",
                "context encoder",
                "context patch: mean",
                "predictor + descriptors",
                "predictions",
            ],
            [
                "the whole graph",
                "target encoder (EMA)",
                "no gradient",
                "target patches: means",
                "targets",
            ],
            "loss: cosine, hyperbola, SIGReg on the context",
        ),
        "linearjepa-hops": hops(club),
        "linearjepa-predicted": predicted(),
        "linearjepa-flow": flow(
            "LinearJEPA step by step",
            ["mean of neighbours", "linear encoder", "linear predictor", "prediction"],
            ["the node itself", "the same encoder", "uncorrelated columns", "its embedding"],
            "solved exactly: no seed, no epochs",
        ),
    }
    return {name: canvas.svg() for name, canvas in drawn.items()}


if __name__ == "__main__":
    for name, svg in figures().items():
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
