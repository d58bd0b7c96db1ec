"""A page in headless Chromium, driven over its DevTools protocol through two pipes: nothing to install."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_SECONDS = 500


class Page:
    """One tab. ``problems`` collects exceptions and console errors, ``requests`` every address asked for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer, self._number, self._session = b"", 0, None
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._send(f"{domain}.enable")

    def open(
        self,
        path: Path,
        *,
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        touch: bool = False,
        built: str = "#report > footer",
    ) -> None:
        """Show a file in a window of this size and wait until its script has built the page."""
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=touch,
        )
        self._send("Emulation.setTouchEmulationEnabled", enabled=touch)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self._send("Page.navigate", url=path.resolve().as_uri())
        self.wait(f"document.readyState === 'complete' && document.querySelector('{built}') !== null")
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def run(self, code: str) -> Any:
        """The value of a JavaScript expression (of its promise, if it is one)."""
        found = self._send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"]["exception"].get("description"))
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until a JavaScript expression is true."""
        end = time.monotonic() + _SECONDS
        while not self.run(condition):
            assert time.monotonic() < end, f"never became true: {condition}"
            time.sleep(0.05)

    def place(self, element: str) -> dict[str, float]:
        """Where the element of a JavaScript expression is, after scrolling to it."""
        return self.run(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const r = e.getBoundingClientRect();"
            "return {x: r.left, y: r.top, width: r.width, height: r.height}; })()"
        )

    def mouse(self, kind: str, x: float, y: float) -> None:
        """``mouseMoved``, ``mousePressed`` or ``mouseReleased`` with the left button."""
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def click(self, element: str) -> None:
        """Press and release over the middle of an element."""
        box = self.place(element)
        spot = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, *spot)

    def tap(self, x: float, y: float) -> None:
        """A finger that touches and is lifted."""
        self._send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self._send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key: str, text: str = "") -> None:
        """A key, as a keyboard sends it."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        facts = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        typed = {"text": text} if text else {}
        self._send("Input.dispatchKeyEvent", type="keyDown", **facts, **typed)
        self._send("Input.dispatchKeyEvent", type="keyUp", **facts)

    def type(self, text: str) -> None:
        """Text into whatever has the focus."""
        self._send("Input.insertText", text=text)

    def screenshot(self) -> str:
        """The whole page as base64-encoded PNG."""
        return str(self._send("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        method, facts = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(facts["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "assert", "warning"):
            self.problems.append(str(facts["args"]))
        elif method == "Log.entryAdded" and facts["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(facts["entry"]))
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {facts['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            received = os.read(self._from, 2**16)
            assert received, "the browser has gone"
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def chromium_page(profile: Path) -> Iterator[Page]:
    """A browser with a fresh profile and one tab, gone afterwards."""
    assert CHROMIUM is not None
    # the browser reads commands from descriptor 3 and answers on 4; ours must not be among those
    command_out, command_in = _high(os.pipe())
    answer_out, answer_in = _high(os.pipe())
    script = f'exec "$@" 3<&{command_out} 4>&{answer_in}'
    process = subprocess.Popen(
        ["bash", "-c", script, "chromium", CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(command_out, answer_in),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_out)
    os.close(answer_in)
    try:
        yield Page(command_in, answer_out)
    finally:
        os.close(command_in)  # the browser ends when its pipe does
        os.close(answer_out)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _high(ends: tuple[int, int]) -> tuple[int, int]:
    moved = fcntl.fcntl(ends[0], fcntl.F_DUPFD, 10), fcntl.fcntl(ends[1], fcntl.F_DUPFD, 10)
    for end in ends:
        os.close(end)
    return moved
