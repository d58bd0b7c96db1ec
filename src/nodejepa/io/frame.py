"""Embeddings as a pandas frame, where pandas is installed."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import numpy.typing as npt

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import DataError, GraphError


def embeddings_frame(ids: npt.ArrayLike | None, embeddings: Any) -> Any:
    """A ``pandas.DataFrame`` with a row a node: index ``id``, columns ``z0``, ``z1``, ...

    Args:
        ids: of the rows, in order, such as ``graph.node_ids``; none numbers them.
        embeddings: ``[nodes, d]``, dense or SciPy sparse.

    >>> embeddings_frame(["ann", "bob"], np.eye(2, dtype=np.float32)).loc["bob"].tolist()
    [0.0, 1.0]
    """
    try:
        pd = importlib.import_module("pandas")
    except ImportError:
        raise GraphError("pandas is not installed", fix="pip install 'nodejepa[pandas]'.") from None
    z = check_embeddings(embeddings)
    dense = z if isinstance(z, np.ndarray) else z.toarray()
    names = np.arange(len(dense)) if ids is None else ids
    index = pd.Index(names, name="id")
    if len(index) != len(dense):
        raise DataError(
            f"there are {len(index)} ids for {len(dense)} rows", where="ids", fix="Give one id a row."
        )
    return pd.DataFrame(dense, index=index, columns=[f"z{j}" for j in range(dense.shape[1])])
