"""What is in a folder of runs: finished releases, runs at work, stopped ones, and damaged ones.

A folder that is gone, half written or broken is a normal sight here, never an error. What was read is kept as long as
the files have not changed, so a thousand runs cost a thousand looks at a date.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import LimbeckError
from limbeck.evaluate.reading import finite
from limbeck.privacy.numbers import finite_or_word
from limbeck.release.certificate import NAME as CERTIFICATE
from limbeck.release.certificate import Certificate
from limbeck.release.destination import RUN_STATE as STATE
from limbeck.release.destination import resume_command
from limbeck.release.statement import Statement
from limbeck.runs.folder import PROGRESS
from limbeck.serve.inside import NotInside, Stamp, read_inside, stamp

FINISHED, RUNNING, STOPPED, DAMAGED = "finished", "running", "stopped", "damaged"
LARGEST_JSON = 8_000_000
# A run notes its progress about every second; after this long without a note and without its lock it is not at work.
FRESH_SECONDS = 15.0
# How far below the folder runs are looked for, and in how many folders at most: an open page asks every two seconds.
DEEPEST, MOST_FOLDERS = 4, 5_000


@dataclass(frozen=True, kw_only=True)
class Progress:
    label: str
    step: int
    total: int
    seconds_left: float | None


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """One folder. `certificate` is what a finished release states (signed, not computed again); None where it is signed but
    cannot be understood. `problem` says what is wrong."""

    name: str
    state: str
    dataset: str = ""
    method: str = ""
    epsilon: Any = None
    delta: Any = None
    created: str = ""
    certificate: Certificate | None = None
    progress: Progress | None = None
    problem: str = ""
    resume: str = ""


class Catalog:
    """All runs below one folder, by their path in it (scans/first). Safe to ask from several threads.

    Links are not followed, so there are no circles and nothing from elsewhere; what lies in a run is part of it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, tuple[tuple[Stamp | None, ...], RunInfo]] = {}
        self._lock = threading.Lock()

    def runs(self) -> list[RunInfo]:
        """Runs at work first, then the newest."""
        found = [info for name in self._names() if (info := self.run(name)) is not None]
        with self._lock:
            gone = set(self._known) - {info.name for info in found}
            for name in gone:
                del self._known[name]
        found.sort(key=lambda info: info.name)
        found.sort(key=lambda info: info.created, reverse=True)
        return sorted(found, key=lambda info: (RUNNING, STOPPED, FINISHED, DAMAGED).index(info.state))

    def run(self, name: str) -> RunInfo | None:
        """None for a folder that is gone, is no run, or is not here."""
        parts = name.split("/")
        if len(parts) > DEEPEST or not all(map(_is_plain_name, parts)):
            return None
        if any((self.root / Path(*parts[:length])).is_symlink() for length in range(1, len(parts))):
            return None
        folder = self.root / name
        stamps = (stamp(folder / CERTIFICATE), stamp(folder / STATE / "run.json"))
        if stamps == (None, None) or folder.is_symlink() or (folder / STATE).is_symlink():
            return None
        if stamps[1] is not None:
            return self._unfinished(name)
        with self._lock:
            known = self._known.get(name)
        if known is None or known[0] != stamps:
            known = (stamps, self._finished(name))
            with self._lock:
                self._known[name] = known
        return known[1]

    def _names(self) -> list[str]:
        """Folders that are runs, the nearest first; folders that are none are looked into."""
        level, looked = [""], 0
        found: list[str] = []
        for _ in range(DEEPEST):
            below: list[str] = []
            for parent in level:
                looked += 1
                if looked > MOST_FOLDERS:
                    return found
                for name in _folders(self.root / parent):
                    path = f"{parent}/{name}" if parent else name
                    (found if _is_run(self.root / path) else below).append(path)
            level = below
        return found

    def _finished(self, name: str) -> RunInfo:
        try:
            content = read_inside(self.root, *name.split("/"), CERTIFICATE, most=LARGEST_JSON)
            statement = Statement.parse(content, Path(name, CERTIFICATE))
            statement.require_signed()
        except NotInside:
            return RunInfo(name=name, state=DAMAGED, problem=f"{CERTIFICATE} cannot be read.")
        except LimbeckError as error:
            return RunInfo(name=name, state=DAMAGED, problem=error.message)
        return _stated(name, statement)

    def _unfinished(self, name: str) -> RunInfo:
        record = self._json(*name.split("/"), STATE, "run.json")
        plan = record.get("plan") if isinstance(record.get("plan"), dict) else {}
        assert isinstance(plan, dict)
        price = plan.get("price") if isinstance(plan.get("price"), dict) else {}
        noted = self._json(*name.split("/"), STATE, PROGRESS)
        age = time.time() - (finite(noted.get("updated")) or 0.0)
        running = age < FRESH_SECONDS or is_locked(self.root / name / STATE / "lock")
        return RunInfo(
            name=name,
            state=RUNNING if running else STOPPED,
            dataset=str(plan.get("dataset", "")),
            method=str(plan.get("method", "")),
            epsilon=price.get("epsilon") if isinstance(price, dict) else None,
            delta=price.get("delta") if isinstance(price, dict) else None,
            progress=_progress(noted),
            problem="" if plan else "run.json cannot be read.",
            # Where the folder lies is the business of whoever sits at the machine.
            resume=resume_command(Path(name)),
        )

    def _json(self, *parts: str) -> dict[str, Any]:
        """A JSON object; an empty one for a file that is gone, half written or something else."""
        try:
            values = json.loads(read_inside(self.root, *parts, most=LARGEST_JSON))
        except (NotInside, ValueError, RecursionError):
            return {}
        return values if isinstance(values, dict) else {}


