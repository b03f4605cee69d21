"""IDX files, the format of MNIST: a header of sizes, then the numbers; plain or gzipped."""

from __future__ import annotations

import gzip
import math
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from limbeck.data import faults, pairs
from limbeck.data.limits import array_bytes, most_bytes, require_room
from limbeck.data.records import Array, Records
from limbeck.errors import DataNotFound, DataUnreadable
from limbeck.privacy.schema import Schema

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
MOST_DIMENSIONS = 8
CHUNK = 1 << 20
SPLITS = {"train": ("train",), "test": ("t10k", "test")}
_IMAGES = re.compile(r"images[-.]?idx3-ubyte(\.gz)?$|images\.idx(\.gz)?$")
_LABELS = re.compile(r"labels[-.]?idx1-ubyte(\.gz)?$|labels\.idx(\.gz)?$")


def is_images(path: Path) -> bool:
    return _IMAGES.search(path.name) is not None


def is_labels(path: Path) -> bool:
    return _LABELS.search(path.name) is not None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The content of the file, unpacked while it is read if it is gzipped."""
    with sentences(path), path.open("rb") as file:
        if not _is_packed(file):
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield cast(BinaryIO, unpacked)


def _is_packed(file: BinaryIO) -> bool:
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    return packed


def sentences(path: Path) -> AbstractContextManager[None]:
    """What goes wrong with a file, as a sentence."""
    return faults.sentences(path, _wrong)


def _wrong(error: Exception) -> str | None:
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        # Without the library's words: they may hold a checksum of the content.
        return "cannot be read: it is not a whole gzip file"
    return f"cannot be read: {error.strerror or type(error).__name__}" if isinstance(error, OSError) else None


def chunks(path: Path) -> Iterator[bytes]:
    """The unpacked content in pieces, for a hash; no more of it than a file may have."""
    read, most = 0, most_bytes()
    with _opened(path) as file:
        while piece := file.read(CHUNK):
            read += len(piece)
            if read > most:
                require_room(read, path)
            yield piece


@dataclass(frozen=True)
class Header:
    """What the first bytes of an IDX file announce."""

    kind: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape) * self.kind.itemsize

    @property
    def room(self) -> int:
        return array_bytes(math.prod(self.shape), self.kind.itemsize, converted=self.kind != np.uint8)


def _header(file: BinaryIO, path: Path) -> Header:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in TYPES:
        raise DataUnreadable(f"{path} is not an IDX file: it does not begin like one.")
    rank = start[3]
    if not 1 <= rank <= MOST_DIMENSIONS:
        raise DataUnreadable(f"{path} announces {rank} dimensions; an IDX file of records has 1 to {MOST_DIMENSIONS}.")
    sides = file.read(4 * rank)
    if len(sides) < 4 * rank:
        raise DataUnreadable(f"{path} ends inside its header, after {4 + len(sides)} bytes.")
    return Header(np.dtype(TYPES[start[2]]), struct.unpack(f">{rank}I", sides))


def _announced(path: Path) -> Header:
    with _opened(path) as file:
        return _header(file, path)


def announced(path: Path) -> tuple[Header, int, bool]:
    """What a file announces, where its numbers begin once it is unpacked, and whether it is packed.

    Of a plain file the size is compared with the header; of a packed one that would take a pass.
    """
    with _opened(path) as file:
        found, begin = _header(file, path), file.tell()
        packed = isinstance(file, gzip.GzipFile)
        size = found.size if packed else file.seek(0, 2) - begin
    if size < found.size:
        raise DataUnreadable(f"{path} has {size} bytes of numbers, but its header announces {found.size}.")
    if size > found.size:
        raise DataUnreadable(f"{path} has more bytes of numbers than the {found.size} that its header announces.")
    return found, begin, packed


@contextmanager
def numbers(path: Path) -> Iterator[BinaryIO]:
    """The bytes after the header, unpacked while they are read."""
    with ExitStack() as stack:
        with sentences(path):  # around what is done here alone, and not around what the caller does
            file = cast(BinaryIO, stack.enter_context(gzip.open(path, "rb")))
            _header(file, path)
        yield file


def _values(path: Path) -> Array:
    """The array of an IDX file. The caller has compared what the header announces with what is allowed."""
    with _opened(path) as file:
        found = _header(file, path)
        data = np.empty(found.size, dtype=np.uint8)
        filled = 0
        while filled < found.size:
            count = file.readinto(data.data[filled : filled + CHUNK])  # type: ignore[attr-defined]
            if not count:
                raise DataUnreadable(f"{path} has {filled} bytes of numbers, but its header announces {found.size}.")
            filled += count
        if file.read(1):
            raise DataUnreadable(f"{path} has more bytes of numbers than the {found.size} that its header announces.")
    return data.view(found.kind).reshape(found.shape).astype(found.kind.newbyteorder("="), copy=False)


def load(images: Path, schema: Schema | None = None) -> tuple[Array, Array]:
    """Records and labels. Both headers are read, and judged, before either file is unpacked."""
    labels = labels_beside(images)
    x, y = _announced(images), _announced(labels)
    pairs.judge(x, y, schema, images)
    return _values(images), _values(labels)


def labels_beside(images: Path) -> Path:
    """The labels file that belongs to an images file, by its name."""
    name = images.name.removesuffix(".gz").replace("images", "labels").replace("idx3", "idx1")
    for candidate in (images.with_name(name), images.with_name(name + ".gz")):
        if candidate.is_file():
            return candidate
    raise DataNotFound(f"{images} has no labels file beside it; expected {images.with_name(name)} (or .gz).")


def images_in(folder: Path, split: str) -> Path | None:
    """The images file of a split in a folder of IDX files."""
    files = sorted(file for file in folder.iterdir() if is_images(file))
    return next((file for file in files if file.name.startswith(SPLITS[split])), None)


def words(images: Path) -> str:
    return f"{images} is an IDX file, which"


def read(images: Path, schema: Schema) -> Records:
    return pairs.read(images, schema, load, words(images))
