"""A 2-D map of embeddings as inline SVG: first two principal components, coloured and named by class."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from nodejepa.graph_checks import Features

_SIZE, _MARGIN = 400, 16
# Ten hues that stay apart for colour-blind readers as far as ten can; class names on the map do the rest.
_COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
    "#8c6d31", "#b8a800", "#5b4fb3", "#666666",
)  # fmt: skip


def principal_plane(embeddings: Features) -> npt.NDArray[np.float64]:
    """Centred rows on their two leading principal axes, ``[N, 2]``.

    Axes are the eigenvectors of the ``D x D`` covariance; each points to where its largest entry is positive,
    so that the same embeddings always give the same picture.
    """
    dense = embeddings if isinstance(embeddings, np.ndarray) else embeddings.toarray()
    z = dense.astype(np.float64)
    z -= z.mean(axis=0)
    axes = np.linalg.eigh(z.T @ z)[1][:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    plane = np.zeros((len(z), 2))
    plane[:, : axes.shape[1]] = z @ axes
    return plane


def scatter_svg(
    embeddings: Features,
    labels: npt.NDArray[np.int64],
    class_names: Sequence[str] | None = None,
    node_ids: npt.NDArray[np.generic] | None = None,
) -> str:
    """An ``<svg>`` with one dot a node (its title: id and class) and each class's name at its median."""
    plane = principal_plane(embeddings)
    low, span = plane.min(axis=0), np.ptp(plane, axis=0).max() or 1.0
    spots = _MARGIN + (plane - low + (span - np.ptp(plane, axis=0)) / 2) / span * (_SIZE - 2 * _MARGIN)
    spots[:, 1] = _SIZE - spots[:, 1]  # SVG counts downwards
    names = class_names or [str(label) for label in range(int(labels.max(initial=-1)) + 1)]
    ids = range(len(spots)) if node_ids is None else node_ids.tolist()
    groups, captions = [], []
    for label in np.unique(labels).tolist():
        name = escape(str(names[label])) if label >= 0 else "unknown"
        members = np.flatnonzero(labels == label).tolist()
        dots = "".join(
            f'<circle cx="{spots[i, 0]:.1f}" cy="{spots[i, 1]:.1f}" r="2.5">'
            f"<title>node {escape(str(ids[i]))}, class {name}</title></circle>"
            for i in members
        )
        groups.append(f'<g fill="{_COLOURS[label % len(_COLOURS)]}" fill-opacity="0.7">{dots}</g>')
        x, y = np.median(spots[members], axis=0)
        captions.append(f'<text x="{x:.1f}" y="{y:.1f}">{name}</text>')
    body = "\n".join([*groups, *captions])
    return (
        f'<svg viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="map of the embeddings">\n{body}\n</svg>'
    )
