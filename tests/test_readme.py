"""What README, CONTRIBUTING and the pages of the website tell people to type works."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import torch
from tests.small import small_entry

from nodejepa.cli import main
from nodejepa.data import load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.demo import write_as_csv
from nodejepa.errors import DataError

ROOT = Path(__file__).parents[1]
IN_ORDER = (
    "index",
    "own-graph",
    "which-method",
    "scale",
    "training-in-parts",
    "command-line",
    "scores",
    "reproduce",
)
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in IN_ORDER)]
BESIDE = ROOT / "docs" / "coming-from.md"  # its blocks are given something first
PROSE = [*PAGES, ROOT / "CONTRIBUTING.md"]


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """In the order of the pages, each once."""
    found = re.compile(rf"^```{language}\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
    return list(dict.fromkeys(block for page in PAGES for block in found.findall(text(page))))


LINES = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
COMMANDS = list(dict.fromkeys(LINES))
OURS = [line for line in COMMANDS if line.startswith("nodejepa")]
NEEDS_FILES = {name for name, entry in CATALOGUE.items() if entry.files}


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text(page), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_our_lines_beside_other_libraries_run(tmp_path, monkeypatch, capsys):
    """Each block names what it is given in its first line; theirs are ``text`` and are not run."""
    given = load_dataset("digits")
    features = np.asarray(given.graph.features)
    source, target, _ = given.graph.edge_arrays()
    split = given.split(seed=1)
    names = {
        "data": SimpleNamespace(
            x=torch.from_numpy(features.copy()), edge_index=torch.from_numpy(np.stack([source, target]))
        ),
        "graph": networkx.karate_club_graph(),
        "adjacency": given.graph.adjacency,
        "X": features,
        "y": given.labels,
        "train": split.train,
        "test": split.test,
        "z_text": features,
        "cites": (source, target),
    }
    monkeypatch.chdir(tmp_path)
    Path("edges.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in zip(source, target, strict=True)))
    found = python_blocks(BESIDE)
    assert len(found) == 5
    for code in found:
        exec(compile(code, "coming-from", "exec"), dict(names))
        assert capsys.readouterr().out.strip()


@pytest.mark.slow
@pytest.mark.usefixtures("_small_digits")
@pytest.mark.parametrize("code", blocks("python"))
def test_python_block_runs(code, capsys):
    exec(compile(code, "a page", "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.fixture
def _small_digits(monkeypatch):
    """A smaller graph for ``digits``."""
    monkeypatch.setitem(CATALOGUE, "digits", small_entry())


@pytest.fixture
def folder(tmp_path, _small_digits, small_digits):
    """A checkout after ``make demo``, as far as the commands need it."""
    write_as_csv(small_digits, tmp_path / "demo")
    for file in (
        *ROOT.glob("studies/*.toml"),
        *ROOT.glob("studies/main/records.jsonl"),
        *ROOT.glob("studies/*/tables/*.*"),
        ROOT / "docs" / "tables.md",
    ):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    records = tmp_path / "studies" / "main" / "records.jsonl"  # of one graph
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(line for line in lines if json.loads(line)["dataset"] == "photo"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(1800)  # a minute and a half of work, on machines that may be busy
def test_commands_run_in_their_order(folder, monkeypatch, capsys):
    """One test: a later command may read what an earlier one wrote.

    On graphs that need files a command stops where they would be read: its options were understood.
    """
    monkeypatch.chdir(folder)

    def no_files(name: str, root: object = None) -> None:
        raise DataError(f"no files of {name}", where=str(root))

    for line in OURS:
        arguments = shlex.split(line)[1:]
        needs_files = bool(NEEDS_FILES & set(arguments))
        with monkeypatch.context() as patch:
            if needs_files:
                patch.setattr("nodejepa.data.load_dataset", no_files)
            with pytest.raises(SystemExit) as left:
                main(arguments)
        out, err = capsys.readouterr()
        if needs_files:
            assert left.value.code == 2, line
            assert "no files of" in err, line
        else:
            assert not left.value.code, f"{line}: {err}"
            assert out, line


def test_blocks_were_found():
    assert len(blocks("python")) >= 3
    assert len(OURS) >= 20
    assert set(COMMANDS) - set(OURS) == {"make demo", "make test", "python -m studies.render main"}


def test_every_page_with_commands_is_read():
    """The log, decisions and the like hold none that a reader is to type."""
    told = {
        page for page in ROOT.glob("docs/*.md") if re.search(r"^```(bash|python)$", text(page), re.MULTILINE)
    }
    assert told <= {*PAGES, BESIDE}


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    for page in PROSE:
        assert set(re.findall(r"(?:^ +|`)make ([a-z-]+)\b", text(page), flags=re.MULTILINE)) <= targets, page


def test_linked_files_exist():
    for page in {*PROSE, *ROOT.glob("docs/*.md")}:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text(page)):
            assert (page.parent / target).is_file(), (page, target)


def test_contributing_names_what_is_there():
    """Every module and folder is in the tree, every file that is named exists, and so does its function."""
    page, source = text(ROOT / "CONTRIBUTING.md"), ROOT / "src" / "nodejepa"
    tree = page.partition("## A CSV")[0]
    for path in source.iterdir():
        if path.suffix == ".py" and not path.stem.startswith("__"):
            assert re.search(rf"\b{path.name}\b", tree), path
        elif path.is_dir() and path.name != "__pycache__":
            assert f"\n      {path.name}/ " in tree, path
    for name in set(re.findall(r"`([\w/]+\.py)`", page)):
        assert "NAME" in name or (source / name).is_file() or (ROOT / name).is_file(), name
    steps = re.findall(r"^\| `([\w/]+\.py)` \| `(\w+)` \|", page, flags=re.MULTILINE)
    assert len(steps) == 11
    for name, function in steps:
        assert f"def {function}(" in text(source / name), (name, function)


def test_readme_is_short():
    """What a visitor needs; the rest has pages. The table grows with the study."""
    prose = re.sub(r"<!-- table .*?<!-- end -->", "", text(ROOT / "README.md"), flags=re.DOTALL)
    assert len(prose.splitlines()) <= 60


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation, changes = text(ROOT / "CITATION.cff"), text(ROOT / "CHANGELOG.md")
    (day,) = re.findall(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changes, flags=re.MULTILINE)
    assert f"version: {version}\n" in citation
    assert f'date-released: "{day}"\n' in citation
    assert f"Version {version}," in text(ROOT / "README.md")


def test_pins_cover_every_dependency_and_name_no_registry():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {line.split("==")[0].lower().replace("_", "-") for line in lines if not line.startswith("#")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted} - {"nodejepa"}
    assert names <= pins
    assert all(re.fullmatch(r"[\w.-]+==[\w.!]+", line) for line in lines if not line.startswith("#"))
