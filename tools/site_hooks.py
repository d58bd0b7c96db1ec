"""What MkDocs does beside its settings: pages and files from outside of ``docs/``, links that lead to them.

Pages link as the repository lies (``../studies/main/figures/accuracy.png``, ``../CONTRIBUTING.md``), so that
they can be read there, too. On the site those files get a place of their own and the links lead to it. A
script in ``examples/`` becomes a page.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tools.notebooks import page as example_page  # noqa: E402

RENAMED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_ELSEWHERE, _BESIDE = "https://unpkg.com/iframe-worker/shim", "assets/search-from-disk.js"
_LINK = re.compile(r"(?<=\]\()(?P<path>[\w./-]+)(?P<anchor>#[\w-]+)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to, and what the added pages link to."""
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()] + list(RENAMED)
    while waiting:
        path = waiting.pop()
        place = _place(path)
        if files.get_file_from_path(place) is None:
            level = InclusionLevel.INCLUDED if path in RENAMED else InclusionLevel.NOT_IN_NAV
            if place != path and path.endswith(".py"):
                made = File.generated(config, place, content=_text(path), inclusion=level)
            else:
                made = File.generated(config, place, abs_src_path=str(ROOT / path), inclusion=level)
            files.append(made)
            made.edit_uri = None
            made.page_in_repository = path
        if place.endswith(".md"):
            waiting += [
                target
                for match in _LINK.finditer(_text(path))
                if (target := _target(path, match["path"])) and not files.get_file_from_path(_place(target))
            ]
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Lead links between files of the repository to the places of those files on the site."""
    path = getattr(page.file, "page_in_repository", f"docs/{page.file.src_uri}")

    def moved(match: re.Match[str]) -> str:
        target = _target(path, match["path"])
        if target is None:
            return match[0]
        here = posixpath.dirname(page.file.src_uri)
        return posixpath.relpath(_place(target), here or ".") + (match["anchor"] or "")

    return _LINK.sub(moved, markdown)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """The plugin `offline` asks a server for what lets the search work without one; ours lies beside."""
    return output.replace(
        _ELSEWHERE, posixpath.relpath(_BESIDE, posixpath.dirname(page.file.dest_uri) or ".")
    )


def on_post_template(output_content: str, *, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001
    """The same on the page of a server that finds nothing."""
    return output_content.replace(_ELSEWHERE, f"/{_BESIDE}")


def _text(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    return example_page(text) if path.endswith(".py") else text


def _target(path: str, link: str) -> str | None:
    """The file of the repository that a link means; None: there is none, MkDocs will say so."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return target if not target.startswith("..") and (ROOT / target).is_file() else None


def _place(path: str) -> str:
    """Where a file of the repository lies on the site."""
    if path.startswith("examples/") and path.endswith(".py"):
        return path.removesuffix(".py") + ".md"
    return RENAMED.get(path, path.removeprefix("docs/"))
