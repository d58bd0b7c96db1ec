"""Fetching what is missing, or saying exactly which file to put where.

Downloads are atomic and their length is checked, and their SHA-256 where the publisher names one.
"""

import hashlib
import http.client
import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from nodejepa.errors import DataError, NodeJEPAError
from nodejepa.files import atomic_path
from nodejepa.machine import progress_bar

_CHUNK = 1 << 20
_TIMEOUT_SECONDS = 30
_FAILURES = (
    OSError,
    NodeJEPAError,
    http.client.HTTPException,
    ValueError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class RemoteFile:
    """One file: where it lives below the data root and where it is published, perhaps in a zip file."""

    path: str
    url: str
    sha256: str | None = None  # of what is at the address
    member: str | None = None  # of the zip file there


def ensure_files(root: Path, files: Sequence[RemoteFile]) -> None:
    """Download every one of ``files`` that is not below ``root`` yet; those of a zip file stand together.

    Each member goes where its entry says, so no name inside a zip file can lead outside of ``root``.
    """
    lacking = [file for file in files if not (root / file.path).is_file()]
    if not lacking:
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        for url, wanted in groupby(lacking, key=lambda file: file.url):
            with tempfile.TemporaryDirectory(dir=root, prefix=".download.") as folder:
                fetched = Path(folder) / "fetched"
                for file in wanted:
                    if not fetched.exists():
                        fetch(url, fetched, file.sha256)
                    _place(fetched, file.member, root / file.path)
    except _FAILURES as error:
        reason = error.what if isinstance(error, NodeJEPAError) else (str(error) or type(error).__name__)
        still = [file for file in lacking if not (root / file.path).is_file()]
        raise DataError(
            f"a needed file is missing and could not be downloaded ({reason})",
            where=f"data root {root}",
            fix=f"Put into that folder: {'; '.join(f'{file.path} (from {file.url})' for file in still)}. "
            "Or choose another folder with root=... or NODEJEPA_DATA.",
        ) from error


def _place(fetched: Path, member: str | None, path: Path) -> None:
    with ExitStack() as stack:
        source: Any = stack.enter_context(zipfile.ZipFile(fetched) if member else fetched.open("rb"))
        if member:
            source = stack.enter_context(source.open(member))
        temporary = stack.enter_context(atomic_path(path))
        shutil.copyfileobj(source, stack.enter_context(temporary.open("wb")), _CHUNK)


def fetch(url: str, target: Path, sha256: str | None) -> None:
    """Write what ``url`` holds to ``target``; refuse it if it is cut short or has another SHA-256."""
    digest, received = hashlib.sha256(), 0
    with _open(url) as response, target.open("wb") as out:
        announced = response.headers.get("Content-Length")
        total = int(announced) if announced and announced.isdigit() else None
        name, kilobytes = url.rsplit("/", 1)[-1], None if total is None else total / 1000
        with progress_bar(f"Downloading {name} (kB)", kilobytes) as advance:
            while chunk := response.read1(_CHUNK):  # what has arrived, without waiting for a full chunk
                out.write(chunk)
                digest.update(chunk)
                received += len(chunk)
                advance(len(chunk) / 1000)
    if total is not None and received != total:
        raise DataError(f"the download broke off after {received} of {total} bytes", where=url)
    if sha256 is not None and digest.hexdigest() != sha256:
        raise DataError(f"the download has the SHA-256 {digest.hexdigest()}, expected {sha256}", where=url)


def _open(url: str) -> http.client.HTTPResponse:
    try:
        opener = urllib.request.build_opener(_SameProtocol)
        response: http.client.HTTPResponse = opener.open(url, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()  # it is the server's answer and holds the connection
        raise
    return response


class _SameProtocol(urllib.request.HTTPRedirectHandler):
    """Redirections never lead from a protected connection to an open one."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
        """The request to go on with."""
        if req.type == "https" and not newurl.lower().startswith("https:"):
            raise urllib.error.HTTPError(newurl, code, "redirected to a weaker protocol", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
