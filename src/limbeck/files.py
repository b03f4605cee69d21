"""Files as this package writes them: whole or not at all, and on the disk before anybody relies on them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from limbeck.errors import OutputFault


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o644, durable: bool = True) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the name `path` when the block ends without an error.

    Guarantee: a reader sees the old file or the new one, never a part. Until it has its mode the file is the owner's alone.
    With `durable` the content and the name are on the disk when the block ends.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if durable:
            flush(temporary)
        temporary.chmod(mode)
        temporary.replace(path)
        if durable:
            flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file whole or not at all, and onto the disk before returning; a full disk is an OutputFault."""
    try:
        with replacing(path, mode) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise OutputFault(f"{path} could not be written: {error.strerror or error}.") from None


def as_json(values: Mapping[str, Any]) -> bytes:
    """The bytes of a JSON file that people read, too. The same values give the same bytes.

    >>> as_json({"b": 1, "a": [2]})
    b'{\\n "a": [\\n  2\\n ],\\n "b": 1\\n}\\n'
    """
    return (json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def read_or_create(path: Path, make: Callable[[], bytes]) -> bytes:
    """The bytes of a small secret file, such as a key, which is made where there is none.

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


@contextlib.contextmanager
def alone_in(folder: Path, patience: float) -> Iterator[None]:
    """Let one process at a time do this in a folder; wait up to `patience` seconds, then a TimeoutError.

    The folder itself is locked: no file is left behind, and the system drops the lock when the process ends, however it ends.
    """
    end = time.monotonic() + patience
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() >= end:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Without it a power cut may lose a new file's name, and with it the file."""
    if os.name == "posix":  # only there can a folder be opened to be synced
        flush(folder)


def flush(path: Path) -> None:
    """Bring a file, or the names in a folder, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
