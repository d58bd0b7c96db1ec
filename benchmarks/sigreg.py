"""Row ``sigreg``: SIGReg forward and backward (256 slices x 17 knots) against one encoder forward pass.

Here "naive" is the encoder's forward pass: a ratio above 1 says that SIGReg costs less than that. What the
same statistic costs when written with 34 trigonometric passes stands in the note.
"""

from __future__ import annotations

import torch

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import WholeGraph
from nodejepa.objectives.sigreg import sigreg


def naive_sigreg(z: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    directions = torch.randn(z.shape[1], 256, generator=generator)
    u = z @ (directions / directions.norm(dim=0))
    t = torch.linspace(0, 3, 17)
    phi, weight = torch.exp(-t.square() / 2), torch.full((17,), 6 / 16)
    weight[0] = weight[-1] = 3 / 16
    total = torch.zeros(())
    for k in range(17):
        real, imaginary = torch.cos(t[k] * u).mean(dim=0) - phi[k], torch.sin(t[k] * u).mean(dim=0)
        total = total + weight[k] * phi[k] * (real.square() + imaginary.square()).mean()
    return total


def run() -> Row:
    graph = load_dataset("synthetic-arxiv").graph
    inputs = WholeGraph(graph)
    encoder = GCN(graph.num_features)
    z = torch.randn(graph.num_nodes, 256, generator=torch.Generator().manual_seed(0)).requires_grad_()

    def both(loss) -> None:
        torch.autograd.grad(loss, z)

    def ours(nodes: int | None) -> float:
        return best_of(lambda: both(sigreg(z, torch.Generator().manual_seed(0), max_nodes=nodes)), 5)

    with torch.no_grad():
        encoder_s = best_of(lambda: encoder(inputs), 3)
    ours_s, whole_s = ours(4096), ours(None)
    naive_s = best_of(lambda: both(naive_sigreg(z, torch.Generator().manual_seed(0))), 1)
    note = (
        f"naive_s is one forward pass of the 3 x 256 encoder on synthetic-arxiv; ours is SIGReg on its "
        f"random subset of 4,096 nodes, forward + backward. All {graph.num_nodes:,} nodes: {whole_s:.2f} s,"
        f" written naively {naive_s:.2f} s"
    )
    return Row("sigreg", ours_s, encoder_s, note)
