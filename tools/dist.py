"""Wheel and sdist of the committed files, the same bytes every time: ``python -m tools.dist [FOLDER]``.

Only what git has is built, in a folder of its own: no leftover of an earlier build and no file that was not
committed gets in. Times are those of ``SOURCE_DATE_EPOCH`` or of the last commit, owners are nobody.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # the build changes the arguments
build_meta.build_wheel(folder)
build_meta.build_sdist(folder)
"""


def build(folder: Path) -> list[Path]:
    """Build both into a folder; what was built."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct").decode().strip()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        source, out = Path(temporary, "source"), Path(temporary, "out")
        out.mkdir()
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", "HEAD"))) as archive:
            archive.extractall(source, filter="data")
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # whatever the caller's umask
        environment = os.environ | {"SOURCE_DATE_EPOCH": epoch, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [sys.executable, "-c", _BUILD, str(out)],
            cwd=source,
            env=environment,
            umask=0o022,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(done.stderr)
        (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
        made = {wheel.name: wheel.read_bytes(), sdist.name: _plain(sdist.read_bytes(), int(epoch))}
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in made]


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def _plain(archive: bytes, epoch: int) -> bytes:
    """A tar.gz of the same files in the order of their names, without times and owners of their own."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        gzip.GzipFile(fileobj=made, mode="wb", filename="", mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.size, plain.type, plain.mtime = member.size, member.type, epoch
            plain.mode = 0o755 if member.isdir() else 0o644
            new.addfile(plain, old.extractfile(member))
    return made.getvalue()


if __name__ == "__main__":
    for path in build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
