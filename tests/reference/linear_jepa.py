"""LinearJEPA as its equations stand, with dense matrices and a general eigensolver."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp


def dense_moments(graph):
    """C, D, mean and neighbours' mean over the nodes that have neighbours."""
    x = graph.features.toarray() if sp.issparse(graph.features) else np.asarray(graph.features)
    x, incoming = x.astype(np.float64), graph.adjacency.toarray().T.astype(np.float64)
    total = incoming.sum(axis=1)
    has = total > 0
    around = (incoming / np.where(has, total, 1)[:, None]) @ x
    c = x[has].T @ x[has] / has.sum()
    d = x[has].T @ around[has] / has.sum()
    return c, (d + d.T) / 2, x[has].mean(axis=0), around[has].mean(axis=0)


def generalised(c, d, eps, count):
    """rho and V of the ``count`` loudest solutions of D v = rho (C + eps I) v."""
    rho, v = scipy.linalg.eigh(d, c + eps * np.eye(len(c)))
    loud = np.argsort(-np.abs(rho), kind="stable")[:count]
    v = v[:, loud]
    return rho[loud], v * np.sign(v[np.abs(v).argmax(axis=0), np.arange(len(loud))])


def dense_linear_jepa(graph, *, shrinkage, dim=256, power=0.5, hops=10, restart=0.15):
    """The embeddings of a graph whose features have more than 64 directions."""
    c, d, mean, seen = dense_moments(graph)
    eps, count = shrinkage * np.trace(c), min(dim // 2, len(c))
    rho, v = generalised(c, d, eps, count)
    between = np.outer(mean, seen)
    signed = generalised(c - np.outer(mean, mean), d - (between + between.T) / 2, eps, count)[0]
    agreement = max(0.0, 1 - 2 * np.abs(signed[signed < 0]).sum() / np.abs(signed).sum())
    weight = v * np.abs(rho) ** power
    weight *= np.sqrt(count / np.trace(weight.T @ c @ weight))
    x = graph.features.toarray() if sp.issparse(graph.features) else np.asarray(graph.features)
    s = graph.normalized_adjacency.toarray().astype(np.float64)
    own = x @ weight - (1 - agreement) * (mean @ weight)
    walk = own
    for _ in range(hops):
        walk = restart * own + (1 - restart) * s @ walk
    return np.hstack([walk, restart * (1 - agreement) * own]), rho, agreement
