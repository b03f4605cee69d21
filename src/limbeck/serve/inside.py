"""Reading files below one folder and nowhere else, whatever stands in the way: links, pipes, names with dots."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Stamp = tuple[int, int, int]


class NotInside(Exception):
    """There is no such plain file below the folder. Says nothing about what else is there."""


def read_inside(root: Path, *parts: str, most: int) -> bytes:
    """The content of a plain file of at most `most` bytes.

    Guarantee: no link is followed, below `root` or as the file itself, and reading never waits (a pipe is no plain file).
    """
    if not parts or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise NotInside
    handles: list[int] = []
    try:
        handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            handles.append(os.open(part, flags, dir_fd=handles[-1]))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handles.append(os.open(parts[-1], flags, dir_fd=handles[-1]))
        found = os.fstat(handles[-1])
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise NotInside
        with os.fdopen(os.dup(handles[-1]), "rb") as file:
            return file.read(most)
    except (OSError, ValueError):
        raise NotInside from None
    finally:
        for handle in handles:
            os.close(handle)


def stamp(path: Path) -> Stamp | None:
    """Changes when a file does; None where there is no plain file."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def plain_stamps(folder: Path) -> tuple[tuple[str, Stamp], ...]:
    """Every file of a folder with its stamp.

    Guarantee: refuses a folder that holds anything but folders and plain files, so whoever reads them follows no link and
    waits for no pipe.
    """
    found = []
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        for name in (*folders, *names):
            path = Path(parent, name)
            if path.is_symlink():
                raise NotInside
            if name in names:
                mark = stamp(path)
                if mark is None:
                    raise NotInside
                found.append((str(path.relative_to(folder)), mark))
    return tuple(sorted(found))


def _refuse(error: OSError) -> None:
    raise NotInside from error
