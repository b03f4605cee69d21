"""A real browser for tests: Debian's chromium without a window, spoken to over its debugging pipe.

The pipe needs no library and no open port: null-terminated JSON on two file descriptors. `Browser` counts whatever the
page complains about (console errors, exceptions, blocked or failed requests) in `complaints`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)  # fmt: skip


class PageLeft(Exception):
    """The page that was asked gave way to another before it answered."""


class Browser:
    """One browser with one tab. Use it in a `with` statement."""

    def __init__(self, profile: Path, patience: float = 60.0) -> None:
        assert CHROMIUM is not None
        self.complaints: list[str] = []
        self._patience, self._count, self._rest = patience, 0, b""
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def wire() -> None:
            # The browser reads from descriptor 3 and writes to 4; copies above keep them from overwriting each other.
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=wire,
            pass_fds=(3, 4),
        )
        os.close(to_browser)
        os.close(from_browser)
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(15)
        os.close(self._out)
        os.close(self._in)

    def open(self, address: str) -> None:
        """Go there and wait until it is loaded."""
        self._loaded = False
        self.call("Page.navigate", {"url": address})
        self.wait_until(lambda: self._loaded)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_until(self, ready: Any) -> None:
        """A page that is just being left answers nothing, so it is asked again."""
        end = time.monotonic() + self._patience
        while True:
            with contextlib.suppress(PageLeft):
                if ready():
                    return
            assert time.monotonic() < end, "the browser did not get there in time"
            self._listen(0.05)

    def size(self, width: int, height: int, phone: bool = False) -> None:
        values = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", values)

    def media(self, dark: bool = False, kind: str = "screen") -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", {"media": kind, "features": [scheme]})

    def screenshot(self, path: Path, whole: bool = True) -> None:
        values = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            box = self.call("Page.getLayoutMetrics")["cssContentSize"]
            values["clip"] = {"x": 0, "y": 0, "width": box["width"], "height": box["height"], "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", values)["data"]))

    def pdf(self) -> bytes:
        self.call("Emulation.setEmulatedMedia", {"media": ""})  # else the screen's style would be printed
        answer = self.call("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True})
        return base64.b64decode(answer["data"])

    def call(self, method: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._call(method, values, self._session)

    def _call(self, method: str, values: dict[str, Any] | None = None, session: str | None = None) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": values or {}}
        os.write(self._out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        number, self._answer = self._count, None
        end = time.monotonic() + self._patience
        while self._answer is None or self._answer["id"] != number:
            assert time.monotonic() < end, f"no answer to {method}"
            self._listen(0.2)
        if "navigated" in self._answer.get("error", {}).get("message", ""):
            raise PageLeft(method)
        assert "error" not in self._answer, self._answer
        result: dict[str, Any] = self._answer["result"]
        return result

    _answer: dict[str, Any] | None = None
    _loaded = False

    def _listen(self, seconds: float) -> None:
        if not select.select([self._in], [], [], seconds)[0]:
            return
        received = os.read(self._in, 1 << 20)
        assert received, "the browser has gone"
        *messages, self._rest = (self._rest + received).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answer = message
            else:
                self._note(message["method"], message.get("params", {}))

    def _note(self, event: str, values: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(values["exceptionDetails"])[:500])
        elif event == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")
        elif event == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(values["args"])[:500])
        elif event == "Network.loadingFailed" and not values.get("canceled"):
            self.complaints.append(f"{values.get('errorText')} {values.get('blockedReason', '')}")