def _stated(name: str, statement: Statement) -> RunInfo:
    """What a signed certificate says. One that says odd things is listed with the reason; its report is refused."""
    try:
        certificate = statement.certificate()
    except LimbeckError as error:
        return RunInfo(name=name, state=FINISHED, problem=error.message)
    return RunInfo(
        name=name,
        state=FINISHED,
        dataset=certificate.dataset,
        method=certificate.method,
        epsilon=finite_or_word(certificate.epsilon),
        delta=certificate.delta,
        created=certificate.created,
        certificate=certificate,
    )


def _folders(path: Path) -> list[str]:
    """Names of the folders in a folder, but for hidden ones."""
    try:
        with os.scandir(path) as entries:
            return [
                each.name for each in entries if each.is_dir(follow_symlinks=False) and not each.name.startswith(".")
            ]
    except OSError:
        return []


def _is_run(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (CERTIFICATE, STATE))


def _is_plain_name(name: str) -> bool:
    """A name that can be shown and stand in an address."""
    return name not in (".", "..", STATE) and "/" not in name and name.isprintable() and bool(name)


def _progress(noted: Mapping[str, Any]) -> Progress | None:
    step, total, first = (finite(noted.get(key)) for key in ("step", "total", "first"))
    started, updated = finite(noted.get("started")), finite(noted.get("updated"))
    if step is None or total is None or not 0 <= step <= total:
        return None
    left = None
    if started is not None and updated is not None and step > (first or 0):
        left = finite(max((updated - started) / (step - (first or 0)) * (total - step), 0.0))
    return Progress(label=str(noted.get("label", "")), step=int(step), total=int(total), seconds_left=left)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a run. Looks it up in the kernel's list: taking it, however shortly, could make
    a run that is just being resumed believe that another process is at work on it."""
    try:
        inode = path.stat(follow_symlinks=False).st_ino
        with open("/proc/locks", encoding="ascii") as file:
            return any(
                len(words) > 5 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode)
                for words in map(str.split, file)
            )
    except (OSError, ValueError):
        return False
