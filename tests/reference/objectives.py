"""Losses row by row and entry by entry; gradients come from autograd."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import torch


def cosine(a, b):
    """Of two vectors."""
    return (a @ b) / ((a @ a) * (b @ b)).sqrt()


def cosine_distance(guess, wanted, alpha=1.0):
    """The mean over rows of (1 - cosine)^alpha."""
    rows = [(1 - cosine(g, w)) ** alpha for g, w in zip(guess, wanted, strict=True)]
    return torch.stack(rows).mean()


def bootstrap(guesses, targets):
    """Each view's guess against the other view's target."""
    return cosine_distance(guesses[0], targets[1]) + cosine_distance(guesses[1], targets[0])


def vicreg(z, eps=1e-4, over="pairs"):
    """Variance and covariance terms, from the covariances of every pair of columns.

    Squared covariances are averaged over pairs, or summed and divided by the number of dimensions.
    """
    n, d = z.shape
    mean = [z[:, j].sum() / n for j in range(d)]
    c = [[((z[:, j] - mean[j]) * (z[:, k] - mean[k])).sum() / (n - 1) for k in range(d)] for j in range(d)]
    variance = sum(torch.relu(1 - (c[j][j] + eps).sqrt()) for j in range(d)) / d
    squares = [c[j][k] ** 2 for j in range(d) for k in range(d) if j != k]
    return variance, sum(squares) / (len(squares) if over == "pairs" else d)


def sigreg(z, generator, slices=256, max_nodes=None, times_n=True):
    """34 trigonometric passes and a plain trapezoid over all 33 knots of [-3, 3]."""
    if max_nodes is not None and len(z) > max_nodes:
        z = z[torch.randperm(len(z), generator=generator)[:max_nodes].sort().values]
    a = torch.randn(z.shape[1], slices, generator=generator, dtype=z.dtype)
    u = z @ (a / a.norm(dim=0))
    t = torch.linspace(-3, 3, 33, dtype=z.dtype)
    phi = torch.exp(-t.square() / 2)
    real = torch.cos(t[:, None, None] * u).mean(dim=1) - phi[:, None]
    imaginary = torch.sin(t[:, None, None] * u).mean(dim=1)
    integrand = phi[:, None] * (real.square() + imaginary.square())
    return torch.trapezoid(integrand, t, dim=0).mean() * (len(z) if times_n else 1)


def cca(one, two):
    """Invariance and decorrelation of CCA-SSG, from standardised columns."""
    z1, z2 = ((z - z.mean(dim=0)) / z.std(dim=0, correction=0) for z in (one, two))
    size, eye = len(z1), torch.eye(z1.shape[1], dtype=z1.dtype)
    decorrelation = sum((eye - z.T @ z / size).square().sum() for z in (z1, z2))
    return -sum(a @ b for a, b in zip(z1, z2, strict=True)) / size, decorrelation


# ---------------------------------------------------------------- LinearJEPA


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
