"""Data flows left to right and imports only point left; importing the package stays cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import nodejepa

PACKAGE = Path(nodejepa.__file__).parent
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"

# A module may import from its own group and the groups above it; no two import each other. The rooms of a
# folder stand for themselves.
ORDER = [
    {"errors", "compiled", "files", "config", "machine"},
    {"graph_checks", "graph"},
    {"diagnostics", "neighbours"},
    {"structure"},
    {"tables"},
    {"data"},
    {"masking"},
    {"training.distributed"},  # losses sum through it, and columns are shared through it
    {"nn"},
    {"objectives"},
    {"training"},
    {"methods"},
    {"evaluation"},
    {"report"},
    {"study"},
    {"workflow"},
    {"demo"},
    {"pipeline"},
    {"nodejepa"},  # the package's own __init__: the public API
    {"cli"},
    {"__main__", "worker"},
]
RANK = {name: rank for rank, group in enumerate(ORDER) for name in group}
# Whoever uses the same tools beside each other knows nothing of the others.
SIBLINGS = [{"study"}, {"workflow"}]


def unit_of(path: Path) -> str:
    """The room or folder or top-level module a file belongs to."""
    first, *more = path.relative_to(PACKAGE).with_suffix("").parts
    return "nodejepa" if first == "__init__" else _unit([first, *more])


def _unit(parts: list[str]) -> str:
    room = ".".join(parts[:2])
    return room if room in RANK else parts[0]


def imported_units(path: Path) -> set[str]:
    """Units of this package that a file imports, wherever in the file, also for type checking only."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import; name the module in full"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    own = [name.split(".") for name in names if name.split(".")[0] == "nodejepa"]
    return {_unit(parts[1:]) if len(parts) > 1 and parts[1] in RANK else "nodejepa" for parts in own}


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.fixture(scope="module")
def edges():
    """Who imports whom: read by the process that asks, not by every one that collects tests."""
    return {(unit_of(path), unit) for path in FILES for unit in imported_units(path)}


def test_every_module_has_its_place():
    assert {unit_of(path) for path in FILES} <= RANK.keys(), "give the new module a group in ORDER"


def test_imports_point_left(edges):
    wrong = {(unit, other) for unit, other in edges if RANK[other] > RANK[unit]}
    assert not wrong, "the first of each pair may not import the second: it stands to its left"


def test_no_two_modules_import_each_other(edges):
    assert not {(a, b) for a, b in edges if a != b and (b, a) in edges}


@pytest.mark.parametrize("family", SIBLINGS, ids=lambda family: min(family))
def test_siblings_know_nothing_of_each_other(edges, family):
    others = set().union(*SIBLINGS) - family
    assert not {(a, b) for a, b in edges if a in family and b in others}


def test_the_walk_sees_imports(edges):
    """The tests above would pass on an empty set."""
    assert {("graph", "graph_checks"), ("graph", "errors"), ("tables", "graph")} <= edges
    assert {("study", "report"), ("workflow", "report")} <= edges


def test_no_optional_package_takes_part_in_what_is_computed():
    """So that the bits of a graph in memory are the same whatever is installed."""
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    tools = {"dev", "docs"}
    optional = {re.split(r"[\[>=<]", line)[0] for name in extras.keys() - tools for line in extras[name]}
    optional = {name.replace("-", "_") for name in optional}
    assert {"ray", "torch_geometric"} <= optional
    computing = [path for path in FILES if RANK["graph"] <= RANK[unit_of(path)] <= RANK["evaluation"]]
    assert len(computing) > 60
    for path in computing:
        if unit_of(path) in {
            "tables",
            "data",
            "training.distributed",
        }:  # their own library reads or starts them
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            assert not {name.split(".")[0] for name in names} & optional, path


NOT_LOADED = {  # one after the other in one process
    "import nodejepa": "torch sklearn numba torch_geometric networkx matplotlib pandas",
    "import nodejepa.cli": "torch pydantic sklearn numba matplotlib pandas",
    "import nodejepa.data; nodejepa.Graph; nodejepa.as_graph": "torch networkx matplotlib pandas",
    "import nodejepa.methods, nodejepa.evaluation": "torch_geometric matplotlib",
}


@pytest.mark.slow
def test_importing_stays_cheap():
    look = "print(*{name.split('.')[0] for name in sys.modules})"
    code = "\n".join(["import sys", *(f"{statement}\n{look}" for statement in NOT_LOADED)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line, forbidden in zip(done.stdout.splitlines(), NOT_LOADED.values(), strict=True):
        assert not set(line.split()) & set(forbidden.split())


def test_version_is_the_one_of_pyproject():
    assert nodejepa.__version__ == tomllib.loads(PYPROJECT.read_text())["project"]["version"]


def test_every_public_name_exists_and_is_listed():
    for name in nodejepa.__all__:
        assert getattr(nodejepa, name) is not None
    assert set(nodejepa.__all__) <= set(dir(nodejepa))
    with pytest.raises(AttributeError, match="no attribute 'grahp'"):
        nodejepa.grahp  # noqa: B018
