"""Secret files of a few bytes, such as keys: made once, whole, on the disk, for their owner only."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def read_or_create(path: Path, make: Callable[[], bytes]) -> bytes:
    """The bytes of the file, which is made where there is none.

    Guarantee: of several processes that make it together one wins, and all of them get the bytes that stay. The file has
    mode 600, is never seen half written, and is on the disk before anybody uses it.
    """
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(make())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)  # unlike a rename it never replaces what another process made
        flush_folder(path.parent)
    finally:
        os.unlink(temporary)
    return path.read_bytes()


def flush_folder(folder: Path) -> None:
    """Without it a power cut may lose a new file's name, and with it the file."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
