"""The notebooks are the scripts in ``examples/``; they run offline, silently, and say what they should."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.forked import Forked
from tools.notebooks import cells, notebook, page

FOLDER = Path(__file__).parents[1] / "examples"

SAYS = {
    "01_own_csv_in_ten_lines.py": [
        r"Graph\(nodes=300, edges=\d+, features=\d+\)",
        r"effective rank",
        r"nearest to customer-000: customer-\d{3}(, customer-\d{3}){4}\n",
        r"note: edges run from column 'source'",
        r"(100|[5-9]\d)% of the five nearest",  # far above the third that chance gives
    ],
    "02_compare_methods.py": [
        r"  linear-jepa +links \d\.\d\d",
        r"recommended: linear-jepa - Take linear-jepa, the default",
        r"  linear-jepa +\d\d\.\d % test accuracy",
        r"recommended: [a-z-]+ - Take [a-z-]+: its test accuracy",
        r"  linear-jepa +\d\d\.\d ± \d",
        r"linear-jepa - raw .* Holm p = \d\.\d{3}: [a-z]+",
        r"linear-jepa - sgc .* Holm p = ",
        r"linear-jepa - random-gcn .* Holm p = ",
    ],
    "03_add_a_method_in_one_file.py": [
        r"loss \d\.\d+ -> \d\.\d+, embeddings \(180, 32\)",
        r"loaded again: the same embeddings",
        r"gae: \d+\.\d % test accuracy",
        r"sgc: \d+\.\d % test accuracy",
    ],
}


def test_every_example_is_run_here():
    assert [path.name for path in sorted(FOLDER.glob("*.py"))] == sorted(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_notebook_is_up_to_date(name):
    """``python -m tools.notebooks`` writes it again."""
    script = FOLDER / name
    made = notebook(script.read_text(encoding="utf-8"))
    assert script.with_suffix(".ipynb").read_text(encoding="utf-8") == made


@pytest.mark.parametrize("name", SAYS)
def test_no_line_of_a_script_is_lost(name):
    script = (FOLDER / name).read_text(encoding="utf-8")
    code = [line for kind, text in cells(script) if kind == "code" for line in text.splitlines() if line]
    assert code == [
        line for line in script.splitlines() if line and not re.match(r"# %%|#( |$)(?!.*noqa)", line)
    ]
    assert page(script).count("```python") == sum(kind == "code" for kind, _ in cells(script))


RUN = """
import json, sys, warnings
from nodejepa.data.catalogue import CATALOGUE
from tests.small import small_entry
CATALOGUE["digits"] = small_entry()
for kind in (UserWarning, RuntimeWarning):
    warnings.simplefilter("error", kind)
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), cell["id"], "exec"), globals())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_notebook_runs_and_says_what_it_should(name, tmp_path, monkeypatch):
    """Its cells in their order, as a kernel runs them; they are the script's."""
    monkeypatch.chdir(tmp_path)
    nowhere = {f"{way}_proxy": "http://127.0.0.1:9" for way in ("http", "https")}
    environment = os.environ | nowhere | {"TMPDIR": str(tmp_path), "NODEJEPA_DATA": str(tmp_path / "none")}
    code, said = Forked(RUN, (FOLDER / name).with_suffix(".ipynb"), env=environment).wait()
    assert code == 0, said
    for pattern in SAYS[name]:
        assert re.search(pattern, said), (pattern, said)
    assert "Warning" not in said


def test_the_ten_lines_are_ten():
    cells = (FOLDER / "01_own_csv_in_ten_lines.py").read_text(encoding="utf-8").split("# %%")
    (lines,) = [cell for cell in cells if cell.startswith(" The ten lines")]
    assert len([line for line in lines.splitlines()[1:] if line.strip()]) == 10


@pytest.mark.parametrize("name", SAYS)
def test_examples_are_notebooks(name):
    """Percent cells: editors and jupytext open them as notebooks."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    assert text.count("\n# %%") >= 3
