"""Groups of nodes that lie together: k-means on the embeddings, how many chosen without labels.

Rows are brought to their leading principal components and to length 1: long rows are hubs more often than
they are a group. The number of groups is the one with the highest silhouette (Rousseeuw 1987), the mean over
nodes of (b - a) / max(a, b), with a the distance to the own group and b that to the nearest other one.

Of embeddings on disk the groups are those of at most ``_AT_ONCE`` nodes, drawn at random; every other node
goes to the group whose centre is nearest.
"""

import operator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.diagnostics import (
    Doubles,
    Embeddings,
    PrincipalAxes,
    RowArray,
    check_embeddings,
    row_chunks,
)
from nodejepa.errors import EvaluationError
from nodejepa.progress import progress_bar

MOST_TRIED = 20  # groups
Labels: TypeAlias = npt.NDArray[np.integer[Any]]

_COMPONENTS, _STARTS = 50, 4
_SAMPLE = 3000  # nodes that the number of groups is chosen on
_AT_ONCE = 1 << 18  # nodes of a graph on disk whose components are held


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
    embeddings: Embeddings | RowArray, count: int | str | None = None, *, seed: int = 0
) -> Clusters:
    """Put every node into a group.

    Args:
        embeddings: ``[nodes, d]``, dense, SciPy sparse or on disk.
        count: how many groups; ``None`` or ``"auto"``: 2 to 20, whichever has the highest silhouette.
        seed: of k-means and of the samples.

    >>> find_clusters(np.repeat(np.eye(3), 20, axis=0)).count
    3
    """
    from sklearn.metrics import silhouette_score

    asked, rng = check_count(count), np.random.default_rng(seed)
    held: Any = embeddings  # whose components are in memory
    if not isinstance(embeddings, np.ndarray | sp.csr_array):
        held = embeddings[_drawn(rng, embeddings.shape[0], _AT_ONCE)]
    axes = PrincipalAxes.of(embeddings, min(_COMPONENTS, embeddings.shape[1]))
    rows = _directions(axes, held)
    most = min(len(np.unique(rows.round(9), axis=0)), asked or MOST_TRIED)
    if most < 2:
        return Clusters(np.zeros(embeddings.shape[0], dtype=np.int64))
    silhouettes: dict[int, float] = {}
    if asked is None:
        few = rows[_drawn(rng, len(rows), _SAMPLE)]
        tried = range(2, min(MOST_TRIED, len(np.unique(few.round(9), axis=0)), len(few) - 1) + 1)
        with progress_bar("Choosing the number of clusters", total=len(tried)) as advance:
            for k in tried:
                silhouettes[k] = float(silhouette_score(few, _k_means(k, seed).fit_predict(few)))
                advance(note=str(k))
    best = max(silhouettes, key=lambda k: (silhouettes[k], -k), default=2)
    means = _k_means(min(best if asked is None else asked, most), seed).fit(rows)
    found = means.labels_
    if len(rows) < embeddings.shape[0]:
        found = np.concatenate([means.predict(_directions(axes, part)) for part in row_chunks(embeddings)])
    sizes = np.bincount(found)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return Clusters(rank[found], silhouettes)


def agreement(clusters: Clusters, labels: Labels) -> dict[str, float]:
    """Of groups with labels, over the labelled nodes: 1 is the same, 0 what chance gives (ARI) or nothing.

    ``nmi``: normalised mutual information, ``ari``: adjusted Rand index (Hubert & Arabie 1985).
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    known = labels >= 0
    pair = labels[known], clusters.assigned[known]
    return {"nmi": float(normalized_mutual_info_score(*pair)), "ari": float(adjusted_rand_score(*pair))}


def _drawn(rng: np.random.Generator, count: int, most: int) -> npt.NDArray[np.int64]:
    """At most so many row numbers, ascending."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def _directions(axes: PrincipalAxes, embeddings: Embeddings) -> Doubles:
    """Leading principal components of every row, of length 1."""
    rows = axes.project(check_embeddings(embeddings))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0))


def _k_means(count: int, seed: int) -> Any:
    from sklearn.cluster import KMeans  # takes seconds to import: only who asks for groups pays

    return KMeans(count, n_init=_STARTS, random_state=seed)
