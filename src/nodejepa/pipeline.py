"""Graph embeddings as a step of a scikit-learn pipeline.

scikit-learn splits and indexes rows, and a graph cannot be cut like that: so the graph is a parameter and
``X`` is the column of nodes. Whatever a search or a cross-validation does with the nodes and their labels,
the encoder sees the whole graph and never a label, as everywhere in this package.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from nodejepa.config import DEFAULT_METHOD, refuse_unknown
from nodejepa.errors import EvaluationError, GraphError
from nodejepa.graph_checks import Features
from nodejepa.machine import Room
from nodejepa.methods import make_method, refuse_supervised
from nodejepa.nn.inputs import pick_device
from nodejepa.tables import find_rows, graph_with_features
from nodejepa.workflow.plan import make_plan


class NodeEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns nodes of a graph into their embeddings, as a scikit-learn transformer.

    ``fit`` embeds the graph and ``transform`` looks nodes up, so every clone that a search fits trains anew,
    with the same result for the same settings. Where only the classifier is searched, train once:
    ``sklearn.frozen.FrozenEstimator(NodeEmbedder(graph).fit())``.

    Args:
        graph: a :class:`Graph`, PyG ``Data``, NetworkX or SciPy object; shared between clones, never copied.
            Without features it is described by its structure, as `nodejepa embed-graph` does.
        method: a name in :data:`nodejepa.methods.METHODS`.
        preset: a named set of settings of the method.
        settings: changes by dotted name, such as ``{"epochs": 30}``.
        seed: the random seed.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        memory_limit: most memory to use, in GB; by default the free memory. Training that would
            need more is refused before it begins.
        unknown: any other argument is an error, which names the setting that is meant.

    After ``fit``, ``embedding_`` has a row for every node of the graph and ``node_ids_`` their ids.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from nodejepa.data import load_dataset
    >>> data = load_dataset("digits")
    >>> split = data.split(seed=1)
    >>> model = make_pipeline(NodeEmbedder(data.graph, "sgc"), LogisticRegression(max_iter=1000))
    >>> model = model.fit(split.train, data.labels[split.train])  # X is the nodes, y their labels
    >>> model.predict(split.test).shape == split.test.shape
    True
    """

    def __init__(
        self,
        graph: Any = None,
        method: str = DEFAULT_METHOD,
        *,
        preset: str = "default",
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        device: str = "auto",
        memory_limit: float | None = None,
        **unknown: Any,
    ) -> None:
        refuse_unknown(unknown, self._get_param_names(), "NodeEmbedder")
        self.graph, self.method, self.preset = graph, method, preset
        self.settings, self.seed, self.device, self.memory_limit = settings, seed, device, memory_limit

    def fit(self, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002
        """Embed the whole graph; neither the nodes nor the labels are looked at.

        Method, settings, device and memory are checked first: what cannot end is not begun.
        """
        if self.graph is None:
            raise GraphError("there is no graph to embed", fix="Give one: NodeEmbedder(graph, ...).")
        refuse_supervised(self.method)
        made = make_method(
            self.method, preset=self.preset, seed=self.seed, settings=self.settings, device=self.device
        )
        pick_device(self.device)
        graph = graph_with_features(self.graph, room=Room.of(self.memory_limit))
        make_plan(made, graph, self.memory_limit).require_fit()
        self.embedding_ = made.fit(graph).transform(graph)
        self.node_ids_ = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
        return self

    def transform(self, X: Any) -> Features:
        """Embeddings of the nodes in ``X``.

        Args:
            X: ids of the graph (row numbers where it has none), as a list, an array or a frame of one column.
        """
        check_is_fitted(self)
        rows: Features = self.embedding_[find_rows(self.node_ids_, _column(X))]
        return rows

    @property
    def _n_features_out(self) -> int:
        """How many columns ``get_feature_names_out`` names."""
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        """``X`` is nodes, not numbers: it may be text, and is not validated as a matrix."""
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.string = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted; graphs are immutable to us and large, so they are shared."""
        others = {name: value for name, value in self.get_params(deep=False).items() if name != "graph"}
        return type(self)(self.graph, **{name: clone(value, safe=False) for name, value in others.items()})


def _column(nodes: Any) -> list[Any]:
    """Python's own values of one column of nodes, whatever holds them."""
    if isinstance(nodes, list | tuple):  # [node, node] or [[node], [node]]
        single = all(isinstance(node, list | tuple) and len(node) == 1 for node in nodes)
        return [node[0] for node in nodes] if single else list(nodes)
    array: npt.NDArray[Any] = np.asarray(nodes)
    if array.ndim != 1 and (array.ndim != 2 or array.shape[1] != 1):
        raise EvaluationError(
            f"X has shape {array.shape}, not one column of nodes",
            where="NodeEmbedder",
            fix="Give node ids; the features of nodes belong to the graph.",
        )
    return list(array.ravel().tolist())
