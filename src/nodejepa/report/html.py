"""One HTML file out of a report: data as JSON, one style sheet, one script, nothing fetched.

The script builds the page from the data with text nodes only. The content security policy names style and
script by their hashes: whatever else were to slip into the page could not run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from nodejepa.files import write_text
from nodejepa.provenance import versions
from nodejepa.report.sections import Report

# in this order: each file uses names of those before it
_SCRIPTS = ("page", "tables", "charts", "dots", "confusion", "map-marks", "map", "report")
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(report: Report) -> str:
    """The whole page."""
    style = _asset("report.css")
    body = "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{body}}})();\n'
    return Template(_asset("page.html")).substitute(
        title=escape(report.title),
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        style=style,
        data=embedded_json(report.to_json()),
        script=script,
    )


def write_report(report: Report, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render(report))


def embedded_json(value: object) -> str:
    """JSON that cannot end the ``<script>`` it stands in, whatever its strings hold."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_UNSAFE)


def footer() -> str:
    """What made the page."""
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"Made by {made}."


def _asset(name: str) -> str:
    return (files("nodejepa.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
