"""The website: Sphinx reads the repository as it lies, so a link that works there works on the site.

``make docs`` builds it into ``build/site``. Neither the build nor a page loads anything from elsewhere.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
from tools.notebooks import page as example_page  # noqa: E402

from nodejepa import __version__  # noqa: E402

# Methods of a graph that only our own code calls
_INSIDE = "rows, in_rows, feature_rows, spans, scratch, row_lengths, feature_lengths, trust, is_at"
_LINK = re.compile(r"\]\(([\w./-]+\.(?:md|py))\b")


def pages() -> list[str]:
    """The pages of ``docs/`` and what they link to, directly or not."""
    found = {*ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"}
    waiting = list(found)
    while waiting:
        page = waiting.pop()
        linked = {(page.parent / link).resolve() for link in _LINK.findall(page.read_text(encoding="utf-8"))}
        new = {path for path in linked - found if path.is_file() and path != ROOT / "README.md"}
        found |= new
        waiting += [path for path in new if path.suffix == ".md"]
    return sorted(
        str(path.relative_to(ROOT))
        for path in found
        if path.suffix == ".md" or path.parent.name == "examples"
    )


project = "nodejepa"
author = "The nodejepa developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = pages()
suppress_warnings = ["toc.not_included"]  # what is only linked has no place in the menu

myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "exclude-members": _INSIDE}
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "nodejepa"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_favicon = "assets/favicon.svg"
html_extra_path = ["extra"]
html_copy_source = False
html_show_copyright = False
html_show_search_summary = False  # a page on the disk may not read its neighbours
html_math_renderer = "mathml"
pygments_style, pygments_dark_style = "tango", "github-dark"


class ExampleParser(MystParser):
    """A script of percent cells is a page."""

    supported = ("example",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the page that the script makes."""
        super().parse(example_page(inputstring), document)


class SettingsTable(SphinxDirective):
    """``{settings} module.Config``: full name, default and meaning of every field of a class of settings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table, made of the fields and the comments behind them."""
        module, _, name = self.arguments[0].rpartition(".")
        rows = ["| setting | default | meaning |", "|---|---|---|"]
        for field, default, meaning in settings(getattr(importlib.import_module(module), name)):
            rows.append(f"| `{field}` | `{default}` | {meaning.replace('|', chr(92) + '|')} |")
        return self.parse_text_to_nodes("\n".join(rows))


def settings(config: type[Any]) -> list[tuple[str, str, str]]:
    """Name, default and comment of every field, those of base classes first."""
    found = []
    for field in dataclasses.fields(config):
        owner = next(base for base in config.__mro__ if field.name in inspect.get_annotations(base))
        lines, _ = inspect.getsourcelines(owner)
        line = next(i for i, text in enumerate(lines, 1) if text.strip().startswith(f"{field.name}:"))
        factory = field.default_factory
        default = field.default if factory is dataclasses.MISSING else factory()
        shown = "" if default is dataclasses.MISSING or dataclasses.is_dataclass(default) else repr(default)
        found.append((f"{config.section}{field.name}", shown, comment_of(lines, line)))
    return found


def comment_of(lines: list[str], line: int) -> str:
    """The comment behind a line of code, or the lines of comments above it."""
    _, found, behind = lines[line - 1].partition("  # ")
    if found:
        return behind.strip()
    above: list[str] = []
    while line > 1 and lines[line - 2].lstrip().startswith("# "):
        above.insert(0, lines[line - 2].strip()[2:])
        line -= 1
    return " ".join(above)


def mathml_inline(self: Any, node: nodes.math) -> None:
    """A formula as MathML, which browsers draw without a script."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def mathml_block(self: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    self.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """What is ours."""
    app.add_source_suffix(".py", "example")
    app.add_source_parser(ExampleParser)
    app.add_directive("settings", SettingsTable)
    app.add_html_math_renderer("mathml", (mathml_inline, None), (mathml_block, None))
