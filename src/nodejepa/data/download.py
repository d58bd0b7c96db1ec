"""Fetching what is missing, or saying exactly which file to put where.

Downloads are atomic and their length is checked. Where the SHA-256 of the published file is known it is
checked too; for the four gnn-benchmark files it is not known to us (``sha256=None``): what was loaded is
checked by its counts, and a file other than the known ones is reported.
"""

import hashlib
import http.client
import shutil
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodejepa.errors import DataError, NodeJEPAError
from nodejepa.files import atomic_path
from nodejepa.progress import progress_bar

_CHUNK = 1 << 20
_FAILURES = (NodeJEPAError, http.client.HTTPException, ValueError)
_TIMEOUT_SECONDS = 30
_LONGEST_SECONDS = 3600  # of a whole download: a server may send a byte now and then for ever


@dataclass(frozen=True)
class RemoteFile:
    """One file: where it lives below the data root and where it is published."""

    path: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class RemoteArchive:
    """A published zip file, and which of its members go where below the data root."""

    url: str
    members: Mapping[str, str]
    sha256: str | None = None


def ensure_files(root: Path, files: Sequence[RemoteFile]) -> None:
    """Download every one of ``files`` that is not below ``root`` yet."""
    for number, file in enumerate(files):
        if (root / file.path).is_file():
            continue
        try:
            with atomic_path(root / file.path) as temporary:
                fetch(file.url, temporary, file.sha256)
        except _FAILURES as error:
            lacking = [other for other in files[number:] if not (root / other.path).is_file()]
            wanted = "; ".join(f"{other.path} (from {other.url})" for other in lacking)
            raise _missing(root, wanted, error) from error


def ensure_archive(root: Path, archive: RemoteArchive) -> None:
    """Download ``archive`` and unpack the members it is wanted for, unless all of them are there.

    Only the listed members are read and each goes where the list says, so no name inside the zip can lead
    outside ``root``.
    """
    lacking = {m: path for m, path in archive.members.items() if not (root / path).is_file()}
    if not lacking:
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=".download.") as folder:
            packed = Path(folder) / "archive.zip"
            fetch(archive.url, packed, archive.sha256)
            with zipfile.ZipFile(packed) as opened:
                for member, path in lacking.items():
                    with (
                        opened.open(member) as source,
                        atomic_path(root / path) as temporary,
                        temporary.open("wb") as target,
                    ):
                        shutil.copyfileobj(source, target, _CHUNK)
    except (OSError, *_FAILURES, KeyError, zipfile.BadZipFile, zlib.error) as error:
        wanted = ", ".join(lacking.values()) + f" (members of {archive.url})"
        raise _missing(root, wanted, error) from error


def fetch(url: str, target: Path, sha256: str | None) -> None:
    """Write what ``url`` holds to ``target``; refuse it if it is cut short or has another SHA-256."""
    digest, received, until = hashlib.sha256(), 0, time.monotonic() + _LONGEST_SECONDS
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
                if time.monotonic() > until:
                    raise DataError(f"the download took more than {_LONGEST_SECONDS} seconds", where=url)
    if total is not None and received != total:
        raise DataError(f"the download broke off after {received} of {total} bytes", where=url)
    if sha256 is not None and digest.hexdigest() != sha256:
        raise DataError(
            f"the SHA-256 of the download is {digest.hexdigest()}, expected {sha256}",
            where=url,
            fix="The published file has changed or something in between altered it; it was not kept.",
        )


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


def _missing(root: Path, wanted: str, error: Exception) -> DataError:
    reason = error.what if isinstance(error, NodeJEPAError) else (str(error) or type(error).__name__)
    return DataError(
        f"a needed file is missing and could not be downloaded ({reason})",
        where=f"data root {root}",
        fix=f"Put into that folder: {wanted}. Or choose another folder with root=... or NODEJEPA_DATA.",
    )
