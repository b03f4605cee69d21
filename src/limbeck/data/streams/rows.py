"""Rows of one array in a file: read where they lie, or unpacked on the way to them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from limbeck.data.records import Array
from limbeck.data.streams.stream import Places
from limbeck.errors import DataUnreadable

# What is read at a time, and how far apart two wanted rows may lie to be read together.
PIECE, NEAR = 1 << 22, 1 << 14


@dataclass(frozen=True)
class Form:
    """What a header announces."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def array(self, data: Array) -> Array:
        return data.view(self.dtype).reshape(-1, *self.shape[1:])


class RowCursor(Protocol):
    def take(self, count: int, wanted: Places | None) -> Array:
        """Of the next `count` rows, which there are, those at `wanted`."""
        ...


class StoredRows(Protocol):
    @property
    def form(self) -> Form: ...

    def opened(self) -> AbstractContextManager[RowCursor]: ...


@dataclass(frozen=True)
class PlainRows:
    """Rows that lie in a file as they are, from `offset` on.

    They are read and not mapped: a file that is cut off while it is mapped ends the whole process, and mapped pages count as
    memory of it.
    """

    path: Path
    offset: int
    form: Form

    @contextmanager
    def opened(self) -> Iterator[RowCursor]:
        with self.path.open("rb", buffering=0) as file:
            yield _PlainCursor(self, file.fileno())


class _PlainCursor:
    def __init__(self, rows: PlainRows, descriptor: int) -> None:
        self._rows, self._form, self._descriptor = rows, rows.form, descriptor
        self._next = 0

    def take(self, count: int, wanted: Places | None) -> Array:
        start, self._next = self._next, self._next + count
        if wanted is None:
            return self._form.array(self._read(start, count))
        out = np.empty((len(wanted), self._form.row_bytes), dtype=np.uint8)
        for first, last in _runs(wanted, self._form.row_bytes):
            low, high = int(wanted[first]), int(wanted[last - 1]) + 1
            found = self._read(start + low, high - low).reshape(high - low, -1)
            out[first:last] = found[wanted[first:last] - low]
        return self._form.array(out.reshape(-1))

    def _read(self, start: int, count: int) -> Array:
        data = np.empty(count * self._form.row_bytes, dtype=np.uint8)
        at, filled = self._rows.offset + start * self._form.row_bytes, 0
        while filled < len(data):
            got = os.preadv(self._descriptor, [data.data[filled : filled + (1 << 30)]], at + filled)
            if not got:
                raise _short(self._rows.path)
            filled += got
        return data


def _runs(wanted: Places, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Wanted rows that are read together, as (first, last + 1) of their places in `wanted`."""
    near, most = max(NEAR // max(row_bytes, 1), 1), max(PIECE // max(row_bytes, 1), 1)
    cuts = np.flatnonzero(np.diff(wanted) > near) + 1
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(wanted)], strict=True):
        while first < last:
            end = first + int(np.searchsorted(wanted[first:last], wanted[first] + most))
            yield first, end
            first = end


@dataclass(frozen=True)
class PackedRows:
    """Rows of a packed file, which is unpacked from its beginning for every pass. `unpacked` gives the rows' bytes alone."""

    path: Path
    unpacked: Callable[[], AbstractContextManager[BinaryIO]]
    form: Form

    @contextmanager
    def opened(self) -> Iterator[RowCursor]:
        with self.unpacked() as file:
            yield _PackedCursor(self, file)


class _PackedCursor:
    def __init__(self, rows: PackedRows, file: BinaryIO) -> None:
        self._path, self._form, self._file = rows.path, rows.form, file

    def take(self, count: int, wanted: Places | None) -> Array:
        wanted = np.arange(count, dtype=np.int64) if wanted is None else wanted
        out = np.empty((len(wanted), self._form.row_bytes), dtype=np.uint8)
        most = max(PIECE // max(self._form.row_bytes, 1), 1)
        for start in range(0, count, most):
            found = self._read(min(most, count - start))
            first, last = np.searchsorted(wanted, (start, start + len(found)))
            out[first:last] = found[wanted[first:last] - start]
        return self._form.array(out.reshape(-1))

    def _read(self, count: int) -> Array:
        size = count * self._form.row_bytes
        pieces, left = [], size
        while left and (piece := self._file.read(left)):
            pieces.append(piece)
            left -= len(piece)
        if left:
            raise _short(self._path)
        return np.frombuffer(b"".join(pieces), dtype=np.uint8).reshape(count, -1)


def _short(path: Path) -> DataUnreadable:
    return DataUnreadable(f"{path} has fewer bytes of numbers than its header announces.")
