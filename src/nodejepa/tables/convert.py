"""Graphs from what people have: PyG ``Data``, NetworkX, SciPy; embeddings as a pandas frame."""

import importlib
import os
import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nodejepa.diagnostics import check_embeddings
from nodejepa.errors import DataError, GraphError
from nodejepa.graph import Direction, Graph
from nodejepa.graph_checks import id_array, in_node_order

_DIRECTED = 'Pass direction="symmetrize" to forget directions or direction="keep" to keep them.'


def as_graph(source: Any) -> Graph:
    """A :class:`Graph` from a Graph, a PyG ``Data``, a NetworkX graph or a SciPy sparse adjacency."""
    if isinstance(source, Graph):
        return source
    if sp.issparse(source):
        return _undirected(source, Graph.from_scipy, "nodejepa.Graph.from_scipy")
    if hasattr(source, "edge_index"):
        return _undirected(source, from_pyg, "nodejepa.from_pyg")
    if hasattr(source, "nodes") and hasattr(source, "is_directed"):
        return _undirected(source, from_networkx, "nodejepa.from_networkx")
    raise GraphError(f"a {type(source).__name__} is not a graph", fix=_instead(source))


def _instead(source: Any) -> str:
    """What to do with something that holds a graph in another way."""
    if hasattr(source, "edge_index_dict"):
        return (
            "It has several kinds of nodes and edges. Join them, data.to_homogeneous(), or take those of one "
            "kind, Data(x=data[kind].x, edge_index=data[kind, relation, kind].edge_index)."
        )
    if isinstance(source, str | os.PathLike):
        return "Read a file with nodejepa.load_graph(path)."
    if hasattr(source, "__arrow_c_stream__"):
        return "Read tables of edges and nodes with nodejepa.load_graph(edges, nodes)."
    if isinstance(source, np.ndarray) or hasattr(source, "detach"):
        return "Give pairs of nodes to Graph.from_edges(source, target), a matrix to Graph.from_scipy."
    return "Give a nodejepa.Graph, a PyG Data, a NetworkX graph or a SciPy sparse matrix."


