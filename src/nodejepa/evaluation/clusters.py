"""Groups of nodes that lie together: k-means on the embeddings, how many chosen without labels.

Rows are brought to their leading principal components and to length 1: long rows are hubs more often than
they are a group. The number of groups is the one with the highest silhouette (Rousseeuw 1987), the mean over
nodes of (b - a) / max(a, b), with a the distance to the own group and b that to the nearest other one.

Of embeddings on disk only these components are kept: in memory, or of more than ``_AT_ONCE`` nodes in a file.
There k-means begins at the centres of so many nodes and goes on over the rows of all, block by block.
"""

import operator
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from nodejepa.diagnostics import Embeddings, RowArray, check_embeddings, stretches
from nodejepa.errors import EvaluationError
from nodejepa.principal import Matrix, PrincipalAxes
from nodejepa.progress import progress_bar

MOST_TRIED = 20  # groups
Labels: TypeAlias = npt.NDArray[np.integer[Any]]

_COMPONENTS, _STARTS = 50, 4
COMPONENT_BYTES = 8 * _COMPONENTS  # a node, at most
_SAMPLE = 3000  # nodes that the number of groups is chosen on
_AT_ONCE = 1 << 18  # nodes of a graph on disk whose components are held
_STEPS, _SETTLED = 100, 1e-4  # of k-means by blocks: at most, and the share of nodes whose moves are the last


@dataclass(frozen=True, eq=False)
class Clusters:
    """The group of each node, the largest first; ``silhouettes``: by number of groups, of those tried."""

    assigned: npt.NDArray[np.int64]
    silhouettes: dict[int, float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.assigned.max()) + 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        tried = {str(k): round(value, 6) for k, value in self.silhouettes.items()}
        return {"count": self.count, "sizes": np.bincount(self.assigned).tolist(), "silhouettes": tried}


def check_count(count: Any) -> int | None:
    """A number of groups; ``None`` and ``"auto"`` are for us to choose."""
    if count is None or count == "auto":
        return None
    try:
        number = int(count) if isinstance(count, str) else operator.index(count)
    except (TypeError, ValueError):
        number = 0
    if number < 2:
        raise EvaluationError(
            f"the number of clusters is {count!r}", where="clusters", fix='Give 2 or more, or "auto".'
        )
    return number


def find_clusters(
    embeddings: Embeddings | RowArray,
    count: int | str | None = None,
    *,
    seed: int = 0,
    scratch: Path | None = None,
) -> Clusters:
    """Put every node into a group.

    Args:
        embeddings: ``[nodes, d]``, dense, SciPy sparse or on disk.
        count: how many groups; ``None`` or ``"auto"``: 2 to 20, whichever has the highest silhouette.
        seed: of k-means and of the sample that the silhouette is computed on.
        scratch: folder for a file of components, of embeddings on disk; the system's own if not given.

    >>> find_clusters(np.repeat(np.eye(3), 20, axis=0)).count
    3
    """
    asked = check_count(count)
    rows = _directions(embeddings, scratch)
    most = _distinct(rows, asked or MOST_TRIED)
    if most < 2:
        return Clusters(np.zeros(len(rows), dtype=np.int64))
    silhouettes: dict[int, float] = {}
    if asked is None:
        rng = np.random.default_rng(seed)
        few = rows if len(rows) <= _SAMPLE else rows[np.sort(rng.choice(len(rows), _SAMPLE, replace=False))]
        tried = range(2, min(MOST_TRIED, len(np.unique(few.round(9), axis=0)), len(few) - 1) + 1)
        with progress_bar("Choosing the number of clusters", total=len(tried)) as advance:
            for k in tried:
                silhouettes[k] = float(silhouette_score(few, _k_means(few, k, seed)))
                advance(note=str(k))
    best = max(silhouettes, key=lambda k: (silhouettes[k], -k), default=2)
    found = _k_means(rows, min(best if asked is None else asked, most), seed)
    sizes = np.bincount(found)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return Clusters(rank[found], silhouettes)


