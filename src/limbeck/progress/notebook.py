"""A bar in a notebook: one line of HTML that is redrawn where it stands. It needs nothing that a notebook has not."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Iterator
from typing import Any

from limbeck.progress.reporter import Bar, Lines, Reporter, Silent, clock

SECONDS_BETWEEN_DRAWINGS = 0.5


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook. Imports nothing: whoever is in one has loaded IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ not in ("TerminalInteractiveShell", "InteractiveShell")


@contextlib.contextmanager
def for_people(show: bool | None = None) -> Iterator[Reporter]:
    """What a Python program shows of itself. show: None for a bar where somebody looks, in a notebook or on a terminal."""
    if show is False or (show is None and not in_notebook() and not sys.stderr.isatty()):
        yield Silent()
    elif in_notebook():
        yield Notebook()
    elif sys.stderr.isatty():
        with Bar() as bar:
            yield bar
    else:
        yield Lines()


class Notebook:
    """For notebooks. `display` is IPython's."""

    def __init__(self, display: Any = None) -> None:
        self._display = sys.modules["IPython.display"].display if display is None else display
        self._handle: Any = None
        self._title, self._total, self._first = "", 0, 0
        self._began = self._drawn = 0.0

    def start(self, title: str, total: int, done: int) -> None:
        self._title, self._total, self._first = title, total, done
        self._began, self._handle = time.monotonic(), None
        self._draw(done)

    def advance(self, done: int) -> None:
        if done == self._total or time.monotonic() - self._drawn >= SECONDS_BETWEEN_DRAWINGS:
            self._draw(done)

    def say(self, message: str) -> None:
        print(message, flush=True)

    def _draw(self, done: int) -> None:
        self._drawn = time.monotonic()
        pace = (self._drawn - self._began) / max(done - self._first, 1)
        left = "" if done == self._first else f", {clock(pace * (self._total - done))} left"
        passed = f", {clock(self._drawn - self._began)}" if done == self._total else left
        words = f"{self._title}: {done} of {self._total}{passed}"
        content = {
            "text/plain": words,
            "text/html": f'<progress max="{max(self._total, 1)}" value="{done}" style="vertical-align: middle; width: 14em">'
            f"</progress> {html.escape(words)}",
        }
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
