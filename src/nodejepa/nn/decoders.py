"""GraphMAE's decoder: from embeddings of the nodes that were seen to features of those that were not."""

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nodejepa.nn.attention import attention_edges
from nodejepa.nn.gat import GraphAttention
from nodejepa.nn.restrict import restrict
from nodejepa.nn.sparse import SparseOperator


class FeatureDecoder(nn.Module):
    r"""One GNN layer on embeddings whose masked rows were masked again (Hou et al. 2022, Section 3.2).

    .. math:: \hat x_i = \sum_{j \notin M} P_{ij}\, h_j B\, W + b = g_i W + b

    for masked nodes i in M. P is S (``"gcn"``), or the attention of one head over the neighbours, masked ones
    included, whose embeddings are 0 (``"gat"``). As no nonlinearity follows, neighbours are gathered in the
    width of the embeddings, and :attr:`weight` is left to the loss, which may not need its product.
    """

    def __init__(self, width: int, out_dim: int, *, kind: Literal["gcn", "gat"] = "gcn") -> None:
        super().__init__()
        self.bridge = nn.Linear(width, width, bias=False)
        self.attention = GraphAttention(width, 1) if kind == "gat" else None
        weight = torch.zeros(width + 1, out_dim)  # the last row is the bias b
        nn.init.xavier_uniform_(weight[:-1])
        self.weight = nn.Parameter(weight)

    def forward(self, visible: Tensor, propagation: SparseOperator, masked: npt.NDArray[np.bool_]) -> Tensor:
        """``[g, 1]`` ``[M, width + 1]`` of masked nodes from embeddings ``[N - M, width]`` of the others."""
        z = self.bridge(visible)
        if self.attention is None:
            codes = restrict(propagation, masked, ~masked)(z)
        else:
            places = torch.from_numpy(np.flatnonzero(~masked)).to(z.device)
            whole = z.new_zeros(len(masked), z.shape[1]).index_copy(0, places, z)
            codes = self.attention(whole, attention_edges(restrict(propagation, masked, None)), masked)
        return torch.cat([codes, codes.new_ones(len(codes), 1)], dim=1)
