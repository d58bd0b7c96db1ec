"""docs/fidelity.md names tests and records that exist, and counts its verdicts right."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("|") and not line.startswith("|---")
]
VERDICTS = {row[0]: int(row[2]) for row in ROWS if len(row) == 3 and row[2].isdigit()}
STATEMENTS = [row for row in ROWS if len(row) == 5 and row[0] != "where"]
NAMED = sorted({name for row in STATEMENTS for name in re.findall(r"`([^`]+)`", row[4])})


@cache
def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_exists(name: str) -> None:
    path, _, test = name.partition("::")
    assert (ROOT / path).is_file()
    if path.endswith(".py"):
        assert test in functions_in(ROOT / path)


def test_every_statement_has_a_verdict_and_something_that_shows_it() -> None:
    assert len(STATEMENTS) > 80
    for _, says, verdict, here, shown in STATEMENTS:
        assert verdict in VERDICTS, says
        assert here or verdict == "exact", says
        assert re.fullmatch(r"`[^`]+`(, `[^`]+`)*", shown), says


def test_verdicts_are_counted_right() -> None:
    assert Counter(row[2] for row in STATEMENTS) == VERDICTS
