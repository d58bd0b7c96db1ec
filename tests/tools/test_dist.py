"""A release builds to the same bytes, and its wheel runs anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from tools.dist import ROOT, build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / ".git").exists() or shutil.which("git") is None, reason="needs the git checkout"
    ),
    pytest.mark.skipif(int(version("setuptools").split(".")[0]) < 77, reason="needs setuptools 77"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build(tmp_path_factory.mktemp("dist"))


def test_a_second_build_has_the_same_bytes(built: list[Path], tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        again = build(tmp_path)
    finally:
        os.umask(before)
    assert [path.name for path in again] == [path.name for path in built]
    for first, second in zip(built, again, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_sdist_holds_all_of_the_package_and_no_part_of_the_tests(built: list[Path]) -> None:
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    committed = {path for path in listed.stdout.splitlines() if path.startswith("src/nodejepa/")}
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert committed <= names
    assert not [name for name in names if name.startswith("tests")]


def test_the_wheel_runs_the_demo_from_an_empty_folder(built: list[Path], tmp_path: Path) -> None:
    """Unpacked before everything else on the path, as an installation would be; nothing of the checkout."""
    place, empty = tmp_path / "installed", tmp_path / "empty"
    empty.mkdir()
    shutil.unpack_archive(built[0], place, "zip")
    expected = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    script = (  # a smaller graph and one method, as tests/test_pipeline.py has the demo itself
        "import nodejepa, sys; print(nodejepa.__version__, nodejepa.__file__)\n"
        "from dataclasses import replace; from functools import partial; from nodejepa import demo\n"
        "small = demo.load_dataset('synthetic:nodes=120,edges=400,features=8,classes=2')\n"
        "demo.load_dataset = lambda _: replace(small, name='digits')\n"
        "demo.run_demo = partial(demo.run_demo, methods=('raw',))\n"
        "from nodejepa.__main__ import main; sys.argv = ['nodejepa', 'demo']; main()"
    )
    environment = os.environ | {"PYTHONPATH": str(place), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=empty, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{expected} {place}" in done.stdout
    assert (empty / "demo" / "report.html").is_file()
