"""scikit-learn's habits, for whatever has a config, a seed, a device, ``fit`` and ``transform``."""

import json
from typing import Any, Self

import numpy as np

from nodejepa.config import flatten, override, to_dict
from nodejepa.graph_checks import Features
from nodejepa.tables import as_graph


def with_own_features(graph: Any, X: Any) -> Any:
    """The graph with features ``X``; one-dimensional ones are the labels that pipelines pass, and unused."""
    if X is None or np.ndim(X) == 1:
        return as_graph(graph)
    return as_graph(graph).with_features(X)


class Habits:
    """What people expect of an estimator: one call for both steps, parameters by name, and copies."""

    config: Any
    seed: int
    device: str
    fit: Any
    transform: Any

    def fit_transform(self, graph: Any, X: Any = None, y: Any = None, **options: Any) -> Features:  # noqa: ARG002
        """``fit`` and then ``transform`` of the same graph; the result is kept as ``embedding_``.

        ``X`` are features ``[nodes, F]`` in the place of the graph's own; labels there are not looked at.
        """
        graph = with_own_features(graph, X)
        self.embedding_: Features = self.fit(graph, **options).transform(graph)
        return self.embedding_

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Seed, device and every setting by its dotted name: what the constructor takes."""
        return {"seed": self.seed, "device": self.device, **flatten(self.config)}

    def set_params(self, **params: Any) -> Self:
        """Change seed, device or settings, by full or short names; ``fit`` again afterwards."""
        seed, device = params.pop("seed", self.seed), params.pop("device", self.device)
        changed = type(self)(override(self.config, params), seed=seed, device=device)  # type: ignore[call-arg]
        self.config, self.seed, self.device = changed.config, changed.seed, changed.device
        return self

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted."""
        return type(self)(self.config, seed=self.seed, device=self.device)  # type: ignore[call-arg]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(seed={self.seed}, config={json.dumps(to_dict(self.config))})"
