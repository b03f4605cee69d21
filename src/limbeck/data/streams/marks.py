"""What tells a file from another one, and from what it was before: size, time, place on the disk, its first and last bytes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from limbeck.errors import DataUnreadable

EDGE = 4096


@dataclass(frozen=True)
class Mark:
    """A digest of what a file, or all files of a folder, look like from outside. No mark leaves the process."""

    path: Path
    digest: bytes


def mark_file(path: Path) -> Mark:
    """Of one file. Its edges are read, too: a copy may keep size and time."""
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        first = file.read(EDGE)
        file.seek(max(about.st_size - EDGE, 0))
        last = file.read(EDGE)
    said = f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns}".encode()
    return Mark(path, hashlib.sha256(said + first + last).digest())


def mark_files(folder: Path, names: Iterable[str]) -> Mark:
    """Of files in a folder, by their names, sizes and times.

    Every one of them is looked at, whether it is about to be read or not: that a pass fails must not tell which records are in a
    sample.
    """
    digest = hashlib.sha256()
    for name in names:
        about = os.stat(folder / name)
        digest.update(os.fsencode(name) + f"/{about.st_ino} {about.st_size} {about.st_mtime_ns}\n".encode())
    return Mark(folder, digest.digest())


def has_changed(where: str) -> DataUnreadable:
    """The same sentence whatever has changed, and whichever record was about to be read."""
    return DataUnreadable(
        f"{where} is no longer what it was when this run first read it, and it is read again for every answer, so nothing "
        "more is answered. What was answered before is kept. Put the files back as they were and resume the run, or start a "
        "new one."
    )
