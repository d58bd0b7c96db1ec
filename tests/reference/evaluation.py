"""Probes by scikit-learn, diagnostics by a plain SVD, neighbours pair by pair."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize

from reference.matrices import dense


def exact_logistic(x, labels, strength):
    """Scikit-learn's minimum, found as closely as it can."""
    model = LogisticRegression(C=strength, tol=1e-10, solver="newton-cholesky")
    return model.fit(x.astype(np.float64), labels)


def fair_probe(embeddings, labels, split, strength_grid):
    """One fit after another; returns validation and test accuracy and the choice."""
    z = dense(embeddings).astype(np.float64)
    best = (-1.0,)
    scaled = {"standardise": StandardScaler().fit_transform(z), "l2": normalize(z)}
    grids = {name: strength_grid(x.var(axis=0).sum()) for name, x in scaled.items()}
    for position in range(len(grids["l2"])):
        for name, x in scaled.items():
            strength = grids[name][position]
            model = exact_logistic(x[split.train], labels[split.train], strength)
            accuracy = 100 * model.score(x[split.val], labels[split.val])
            if accuracy > best[0]:
                best = (accuracy, 100 * model.score(x[split.test], labels[split.test]), name, strength)
    return best


def diagnostics(z):
    """Effective ranks, mean standard deviation, participation ratios; centred before uncentred."""
    z = np.asarray(z, dtype=np.float64)
    spectra = [np.linalg.svd(matrix, compute_uv=False) for matrix in (z - z.mean(axis=0), z)]
    shares = [sigma[sigma > 0] / sigma.sum() for sigma in spectra]
    ranks = [np.exp(-(share * np.log(share)).sum()) for share in shares]
    ratios = [(s**2).sum() ** 2 / (s**4).sum() for s in spectra]
    return *ranks, z.std(axis=0).mean(), *ratios


def unit(row):
    largest = np.abs(row).max()
    scaled = row / largest if largest else row
    length = np.sqrt(np.sum(scaled**2))
    return scaled / length if length else scaled


def neighbours(z, query, k, metric):
    """One pair at a time, sorted by score and then by row."""
    z = np.asarray(z, dtype=np.float64)
    pairs = []
    for row in range(len(z)):
        if row == query:
            continue
        if metric == "cosine":
            pairs.append((-float(np.sum(unit(z[query]) * unit(z[row]))), row))
        else:
            pairs.append((float(np.sqrt(np.sum((z[query] - z[row]) ** 2))), row))
    nearest = sorted(pairs)[:k]
    sign = -1 if metric == "cosine" else 1
    return [row for _, row in nearest], [sign * score for score, _ in nearest]
