"""Columns that look like ends or features and are not: names of ids, running numbers."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from nodejepa import GraphError, read_graph

RNG = np.random.default_rng(0)
ENDS = RNG.integers(1, 300, (900, 2))


def ends_of(table):
    columns = read_graph(table).report.edge_columns
    return columns["source"], columns["target"]


def test_a_name_of_an_id_is_no_other_end():
    one, two = ENDS.T
    names = {"customer_name": [f"C{a}" for a in one], "product_name": [f"P{b}" for b in two]}
    bought = pd.DataFrame({"customer_id": one, **names, "product_id": two + 1000})
    order = ["customer_id", "customer_name", "product_id", "product_name"]
    assert ends_of(bought[order]) == ("customer_id", "product_id")
    assert ends_of(bought[order[:3]]) == ("customer_id", "product_id")
    stations = pd.DataFrame(
        {"station": names["customer_name"], "station_id": one, "next_station": [f"C{b}" for b in two], "m": 1}
    )
    assert ends_of(stations) == ("station", "next_station")
    matching = pd.DataFrame({"source": [1, 2, 3] * 5, "target": [4, 5, 6] * 5})  # each pair five times
    assert ends_of(matching) == ("source", "target")


def test_routes_are_between_airports_and_not_between_names_of_airlines(tmp_path):
    flights = nx.gnm_random_graph(60, 400, seed=1).edges
    lines = ["AA", "BA", "LH", "UA"]
    table = pd.DataFrame(
        [(lines[i % 4], 10 + i % 4, f"A{a}", a, f"A{b}", b) for i, (a, b) in enumerate(flights)],
        columns=[
            "airline",
            "airline_id",
            "source_airport",
            "source_airport_id",
            "dest_airport",
            "dest_airport_id",
        ],
    )
    table.to_csv(tmp_path / "routes.csv", index=False, header=False)
    for edges in (table, tmp_path / "routes.csv"):
        with pytest.raises(GraphError, match="may all be ends"):
            read_graph(edges)
    assert read_graph(table, source="source_airport", target="dest_airport").graph.num_nodes == 60


def test_a_running_number_beside_the_ids_is_no_feature():
    nodes = pd.DataFrame({"name": [f"n{i}" for i in range(300)], "x": RNG.normal(size=300), "id": range(300)})
    edges = pd.DataFrame(
        {"source": [f"n{a}" for a in ENDS[:, 0]], "target": [f"n{b % 300}" for b in ENDS[:, 1]]}
    )
    report = read_graph(edges, nodes).report
    assert report.id_column == "name"
    assert set(report.feature_columns) == {"x"}
    assert report.dropped_columns == {"id": "numbers the rows"}
    shuffled = nodes.assign(id=RNG.permutation(300))
    assert set(read_graph(edges, shuffled).report.feature_columns) == {"x", "id"}


def test_attributes_in_braces_and_unnamed_weights_are_warned_of(tmp_path):
    graph = nx.gnm_random_graph(20, 60, seed=0)
    nx.set_edge_attributes(graph, 2, "weight")
    nx.write_edgelist(graph, tmp_path / "w.txt")
    (warning,) = read_graph(tmp_path / "w.txt").report.warnings
    assert "networkx.write_edgelist" in warning
    links = pd.DataFrame({"source": ENDS[:, 0], "target": ENDS[:, 1], "value": 3})
    assert "column 'value' of numbers is not used" in read_graph(links).report.warnings[0]


def test_edges_without_rows_are_refused_whatever_columns_they_have():
    nothing = pd.DataFrame({"source": [], "target": [], "value": []})
    with pytest.raises(GraphError, match="no rows"):
        read_graph(nothing)
