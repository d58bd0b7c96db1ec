"""Embeddings in the plane: principal components (exact) and a picture that keeps neighbours together."""

from __future__ import annotations

import importlib
import warnings
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import Embeddings
from nodejepa.errors import ConfigError
from nodejepa.principal import PrincipalAxes

Plane = npt.NDArray[np.float64]

_TSNE_COLUMNS = 50  # leading components that t-SNE measures distances in
_TSNE_STEPS = 500


def principal_plane(embeddings: Embeddings) -> Plane:
    """Centred rows on their two leading principal axes, ``[N, 2]``.

    Each axis points to where its largest entry is positive, so that the same embeddings always give the same
    picture. One column gives a line, constant embeddings a point.
    """
    return _principal_components(embeddings, 2)


def neighbour_plane(embeddings: Embeddings, *, seed: int = 0) -> Plane:
    """t-SNE (van der Maaten & Hinton 2008) of the leading principal components, started at the first two."""
    from sklearn.manifold import TSNE

    leading = _principal_components(embeddings, min(_TSNE_COLUMNS, embeddings.shape[1]))
    start = leading[:, :2]
    size = float(start[:, 0].std())
    if len(leading) < 4 or size == 0:
        return start  # too few or too equal to have neighbourhoods
    tsne = TSNE(
        init=(start / size * 1e-4).astype(np.float32),
        perplexity=min(30.0, (len(leading) - 1) / 3),
        max_iter=_TSNE_STEPS,
        random_state=seed,
    )
    return np.asarray(tsne.fit_transform(leading.astype(np.float32)), dtype=np.float64)


def umap_plane(embeddings: Embeddings, *, seed: int = 0) -> Plane:
    """UMAP (McInnes et al. 2018) of the leading principal components; needs the extra ``nodejepa[umap]``."""
    require_umap()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a missing TensorFlow, and of one thread where a seed is given
        library = importlib.import_module("umap")
        leading = _principal_components(embeddings, min(_TSNE_COLUMNS, embeddings.shape[1]))
        if len(leading) < 4 or not leading[:, 0].any():
            return leading[:, :2]
        near = min(15, len(leading) - 1)
        model = library.UMAP(n_neighbors=near, init="pca", random_state=seed, n_jobs=1)
        return np.asarray(model.fit_transform(leading.astype(np.float32)), dtype=np.float64)


def require_umap() -> None:
    """Refuse before the work what needs a library that is not there."""
    if find_spec("umap") is None:
        raise ConfigError(
            "umap-learn is not installed",
            where="umap",
            fix="pip install 'nodejepa[umap]', or leave the projection out: the map has two others.",
        )


def _principal_components(embeddings: Embeddings, count: int) -> Plane:
    """``[N, max(count, 2)]``; axes that do not exist are zero."""
    found = PrincipalAxes.of(embeddings, count).project(embeddings)
    plane = np.zeros((len(found), max(count, 2)))
    plane[:, : found.shape[1]] = found
    return plane
