"""The optional Laplacian term: neighbours should not differ too much."""

from torch import Tensor

from nodejepa.nn.sparse import SparseOperator


def laplacian_energy(z: Tensor, propagation: SparseOperator) -> Tensor:
    r"""Dirichlet energy of embeddings ``[n, D]`` under the normalised Laplacian I - S.

    .. math:: \frac{1}{nD} \mathrm{tr}\left(Z^\top (I - S) Z\right)

    Promised in the paper's abstract, absent from its loss: weight 0 in the ``paper`` preset.
    """
    return (z * (z - propagation(z))).mean()