def _undirected(source: Any, convert: Callable[..., Graph], name: str) -> Graph:
    """``convert(source)``; edges listed one way join both ways, as those of files do, with a warning."""
    try:
        return convert(source)
    except GraphError as error:
        if "direction=" not in error.fix:
            raise
        warnings.warn(
            f'{error.what}: each edge joins both ways; {name}(graph, direction="keep") keeps directions',
            stacklevel=2,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the conversion were given the first time
            return convert(source, direction="symmetrize")


def from_pyg(data: Any, *, direction: Direction = "check") -> Graph:
    """A graph from a PyG ``Data`` (``edge_index``, ``x``, one-dimensional ``edge_weight``).

    Labels and masks of the ``Data`` are left behind: a :class:`Graph` has none. ``edge_attr`` is left out
    with a warning: it may be a weight, a distance or a kind.
    """
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None or getattr(edge_index, "ndim", 0) != 2 or edge_index.shape[0] != 2:
        raise GraphError(
            "the object has no edge_index of shape [2, edges]",
            where="PyG Data",
            fix=_instead(data)
            if hasattr(data, "edge_index_dict")
            else "Give a torch_geometric.data.Data with edge_index set.",
        )
    source, target = _numpy(edge_index)
    x, weights = getattr(data, "x", None), _numpy(getattr(data, "edge_weight", None))
    if weights is None and getattr(data, "edge_attr", None) is not None:
        warnings.warn(
            "edge_attr is not read; if it is a weight, set data.edge_weight = data.edge_attr.ravel()",
            stacklevel=2,
        )
    with warnings.catch_warnings():  # PyG warns where it takes the count from the edges, as we do
        warnings.simplefilter("ignore")
        num_nodes = getattr(data, "num_nodes", None) if x is None else None
    return Graph.from_edges(
        source,
        target,
        features=_numpy(x),
        num_nodes=num_nodes,
        weights=weights,
        direction=direction,
    )


def from_networkx(
    nx_graph: Any,
    features: npt.ArrayLike | sp.sparray | None = None,
    *,
    feature: str | None = None,
    weight: str | Literal[False] | None = None,
    direction: Direction = "check",
) -> Graph:
    """A graph from NetworkX; its node names become ``node_ids``, in NetworkX's own order.

    Args:
        nx_graph: any NetworkX graph; a ``DiGraph`` needs ``direction="keep"`` or ``"symmetrize"``.
        features: ``[nodes, F]`` in the order of ``nx_graph.nodes``; a pandas frame is aligned by its index.
        feature: instead of ``features``, the node attribute that holds each node's vector.
        weight: edge attribute to use as weight, which every edge must have. If not given, the attribute
            ``weight``, 1 for edges without it; False reads none. Weights of parallel edges add up, as in
            NetworkX's own adjacency matrix.
        direction: as in :meth:`Graph.from_edges`.
    """
    if not all(hasattr(nx_graph, needed) for needed in ("nodes", "edges", "is_directed")):
        raise GraphError(f"a {type(nx_graph).__name__} is not a NetworkX graph", where="from_networkx")
    if nx_graph.is_directed() and direction == "check":
        raise GraphError(
            "the graph is directed but an undirected one is expected", where="NetworkX graph", fix=_DIRECTED
        )
    _warn_unread(nx_graph.nodes, features is None and feature is None, "feature")
    _warn_unread(nx_graph.edges, weight is None, "weight")
    names = list(nx_graph.nodes)
    position = {name: i for i, name in enumerate(names)}
    edges = list(nx_graph.edges(data=True))
    if feature is not None:
        features = [np.ravel(_attribute(d, feature, f"node {n!r}")) for n, d in nx_graph.nodes(data=True)]
    weights = None
    if weight:
        weights = [_attribute(d, weight, f"edge {u!r}-{v!r}") for u, v, d in edges]
    elif weight is None and (nx_graph.is_multigraph() or any("weight" in d for _, _, d in edges)):
        weights = [d.get("weight", 1) for _, _, d in edges]
    return Graph.from_edges(
        np.array([position[u] for u, _, _ in edges], dtype=np.int64),
        np.array([position[v] for _, v, _ in edges], dtype=np.int64),
        features=features,
        num_nodes=len(names),
        weights=weights,
        node_ids=id_array(names),
        # an undirected NetworkX graph lists each edge once
        direction="symmetrize"
        if not nx_graph.is_directed() and direction in ("check", "keep")
        else direction,
    )


def _warn_unread(view: Any, nothing_said: bool, argument: str) -> None:
    """Warn of attributes that hold numbers, of any node or edge, and are not read."""
    numbers = (Real, list, tuple, np.ndarray)
    found: dict[str, None] = {}
    for *_, attributes in view(data=True) if nothing_said else ():
        if argument in attributes:
            return
        for name, value in attributes.items():
            if (isinstance(value, numbers) or hasattr(value, "detach")) and not isinstance(value, bool):
                found[name] = None
    names = list(found)
    if names:
        warnings.warn(
            f"attributes {', '.join(map(repr, names))} are not read; nodejepa.from_networkx(graph, "
            f"{argument}={names[0]!r}) reads one",
            stacklevel=4,
        )


def _attribute(attributes: dict[str, Any], name: str, owner: str) -> Any:
    if name not in attributes:
        raise GraphError(f"{owner} has no attribute {name!r}", where="NetworkX graph")
    return attributes[name]


def _numpy(value: Any) -> Any:
    """A tensor as an array (a sparse one as a SciPy matrix); anything else as it is."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has no such type
        tensor = tensor.float()
    if str(tensor.layout) == "torch.strided":
        return tensor.numpy()
    coo = tensor.to_sparse_coo().coalesce()
    return sp.coo_array((coo.values().numpy(), tuple(coo.indices().numpy())), shape=tuple(coo.shape))


def optional_module(module: str, extra: str) -> Any:
    """A library that is not always there, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise GraphError(f"{module} is not installed", fix=f"pip install 'nodejepa[{extra}]'.") from None


def embeddings_frame(ids: npt.ArrayLike | Graph | None, embeddings: Any) -> Any:
    """A ``pandas.DataFrame`` with a row per node: index ``id``, columns ``z0``, ``z1``, ...

    Args:
        ids: the ids of the rows, in order, or the graph that has them. With None, rows are numbered.
        embeddings: ``[nodes, d]``, dense or SciPy sparse; a frame is aligned by its index.

    >>> embeddings_frame(["ann", "bob"], np.eye(2, dtype=np.float32)).loc["bob"].tolist()
    [0.0, 1.0]
    """
    pd = optional_module("pandas", "pandas")
    given = ids.node_ids if isinstance(ids, Graph) else ids
    names = None if given is None else np.asarray(given)
    z = check_embeddings(in_node_order(embeddings, names, where="embeddings"))
    dense = z if isinstance(z, np.ndarray) else z.toarray()
    index = pd.Index(np.arange(len(dense)) if given is None else given, name="id")
    if len(index) != len(dense):
        raise DataError(
            f"there are {len(index)} ids for {len(dense)} rows", where="ids", fix="Give one id a row."
        )
    return pd.DataFrame(dense, index=index, columns=[f"z{j}" for j in range(dense.shape[1])])
