"""Downloads against a server on this machine: whole, altered, missing, cut short; and archives."""

import hashlib
import io
import threading
import urllib.error
import urllib.request
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nodejepa.data import download
from nodejepa.data.download import RemoteFile, ensure_files
from nodejepa.errors import DataError

CONTENT = bytes(range(256)) * 9000  # more than one chunk
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def zipped(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return packed.getvalue()


PAGES = {
    "/good": CONTENT,
    "/short": CONTENT,
    "/good.zip": zipped(arxiv__raw__a="A", arxiv__raw__b="B", **{"../evil": "E", "arxiv__other": "O"}),
    "/lacking.zip": zipped(arxiv__raw__a="A"),
    "/no.zip": b"this is no zip",
}


class Handler(BaseHTTPRequestHandler):
    def __init__(self, seen, *arguments):
        self.seen = seen
        super().__init__(*arguments)

    def do_GET(self):
        self.seen.append(self.path)
        content = PAGES.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if self.path == "/short" else content)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, seen)) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", seen
        httpd.shutdown()
        thread.join()


def files_below(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_good_file_arrives_once(server, tmp_path, sha256):
    url, seen = server
    seen.clear()
    for _ in range(2):
        ensure_files(tmp_path, [RemoteFile("a/b/good.bin", f"{url}/good", sha256)])
    assert (tmp_path / "a/b/good.bin").read_bytes() == CONTENT
    assert files_below(tmp_path) == ["a/b/good.bin"]
    assert seen == ["/good"]


@pytest.mark.parametrize(
    ("page", "sha256", "reason"),
    [("/good", "0" * 64, "SHA-256"), ("/nowhere", None, "404"), ("/short", None, "broke off after")],
)
def test_bad_download_leaves_nothing_and_says_what_to_put_where(server, tmp_path, page, sha256, reason):
    url, _ = server
    wanted = [RemoteFile("x/first.bin", url + page, sha256), RemoteFile("x/second.bin", url + "/good")]
    with pytest.raises(DataError, match=reason) as caught:
        ensure_files(tmp_path, wanted)
    message = str(caught.value)
    for needed in (
        str(tmp_path),
        "x/first.bin",
        "x/second.bin",
        url + page,
        "folder with root=... or",
        "NODEJEPA_DATA",
    ):
        assert needed in message
    assert files_below(tmp_path) == []


def test_no_network_and_bad_root_end_in_the_same_advice(tmp_path):
    with pytest.raises(DataError, match=r"Put into that folder: a\.bin"):
        ensure_files(tmp_path, [RemoteFile("a.bin", "http://127.0.0.1:9/a.bin")])
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(DataError, match="Put into that folder"):
        ensure_files(blocked, [RemoteFile("sub/a.bin", "http://127.0.0.1:9/a.bin")])


@pytest.mark.parametrize(
    ("start", "end", "followed"),
    [
        ("https://a/x", "https://b/x", True),
        ("https://a/x", "http://b/x", False),
        ("https://a/x", "ftp://b/x", False),
        ("http://a/x", "https://b/x", True),
    ],
)
def test_no_redirection_to_a_weaker_protocol(start, end, followed):
    handler, request = download._SameProtocol(), urllib.request.Request(start)
    arguments = (request, None, 302, "Found", {}, end)
    if followed:
        assert handler.redirect_request(*arguments).full_url == end
    else:
        with pytest.raises(urllib.error.HTTPError, match="weaker protocol") as refused:
            handler.redirect_request(*arguments)
        refused.value.close()


def members(url, sha256=None):
    return [RemoteFile(f"ogbn_arxiv/raw/{name}", url, sha256, f"arxiv/raw/{name}") for name in "ab"]


def test_archive_gives_its_expected_members_and_no_others(server, tmp_path):
    url, seen = server
    seen.clear()
    root = tmp_path / "root"
    for _ in range(2):
        ensure_files(root, members(url + "/good.zip"))
    assert files_below(tmp_path) == ["root/ogbn_arxiv/raw/a", "root/ogbn_arxiv/raw/b"]
    assert (root / "ogbn_arxiv/raw/b").read_text() == "B"
    assert seen == ["/good.zip"]


@pytest.mark.parametrize("page", ["/lacking.zip", "/no.zip", "/nowhere.zip"])
def test_bad_archive_says_what_to_put_where(server, tmp_path, page):
    url, _ = server
    with pytest.raises(DataError, match=r"ogbn_arxiv/raw/b .*with root"):
        ensure_files(tmp_path, members(url + page))
    assert not (tmp_path / "ogbn_arxiv/raw/b").exists()
    assert not list(tmp_path.glob(".download*"))


def test_archive_with_another_checksum_is_not_unpacked(server, tmp_path):
    url, _ = server
    with pytest.raises(DataError, match="SHA-256"):
        ensure_files(tmp_path, members(url + "/good.zip", "0" * 64))
    assert files_below(tmp_path) == []


def test_loaders_ask_for_their_published_files(monkeypatch, tmp_path):
    """A fresh machine without network: every downloadable graph names its files."""
    from nodejepa.data import CATALOGUE, load_dataset

    asked = []

    def offline(url, *_target_and_sha256):
        asked.append(url)
        raise OSError("no network")

    monkeypatch.setattr(download, "fetch", offline)
    for name, entry in CATALOGUE.items():
        if entry.files and not entry.files[0].startswith("development/"):  # those are not downloaded
            with pytest.raises(DataError, match="no network") as caught:
                load_dataset(name, tmp_path)
            assert all(file in str(caught.value) for file in entry.files)
    assert len(asked) == 6
    assert all(url.startswith("https://") for url in asked)
