"""Docstrings as Markdown: Sphinx roles lose their prefix, doctests and formulas become blocks of code."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|data|attr|mod|exc|math):(?=`)")
_DOCTEST = re.compile(r"((?:^[ \t]*>>> .*\n?(?:^[ \t]*\S.*\n?)*\n*)+)", flags=re.MULTILINE)

_MATHS = re.compile(r"^ *\.\. math::(.*\n(?:\n? {4,}.*\n?)*)\n*", flags=re.MULTILINE)


def readable(text: str) -> str:
    """One docstring."""
    text = _MATHS.sub(lambda match: f"```text\n{textwrap.dedent(match[1]).strip()}\n```\n\n", text)
    text = re.sub(rf"{_ROLE.pattern}`~?([^`]*)`", r"`\1`", text)
    return _DOCTEST.sub(lambda match: f"```python\n{match[1].rstrip()}\n```\n\n", text)


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


class PlainDocstrings(griffe.Extension):
    """Applies it to all objects; a setting is described by its comment."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:  # noqa: ARG002
        """Before it is shown."""
        of_class = attr.parent is not None and attr.parent.is_class and attr.parent.name.endswith("Config")
        if of_class and attr.docstring is None and attr.lineno is not None:
            comment = comment_of(attr.lines_collection[attr.filepath], attr.lineno)  # type: ignore[index]
            attr.docstring = griffe.Docstring(f"{comment[:1].upper()}{comment[1:]}.") if comment else None

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Before the docstring is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
