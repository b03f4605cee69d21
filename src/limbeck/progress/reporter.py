"""How long work shows itself: a bar on a terminal, a plain line now and then elsewhere, always on standard error.

A run also notes how far it is in a small file, for whoever watches it from another process (`limbeck serve`).
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from limbeck.files import replacing

SECONDS_BETWEEN_LINES = 15.0
SECONDS_BETWEEN_NOTES = 1.0


class Reporter(Protocol):
    """Told about progress; shows it or not."""

    def start(self, title: str, total: int, done: int) -> None: ...

    def advance(self, done: int) -> None: ...

    def say(self, message: str) -> None: ...


class Silent:
    def start(self, title: str, total: int, done: int) -> None:
        pass

    def advance(self, done: int) -> None:
        pass

    def say(self, message: str) -> None:
        pass


class Lines:
    """For pipes, logs and other places without a terminal."""

    def __init__(self) -> None:
        self._title, self._total, self._first = "", 0, 0
        self._began = self._last = time.monotonic()

    def start(self, title: str, total: int, done: int) -> None:
        self._title, self._total, self._first = title, total, done
        self._began = self._last = time.monotonic()
        self.say(f"{title}: {done}/{total}")

    def advance(self, done: int) -> None:
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN_LINES and done != self._total:
            return
        self._last = now
        pace = (now - self._began) / max(done - self._first, 1)
        self.say(f"{self._title}: {done}/{self._total}, {clock(pace * (self._total - done))} left")

    def say(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)


class Bar:
    """For terminals."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task: int | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def start(self, title: str, total: int, done: int) -> None:
        self._task = self._progress.add_task(title, total=total, completed=done)

    def advance(self, done: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=done)  # type: ignore[arg-type]

    def say(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False)


class Noted:
    """A reporter that also notes the progress in a file: the public step count and the owner's own clock, nothing else."""

    def __init__(self, inner: Reporter, path: Path) -> None:
        self._inner, self._path = inner, path
        self._label, self._total, self._first = "", 0, 0
        self._started, self._noted = 0.0, 0.0

    def start(self, title: str, total: int, done: int) -> None:
        self._inner.start(title, total, done)
        self._label, self._total, self._first, self._started = title, total, done, time.time()
        self._note(done)

    def advance(self, done: int) -> None:
        self._inner.advance(done)
        if time.monotonic() - self._noted >= SECONDS_BETWEEN_NOTES or done == self._total:
            self._note(done)

    def say(self, message: str) -> None:
        self._inner.say(message)

    def _note(self, done: int) -> None:
        self._noted = time.monotonic()
        values = {
            "label": self._label,
            "first": self._first,
            "step": done,
            "total": self._total,
            "started": round(self._started, 3),
            "updated": round(time.time(), 3),
        }
        # A reader sees the old note or the new one. It is lost without harm, so nothing waits for the disk, and no run
        # fails because of it.
        with contextlib.suppress(OSError), replacing(self._path, durable=False) as new:
            new.write_text(json.dumps(values), encoding="utf-8")


def clock(seconds: float) -> str:
    """
    >>> clock(3_725)
    '1:02:05'
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
