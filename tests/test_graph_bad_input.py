"""Whatever is fed to Graph, the answer is a valid graph or the package's own error, and no warning."""

from __future__ import annotations

import decimal
import fractions
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nodejepa.errors import GraphError, NodeJEPAError
from nodejepa.graph import Graph

GOOD: dict[str, Any] = {"source": [0, 1, 2], "target": [1, 2, 0], "features": np.eye(3)}


class Hostile:
    """Raises from every conversion an array library might try."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise RuntimeError("hostile")

    __array__ = __len__ = __iter__ = __float__ = __int__ = __index__ = __eq__ = __hash__ = _refuse


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70).filter(
        lambda n: not 10**5 < n < 2**31
    )  # a legitimate size, but a large one
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.datetimes()
    | st.decimals()
    | st.fractions()
    | st.builds(Hostile)
    | st.sampled_from([object(), np.datetime64("NaT"), pd.NA, pd.NaT, Graph, 10**400, 1e300, "1", 2**63])
)
small = st.integers(0, 4)
dtypes = (
    hnp.scalar_dtypes()
    | hnp.array_dtypes()
    | st.sampled_from(
        [np.dtype(object), np.dtype("f2"), np.dtype("f4"), np.dtype("longdouble"), np.dtype("u8")]
    )
)


def elements(dtype: np.dtype[Any]) -> st.SearchStrategy[Any] | None:
    """Integers stay small or become impossible: positions near 10^9 are legitimate and take gigabytes."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return st.integers(max(limits.min, -5), min(limits.max, 5)) | st.sampled_from([limits.min]).filter(
            lambda n: n < 0 or dtype.kind == "u"
        )
    return scalars if dtype.kind == "O" else None


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    dtype = draw(dtypes)
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    try:
        return draw(hnp.arrays(dtype, shape, elements=elements(dtype), fill=st.nothing()))
    except (TypeError, ValueError):  # NumPy cannot hold what was drawn
        return np.empty(shape, dtype=object)


@st.composite
def sparse(draw: st.DrawFn) -> Any:
    rows, columns, entries = (
        draw(small),
        draw(small),
        draw(st.integers(0, 6)),
    )
    dtype = draw(
        st.sampled_from([bool, np.int8, np.uint64, np.float32, np.float64, np.complex64, np.longdouble])
    )
    if not rows * columns:
        entries = 0
    values = draw(
        st.lists(st.sampled_from([0, 1, -1, 2.5, np.nan, np.inf, 1e300]), min_size=entries, max_size=entries)
    )
    with np.errstate(all="ignore"):
        data = np.array(values, dtype=np.float64).astype(dtype)
    index = [
        draw(st.lists(st.integers(0, max(0, n - 1)), min_size=entries, max_size=entries))
        for n in (rows, columns)
    ]
    matrix = sp.coo_array((data, index), shape=(rows, columns))
    if np.dtype(dtype) in (np.dtype(np.longdouble),):
        return matrix
    return matrix.asformat(draw(st.sampled_from(["coo", "csr", "csc"])))


garbage = (
    scalars
    | arrays()
    | sparse()
    | st.recursive(
        scalars | small, lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner), max_leaves=12
    )
    | st.lists(small, max_size=5)
    | st.dictionaries(small, scalars, max_size=3)
    | st.sets(small, max_size=3)
    | arrays().map(
        lambda a: np.ma.masked_array(a, mask=np.ones(a.shape, dtype=bool)) if a.dtype.kind in "if" else a
    )
    | st.sampled_from(
        [torch.ones(3, requires_grad=True), torch.eye(3).to_sparse(), torch.ones(3, 3).bfloat16()]
    )
    | st.lists(small, max_size=3).map(lambda values: (v for v in values))
)


def assert_valid(graph: Graph) -> None:
    assert graph.num_nodes > 0
    assert graph.adjacency.shape == (graph.num_nodes, graph.num_nodes)
    assert np.all(np.isfinite(graph.adjacency.data))
    assert np.all(graph.adjacency.data > 0)
    assert not graph.adjacency.diagonal().any()
    assert graph.features.shape[0] == graph.num_nodes
    values = graph.features if isinstance(graph.features, np.ndarray) else graph.features.data
    assert values.dtype == np.float32
    assert np.all(np.isfinite(values))
    assert graph.directed or abs(graph.adjacency - graph.adjacency.T).nnz == 0
    if graph.node_ids is not None:
        assert len(set(graph.node_ids.tolist())) == graph.num_nodes
    assert np.isfinite(graph.normalized_adjacency.data).all()
    assert len(graph.content_hash) == 64


