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


class PlainDocstrings(griffe.Extension):
    """Applies it to all objects."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:  # noqa: ARG002
        """Before the docstring is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
