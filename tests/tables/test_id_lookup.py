"""Ids of any kind, typed or as text, lead to their row; near misses get advice."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodejepa.errors import DataError
from nodejepa.graph_checks import id_array
from nodejepa.tables import find_row, find_rows

SOMEBODY = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("ids", "text", "row"),
    [
        (["a", "b"], "b", 1),
        (["007", "7"], "7", 1),
        ([7, 70, -(2**63), 2**63 - 1], "70", 1),
        ([7, 70, -(2**63), 2**63 - 1], str(2**63 - 1), 3),
        ([7, 70, -(2**63), 2**63 - 1], " +7 ", 0),
        ([7, -5], "-5", 1),
        ([0.5, 1.0], "1.0", 1),
        ([SOMEBODY, uuid.UUID(int=8)], str(SOMEBODY), 0),
        (["", "\n"], "", 0),
    ],
)
def test_text_is_read_as_the_ids_are(ids, text, row):
    assert find_row(id_array(ids), text) == row


def test_unsigned_ids():
    assert find_row(np.array([2**64 - 1, 1], dtype=np.uint64), str(2**64 - 1)) == 0


@given(st.lists(st.text(), unique=True, min_size=1), st.data())
def test_every_text_is_found(ids, data):
    row = data.draw(st.integers(0, len(ids) - 1))
    assert find_row(id_array(ids), ids[row]) == row
    assert find_rows(id_array(ids), [ids[row]]).tolist() == [row]


@pytest.mark.parametrize(
    ("ids", "text", "advice"),
    [
        (["user-17", "user-18"], "User-17 ", "mean 'user-17'"),
        (["user-17", "robot"], "user17", "mean 'user-17'"),
        (["red", "green"], "qqqq", "look like 'red', 'green'"),
        ([10, 20, 30], "17", "whole numbers from 10 to 30"),
        ([100, 200], "1OO", "from 100 to 200"),
        ([10, 20], "9" * 100, "from 10 to 20"),
    ],
)
def test_near_misses_get_advice(ids, text, advice):
    with pytest.raises(DataError, match="there is no node") as caught:
        find_row(id_array(ids), text)
    assert advice in caught.value.fix


@pytest.mark.slow
def test_a_near_miss_among_many_is_found():
    ids = np.array([f"{i * 2654435761 % 2**32:08x}" for i in range(60_000)])
    wanted = str(ids[31415])
    for at in range(8):
        for slip in (
            wanted[:at] + "x" + wanted[at + 1 :],
            wanted[:at] + wanted[at + 1 :],
            wanted[:at] + "x" + wanted[at:],
            wanted[:at] + wanted[at + 1 : at + 2] + wanted[at : at + 1] + wanted[at + 2 :],
        ):
            if slip != wanted:
                with pytest.raises(DataError, match=f"mean '{wanted}'\\?"):
                    find_row(ids, slip)


def test_ids_that_stand_twice_are_refused():
    with pytest.raises(DataError, match="2 rows have the id 'a': 0, 2"):
        find_row(np.array(["a", "b", "a"]), "a")
    with pytest.raises(DataError, match="rows 0 and 2 have the same id"):
        find_rows(["a", "b", "a"], ["b"])


def test_rows_of_keeps_the_order_and_takes_numpy_values():
    assert find_rows(np.array([5, 6, 7]), np.array([7, 5, 7])).tolist() == [2, 0, 2]
    assert find_rows(["a"], []).size == 0
    for unknown in (["b"], [["a"]], [None]):
        with pytest.raises(DataError, match="no node"):
            find_rows(["a"], unknown)
