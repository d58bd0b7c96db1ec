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
    """The embeddings of a graph whose features have more than 32 directions."""
    c, d, mean, seen = dense_moments(graph)
    eps, half = shrinkage * np.trace(c), min(dim // 2, len(c))
    between = np.outer(mean, seen)
    signed = generalised(c - np.outer(mean, mean), d - (between + between.T) / 2, eps, half)[0]
    agreement = max(0.0, 1 - 2 * np.abs(signed[signed < 0]).sum() / np.abs(signed).sum())
    alone = agreement >= 0.5
    count = min(dim, len(c)) if alone else half
    rho, v = generalised(c, d, eps, count)
    weight = v * np.abs(rho) ** power
    weight *= np.sqrt(count / np.trace(weight.T @ c @ weight))
    weight = weight @ dense_hartley(count)
    x = graph.features.toarray() if sp.issparse(graph.features) else np.asarray(graph.features)
    s = graph.normalized_adjacency.toarray().astype(np.float64)
    own = x @ weight - (1 - agreement) * (mean @ weight)
    walk = own
    for _ in range(hops):
        walk = restart * own + (1 - restart) * s @ walk
    z = walk if alone else np.hstack([walk, restart * (1 - agreement) * own])
    length = np.linalg.norm(z, axis=1, keepdims=True)
    return z * np.sqrt(z.shape[1]) / np.where(length > 0, length, 1), rho, agreement


def dense_hartley(size):
    """Entry by entry, as the formula stands."""
    angle = [[2 * np.pi * j * k / size for k in range(size)] for j in range(size)]
    return (np.cos(angle) + np.sin(angle)) / np.sqrt(size)