def build_or_refuse(make: Any, *args: Any, **kwargs: Any) -> None:
    """Anything but a NodeJEPAError fails the test; so does a warning (pyproject makes them errors)."""
    try:
        graph = make(*args, **kwargs)
    except NodeJEPAError as error:
        message = str(error)
    else:
        message = ""
    if not message:
        assert_valid(graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    "argument", ["source", "target", "features", "num_nodes", "weights", "node_ids", "direction"]
)
@given(value=garbage)
def test_garbage_in_one_argument_of_from_edges(argument, value):
    build_or_refuse(Graph.from_edges, **{**GOOD, argument: value})


@pytest.mark.slow
@given(st.fixed_dictionaries({"source": garbage, "target": garbage}, optional={
    "features": garbage, "num_nodes": scalars | small, "weights": garbage, "node_ids": garbage,
}))  # fmt: skip
def test_garbage_in_every_argument_of_from_edges(arguments):
    build_or_refuse(Graph.from_edges, **arguments)


@pytest.mark.slow
@given(garbage, garbage, garbage, st.sampled_from(["check", "keep", "symmetrize"]) | scalars)
def test_garbage_into_from_scipy(adjacency, features, node_ids, direction):
    build_or_refuse(Graph.from_scipy, adjacency, features, node_ids=node_ids, direction=direction)


@pytest.mark.slow
@given(sparse(), sparse() | st.none())
@example(sp.csr_array((2, 2), dtype=np.complex64), None)
def test_any_sparse_matrix_into_from_scipy(adjacency, features):
    build_or_refuse(Graph.from_scipy, adjacency, features, direction="symmetrize")


@pytest.mark.slow
@given(garbage)
def test_garbage_into_with_features(value):
    build_or_refuse(Graph.from_edges([0], [1], num_nodes=3).with_features, value)


def damaged_csr() -> sp.csr_array:
    matrix = sp.csr_array(np.eye(3))
    matrix.indices[1] = 10**6
    return matrix


