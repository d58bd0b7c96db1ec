"""Row ``gcn_layer``: one GCN layer, forward and backward, against PyG's GCNConv on an edge_index."""

from __future__ import annotations

import torch

from benchmarks.timing import Row, best_of
from nodejepa.data import load_dataset
from nodejepa.nn.encoders import GCN
from nodejepa.nn.inputs import WholeGraph


def run() -> Row:
    from torch_geometric.nn import GCNConv

    graph = load_dataset("synthetic-arxiv").graph
    width = 256
    x = torch.randn(graph.num_nodes, width, generator=torch.Generator().manual_seed(0))
    wide = graph.with_features(x.numpy())
    source, target, _ = graph.edge_arrays()
    edge_index = torch.stack([torch.from_numpy(source), torch.from_numpy(target)])
    naive = GCNConv(width, width)
    ours = GCN(width, hidden=width, layers=1, norm="none")
    with torch.no_grad():
        ours.first.weight.copy_(naive.lin.weight.T)
        ours.biases[0].copy_(naive.bias)
    inputs = WholeGraph(wide)
    dense = inputs.features
    assert isinstance(dense, torch.Tensor)
    dense.requires_grad_()  # a hidden layer: the gradient goes on to the layer below
    inputs.propagates_first = lambda _: False  # type: ignore[method-assign]
    upstream = torch.randn(graph.num_nodes, width, generator=torch.Generator().manual_seed(1))

    def forward_backward(layer, *arguments):
        out = layer(*arguments)
        leaves = [dense, *layer.parameters()]
        return out, torch.autograd.grad((out * upstream).sum(), leaves)

    mine, my_gradients = forward_backward(ours, inputs)
    theirs, their_gradients = forward_backward(naive, dense, edge_index)
    difference = (mine - theirs).abs().max().item()
    assert difference < 1e-4, difference
    gradient_difference = (my_gradients[0] - their_gradients[0]).abs().max().item()
    assert gradient_difference < 1e-4, gradient_difference
    ours_s = best_of(lambda: forward_backward(ours, inputs), 5)
    naive_s = best_of(lambda: forward_backward(naive, dense, edge_index), 2)
    note = (
        f"forward + backward, 256 -> 256, synthetic-arxiv ({graph.num_nodes:,} nodes, "
        f"{graph.num_edges:,} edges), {torch.get_num_threads()} threads; largest difference {difference:.1e}"
    )
    return Row("gcn_layer", ours_s, naive_s, note)
