"""Which packages and which code made a result."""

import hashlib
import importlib.metadata
from functools import lru_cache
from pathlib import Path


def versions() -> dict[str, str]:
    """Versions of the packages that numbers may depend on."""
    return {name: importlib.metadata.version(name) for name in ("nodejepa", "torch", "numpy", "scipy")}


@lru_cache
def source_hash(package: Path = Path(__file__).parent) -> str:
    """Of the code: tells results apart that the same settings gave before and after a change of it."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