REFUSED = {
    "NaN feature": ({"features": [[1.0], [np.nan], [0]]}, "row 1, column 0 is nan"),
    "infinite feature": ({"features": [[1.0], [0], [np.inf]]}, "row 2, column 0 is inf"),
    "too large for float32": ({"features": [[1e300], [0], [0]]}, "row 0, column 0 is inf"),
    "NaN in sparse features": (
        {"features": sp.csr_array(([1, np.nan], ([0, 2], [0, 1])), shape=(3, 2))},
        "row 2, column 1 is nan",
    ),
    "damaged sparse features": ({"features": damaged_csr()}, "damaged"),
    "complex sparse features": ({"features": sp.eye_array(3, dtype=complex)}, "complex128"),
    "complex features": ({"features": np.eye(3) * 1j}, "not real numbers"),
    "dates as features": ({"features": np.zeros((3, 1), dtype="datetime64[s]")}, "not real numbers"),
    "text as features": ({"features": [["1"], ["2"], ["3"]]}, "not real numbers"),
    "ragged features": ({"features": [[1], [1, 2], [3]]}, "cannot be read"),
    "flat features": ({"features": [1, 2, 3]}, r"shape \(3,\)"),
    "too few rows": ({"features": np.eye(2), "num_nodes": 3}, r"shape \(2, 2\) for 3 nodes"),
    "masked features": ({"features": np.ma.masked_invalid([[1], [np.nan], [2]])}, "missing"),
    "tensor with a gradient": ({"features": torch.eye(3, requires_grad=True)}, "cannot be read"),
    "position out of range": ({"source": [0, 1, 3]}, r"source\[2\] is 3 .* from 0 to 2"),
    "negative position": ({"target": [0, -1, 2]}, r"target\[1\] is -1"),
    "fractional position": ({"source": [0, 1, 0.5]}, "not only whole numbers"),
    "NaN position": ({"source": [0, 1, np.nan]}, "not only whole numbers"),
    "infinite position": ({"source": [0, 1, np.inf]}, r"source\[2\] is inf"),
    "boolean positions": ({"source": [True, False, True]}, "bool"),
    "wrapping uint64": ({"source": np.array([0, 1, 2**64 - 1], dtype=np.uint64)}, "18446744073709551615"),
    "number beyond 64 bits": ({"source": [0, 1, 2**70]}, "not only whole numbers"),
    "names as positions": ({"source": ["a", "b", "c"]}, "node_ids"),
    "two-dimensional edges": ({"source": [[0, 1], [1, 2]]}, "2 dimensions"),
    "generator": ({"source": (i for i in range(3))}, "0 dimensions"),
    "unequal lengths": ({"source": [0]}, "source has 1 entries and target 3"),
    "a billion-sized position": ({"source": [0], "target": [10**9], "features": None}, "only 1 edges"),
    "no nodes": ({"source": [], "target": [], "features": None}, "empty"),
    "negative count": ({"features": None, "num_nodes": -1}, "empty"),
    "fractional count": ({"features": None, "num_nodes": 3.0}, "num_nodes is a float"),
    "count as text": ({"features": None, "num_nodes": "3"}, "num_nodes is a str"),
    "count beyond 32 bits": ({"features": None, "num_nodes": 2**40}, "more than 2147483647"),
    "negative weight": ({"weights": [1, -1, 1]}, r"weights\[1\] is -1"),
    "NaN weight": ({"weights": [1, np.nan, 1]}, r"weights\[1\] is nan"),
    "too few weights": ({"weights": [1]}, r"shape \(1,\) for 3 edges"),
    "complex weights": ({"weights": np.ones(3) * 1j}, "not real numbers"),
    "weights as text": ({"weights": ["1", "1", "1"]}, "not real numbers"),
    "repeated ids": ({"node_ids": ["a", "b", "a"]}, "the id 'a' is that of nodes 0 and 2"),
    "NaN id": ({"node_ids": [1.0, np.nan, 2.0]}, "id of node 1 is missing"),
    "None id": ({"node_ids": ["a", None, "b"]}, "id of node 1 is missing"),
    "NaT id": ({"node_ids": np.array(["2020", "NaT", "2021"], dtype="datetime64[ns]")}, "missing"),
    "unhashable id": ({"node_ids": [[1], [2], [3]]}, "the id of node 0 cannot be a list"),
    "unordered ids": ({"node_ids": {1, 2, 3}}, "node_ids is a set"),
    "one text as ids": ({"node_ids": "abc"}, "node_ids is a str"),
    "too few ids": ({"node_ids": [1]}, r"shape \(1,\) for 3 nodes"),
    "one-way edges": ({"direction": "check"}, "the graph is directed"),
    "unknown direction": ({"direction": "both"}, "check, symmetrize, keep"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusal_says_what_is_wrong(case):
    change, message = REFUSED[case]
    with pytest.raises(GraphError, match=message):
        Graph.from_edges(**{**GOOD, **change})


def test_damaged_adjacency_is_refused_before_scipy_trusts_it():
    with pytest.raises(GraphError, match="damaged"):
        Graph.from_scipy(damaged_csr())


@pytest.mark.parametrize(
    "features",
    [
        np.array([[True], [False], [True]]),
        [[decimal.Decimal("0.5")], [fractions.Fraction(1, 2)], [1]],
        np.ones((3, 1), dtype=np.float16),
        np.ones((1, 3), dtype=np.uint64).T,
        pd.DataFrame({"x": [1, 2, 3]}),
        torch.ones(3, 1),
        np.ones((3, 2), dtype=">f8"),
    ],
)
def test_every_kind_of_real_number_is_taken(features):
    assert_valid(Graph.from_edges(**{**GOOD, "features": features}))


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "longdouble", "i1", "u8", ">i4"])
def test_positions_and_weights_of_every_width(kind):
    ends = np.array([0, 1, 2], dtype=kind)
    graph = Graph.from_edges(ends, ends[::-1], weights=ends, num_nodes=3)
    assert graph.adjacency.toarray().tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]


def test_an_error_names_place_and_remedy():
    with pytest.raises(GraphError) as caught:
        Graph.from_edges([0], [5], num_nodes=2)
    assert caught.value.where == "edges"
    assert "from 0 to 1" in caught.value.fix


def test_series_of_different_indexes_are_not_paired_by_position():
    edges = pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3], "weight": [1.0, 2.0, 3.0]}, [7, 8, 9])
    assert Graph.from_edges(edges["source"], edges["target"], weights=edges["weight"]).num_edges == 6
    assert Graph.from_edges(edges["source"], [1, 2, 3], weights=edges["weight"]).num_edges == 6
    turned = edges[::-1]
    for target, weights in ((edges["target"], turned["weight"]), (turned["target"], None)):
        with pytest.raises(GraphError, match="different indexes"):
            Graph.from_edges(edges["source"], target, weights=weights)
