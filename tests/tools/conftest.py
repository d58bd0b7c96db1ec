"""The website, built once for what reads it and what looks at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site in a folder of its own; warnings are errors, and so are broken links."""
    folder = tmp_path_factory.mktemp("site")
    nowhere = {f"{way}_proxy": "http://127.0.0.1:9" for way in ("http", "https")}
    doctrees = str(tmp_path_factory.mktemp("doctrees"))
    options = ["-q", "-W", "--keep-going", "-c", "docs", "-d", doctrees]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(folder)],
        cwd=ROOT,
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
