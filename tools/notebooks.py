"""Notebooks from the scripts in ``examples/``: ``python -m tools.notebooks`` writes one beside each script.

A script is a row of percent cells: ``# %% [markdown]`` begins text, ``# %% Title`` begins code.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def cells(script: str) -> list[tuple[str, str]]:
    """Kind ("markdown" or "code") and content of every cell; a code cell's title becomes text before it."""
    found = []
    for title, body in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n?)*)", script, flags=re.MULTILINE):
        if title.strip() == "[markdown]":
            found.append(("markdown", re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE)))
            continue
        if title.strip():
            found.append(("markdown", f"**{title.strip()}**"))
        found.append(("code", body.strip()))
    return found


def notebook(script: str) -> str:
    """The script as a notebook without outputs, the same bytes for the same script."""
    listed = [
        {"cell_type": kind, "id": f"cell-{i}", "metadata": {}, "source": source.splitlines(keepends=True)}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for i, (kind, source) in enumerate(cells(script))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    document = {"cells": listed, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def page(script: str) -> str:
    """The script as a Markdown page."""
    shown = [text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells(script)]
    return "\n\n".join(shown) + "\n"


if __name__ == "__main__":
    for path in sorted(EXAMPLES.glob("*.py")):
        made = notebook(path.read_text(encoding="utf-8"))
        path.with_suffix(".ipynb").write_text(made, encoding="utf-8")
