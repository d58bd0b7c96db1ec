"""Groups of nodes that lie together: k-means on the embeddings, how many chosen without labels.

Rows are brought to their leading principal components and to length 1: long rows are hubs more often than
they are a group. The number of groups is the one with the highest silhouette (Rousseeuw 1987), the mean over
nodes of (b - a) / max(a, b), with a the distance to the own group and b that to the nearest other one.
"""

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from nodejepa.diagnostics import Embeddings, check_embeddings
from nodejepa.errors import EvaluationError
from nodejepa.principal import PrincipalAxes
from nodejepa.progress import progress_bar

MOST_TRIED = 20  # groups
_COMPONENTS, _STARTS = 50, 4
_SAMPLE = 3000  # nodes that the number of groups is chosen on


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


def find_clusters(embeddings: Embeddings, count: int | str | None = None, *, seed: int = 0) -> Clusters:
    """Put every node into a group.

    Args:
        embeddings: ``[nodes, d]``, dense or SciPy sparse.
        count: how many groups; ``None`` or ``"auto"``: 2 to 20, whichever has the highest silhouette.
        seed: of k-means and of the sample that the silhouette is computed on.

    >>> find_clusters(np.repeat(np.eye(3), 20, axis=0)).count
    3
    """
    asked, z = check_count(count), check_embeddings(embeddings)
    rows = PrincipalAxes.of(z, min(_COMPONENTS, z.shape[1])).project(z)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(length > 0, length, 1.0)
    most = len(np.unique(rows.round(9), axis=0))
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


def agreement(clusters: Clusters, labels: npt.NDArray[np.int64]) -> dict[str, float]:
    """Of groups with labels, over the labelled nodes: 1 is the same, 0 what chance gives (ARI) or nothing.

    ``nmi``: normalised mutual information, ``ari``: adjusted Rand index (Hubert & Arabie 1985).
    """
    known = labels >= 0
    pair = labels[known], clusters.assigned[known]
    return {"nmi": float(normalized_mutual_info_score(*pair)), "ari": float(adjusted_rand_score(*pair))}


def _k_means(rows: npt.NDArray[np.float64], count: int, seed: int) -> npt.NDArray[np.int64]:
    return np.asarray(KMeans(count, n_init=_STARTS, random_state=seed).fit_predict(rows), dtype=np.int64)
