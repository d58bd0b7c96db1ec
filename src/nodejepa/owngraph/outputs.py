"""Where embeddings are about to be written: held by one process, and nothing is lost without asking."""

from __future__ import annotations

from pathlib import Path

from nodejepa.errors import Advice, ConfigError, Setting
from nodejepa.files import parse_json
from nodejepa.io.embeddings import MANIFEST_FORMAT

_OUT, _FORCE = Setting("out"), Setting("force", True)


def refuse_losing(out: Path, *, force: bool, manifest_only: bool = False) -> None:
    """Refuse to write embeddings over others, whose manifest and report would then tell of what is gone.

    Args:
        out: where embeddings will be written.
        force: whether that was asked for.
        manifest_only: embeddings that no manifest tells of may be replaced without asking.
    """
    told = _manifest_of(out)
    if force or not out.exists() or (manifest_only and told is None):
        return
    raise ConfigError(
        f"{out} exists" + (f", and {told} tells how its embeddings were made" if told else ""),
        fix=Advice("Choose another ", _OUT, ", or replace it with ", _FORCE, "."),
    )


def drop_manifest(out: Path) -> None:
    """Take away manifest and report of embeddings that are about to be replaced by others."""
    manifest = _manifest_of(out)
    if manifest is not None:
        manifest.unlink()
        out.with_suffix(".html").unlink(missing_ok=True)


def _manifest_of(out: Path) -> Path | None:
    path = out.with_suffix(".json")
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("format") != MANIFEST_FORMAT:
        return None
    described = content.get("embeddings")
    return path if isinstance(described, dict) and described.get("file") == out.name else None
