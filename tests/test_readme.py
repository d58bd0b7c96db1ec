"""What README and CONTRIBUTING tell people to type works."""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from nodejepa.cli import main
from nodejepa.data import load_dataset
from nodejepa.data.catalogue import CATALOGUE
from nodejepa.demo import write_as_csv
from nodejepa.errors import DataError

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


COMMANDS = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
OURS = [line for line in COMMANDS if line.startswith("nodejepa")]
NEEDS_FILES = {name for name, entry in CATALOGUE.items() if entry.files}


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python"))
def test_python_block_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


@pytest.fixture
def folder(tmp_path):
    """A checkout after ``make demo``, as far as the commands need it, with a smaller graph."""
    small = load_dataset("synthetic:nodes=300,edges=1200,features=16,classes=3,seed=1")
    write_as_csv(replace(small, name="digits"), tmp_path / "demo")
    for file in (
        *ROOT.glob("studies/*.toml"),
        *ROOT.glob("studies/main/records.jsonl"),
        *ROOT.glob("studies/*/tables/*"),
        ROOT / "docs" / "results.md",
    ):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    return tmp_path


@pytest.mark.slow
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
    assert len(blocks("python")) >= 2
    assert len(OURS) >= 5
    assert set(COMMANDS) - set(OURS) == {"make demo", "make test"}


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    assert set(re.findall(r"(?:^ +|`)make ([a-z-]+)\b", PROSE, flags=re.MULTILINE)) <= targets


def test_linked_files_exist():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", PROSE):
        assert (ROOT / target).exists(), target


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()


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
