"""What the columns of a Parquet file take when they are unpacked, read from its footer and from the headers of its pages.

Read here and not through Arrow: its view of the footer ends the whole process on some damaged files, and a footer may
announce less than the pages hold. Both are Thrift's compact protocol.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"PAR1"
MOST_DEPTH = 16
MOST_HEADER = 1 << 16
DELTA_BYTE_ARRAY = 7


@dataclass(frozen=True)
class Sizes:
    """The largest page, and the most that the pages of one column in one row group hold together, in bytes."""

    page: int = 0
    chunk: int = 0
    # Whether a text may repeat the beginning of the one before it, and so take far more than it does in the file.
    growing: bool = False


class _Compact:
    """Values of Thrift's compact protocol. A damaged one raises IndexError or ValueError."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.offset]
            self.offset += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError

    def whole(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def bytes(self, count: int) -> bytes:
        found = self.data[self.offset : self.offset + count]
        if len(found) < count:
            raise IndexError
        self.offset += count
        return found

    def record(self, depth: int = 0) -> dict[int, Any]:
        """A struct, by the numbers of its fields."""
        if depth > MOST_DEPTH:
            raise ValueError
        fields: dict[int, Any] = {}
        last = 0
        while head := self.data[self.offset]:
            self.offset += 1
            last = last + (head >> 4) if head >> 4 else self.whole()
            fields[last] = head & 15 == 1 if head & 15 in (1, 2) else self.value(head & 15, depth)
        self.offset += 1
        return fields

    def value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, 3):  # in a list a truth value takes a byte, like a small number
            return self.bytes(1)[0]
        if kind in (4, 5, 6):
            return self.whole()
        if kind == 7:
            return self.bytes(8)
        if kind == 8:
            return self.bytes(self.varint())
        if kind in (9, 10):
            head = self.bytes(1)[0]
            count = self.varint() if head >> 4 == 15 else head >> 4
            if count > len(self.data) - self.offset:
                raise ValueError
            return [self.value(head & 15, depth + 1) for _ in range(count)]
        if kind == 12:
            return self.record(depth + 1)
        raise ValueError  # Parquet has no maps


def sizes(path: Path, columns: Collection[str]) -> Sizes:
    """The sizes of these columns' pages. Reads headers, no page."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(-8, 2)
        length, magic = struct.unpack("<I4s", file.read(8))
        if magic != MAGIC or length > size - 8:
            raise ValueError
        file.seek(size - 8 - length)
        found = Sizes()
        for group in _Compact(file.read(length)).record().get(4, []):
            for chunk in group[1]:
                about = chunk[3]
                names = [name.decode() for name in about[3]]
                if names[0] in columns:
                    found = _larger(found, _chunk(file, about, size))
        return found


def _larger(one: Sizes, other: Sizes) -> Sizes:
    return Sizes(max(one.page, other.page), max(one.chunk, other.chunk), one.growing or other.growing)


def _chunk(file: BinaryIO, about: dict[int, Any], size: int) -> Sizes:
    pages = list(_pages(file, about, size))
    growing = any(_encoding(page) == DELTA_BYTE_ARRAY for page in pages)
    unpacked = [int(page[2]) for page in pages]
    return Sizes(max(unpacked, default=0), max(sum(unpacked), int(about[6])), growing)


def _pages(file: BinaryIO, about: dict[int, Any], size: int) -> Iterator[dict[int, Any]]:
    """The headers of the pages of one column in one row group."""
    offset = min(about[9], about.get(11) or about[9])
    end = min(offset + about[7], size)
    if offset < 0:
        raise ValueError
    while offset < end:
        file.seek(offset)
        reader = _Compact(file.read(MOST_HEADER))
        page = reader.record()
        if page[2] < 0 or page[3] < 0:
            raise ValueError
        yield page
        offset += reader.offset + page[3]


def _encoding(page: dict[int, Any]) -> int | None:
    if 5 in page:
        return int(page[5][2])
    return int(page[8][4]) if 8 in page else None