def agreement(clusters: Clusters, labels: Labels) -> dict[str, float]:
    """Of groups with labels, over the labelled nodes: 1 is the same, 0 what chance gives (ARI) or nothing.

    ``nmi``: normalised mutual information, ``ari``: adjusted Rand index (Hubert & Arabie 1985).
    """
    known = labels >= 0
    pair = labels[known], clusters.assigned[known]
    return {"nmi": float(normalized_mutual_info_score(*pair)), "ari": float(adjusted_rand_score(*pair))}


def _directions(embeddings: Embeddings | RowArray, scratch: Path | None) -> Matrix:
    """Leading principal components of every row, of length 1; those of many rows on disk are on disk, too."""
    if isinstance(embeddings, np.ndarray | sp.csr_array):
        z = check_embeddings(embeddings)
        return _unit(PrincipalAxes.of(z, min(_COMPONENTS, z.shape[1])).project(z))
    axes = PrincipalAxes.of(embeddings, min(_COMPONENTS, embeddings.shape[1]))
    parts = (_unit(axes.project(check_embeddings(part))) for part in stretches(embeddings))
    shape = embeddings.shape[0], axes.axes.shape[1]
    if shape[0] <= _AT_ONCE:
        return np.concatenate(list(parts))
    with tempfile.TemporaryFile(dir=scratch) as file:  # the map keeps it until nobody looks at it
        for part in parts:
            file.write(np.ascontiguousarray(part).data)
        file.flush()
        return np.memmap(file, np.float64, "r", shape=shape)


def _unit(rows: Matrix) -> Matrix:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def _distinct(rows: Matrix, enough: int) -> int:
    """How many rows differ; whether more than ``enough`` do nobody asks."""
    found = rows[:0]
    for low in range(0, len(rows), _AT_ONCE):
        found = np.unique(np.concatenate([found, rows[low : low + _AT_ONCE].round(9)]), axis=0)
        if len(found) >= enough:
            break
    return len(found)


def _k_means(rows: Matrix, count: int, seed: int) -> npt.NDArray[np.int64]:
    means = KMeans(count, n_init=_STARTS, random_state=seed)
    if not isinstance(rows, np.memmap) or len(rows) <= _AT_ONCE:
        return np.asarray(means.fit_predict(rows), dtype=np.int64)
    drawn = np.random.default_rng(seed).choice(len(rows), _AT_ONCE, replace=False)
    return _by_blocks(rows, means.fit(rows[np.sort(drawn)]).cluster_centers_)


def _by_blocks(rows: Matrix, centres: Matrix) -> npt.NDArray[np.int64]:
    """Lloyd's k-means from some centres: rows go to the nearest, centres to the mean of theirs, and again."""
    found = np.full(len(rows), -1, dtype=np.int64)
    with progress_bar("Clustering", total=_STEPS) as advance:
        for _ in range(_STEPS):
            sums, sizes, moved = np.zeros_like(centres), np.zeros(len(centres), dtype=np.int64), 0
            for low in range(0, len(rows), _AT_ONCE):
                part, before = rows[low : low + _AT_ONCE], found[low : low + _AT_ONCE]
                near = (np.square(centres).sum(axis=1) / 2 - part @ centres.T).argmin(axis=1)
                moved += int(np.count_nonzero(near != before))
                before[:] = near
                ones = np.ones(len(near)), (near, np.arange(len(near)))
                sums += sp.csr_array(ones, shape=(len(centres), len(near))) @ part
                sizes += np.bincount(near, minlength=len(centres))
            advance(note=f"{moved:,} moved")
            if moved <= _SETTLED * len(rows):
                break
            held = sizes > 0  # a centre that nothing is near stays where it is
            centres = np.where(held[:, None], sums / np.maximum(sizes, 1)[:, None], centres)
    return found
