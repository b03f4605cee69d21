"""Arrays of records and labels in pieces: .npy files, .npz archives and IDX files, packed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from limbeck.data import arrays, idx, npy
from limbeck.data.limits import array_bytes, require_count
from limbeck.data.records import Records, require_form
from limbeck.data.streams.marks import Mark, mark_file
from limbeck.data.streams.rows import Form, PackedRows, PlainRows, RowCursor, StoredRows
from limbeck.data.streams.stream import Cursor, Places, piece_of
from limbeck.privacy.schema import Schema

Sentences = Callable[[Path], AbstractContextManager[None]]


@dataclass(frozen=True)
class ArrayStream:
    """Rows of x and of y, side by side.

    files: all that the rows are in. damage: says if a file has a fault that its rows would not show.
    """

    where: str
    schema: Schema
    x: StoredRows
    y: StoredRows
    files: tuple[Path, ...]
    sentences: Sentences = field(repr=False)
    damage: Callable[[], None] = field(default=lambda: None, repr=False)

    @property
    def room(self) -> int:
        return sum(_room(rows.form) for rows in (self.x, self.y))

    def marks(self) -> tuple[Mark, ...]:
        return tuple(mark_file(file) for file in self.files)

    def check(self) -> None:
        with self.sentences(self.files[0]):
            self.damage()

    @contextmanager
    def opened(self) -> Iterator[Cursor]:
        with self.x.opened() as x, self.y.opened() as y:
            yield _ArrayCursor(self, x, y)


def _room(form: Form) -> int:
    count = form.rows * (form.row_bytes // max(form.dtype.itemsize, 1))
    return array_bytes(count, form.dtype.itemsize, converted=form.dtype.kind not in "ub" or form.dtype.itemsize > 1)


class _ArrayCursor:
    def __init__(self, stream: ArrayStream, x: RowCursor, y: RowCursor) -> None:
        self._stream, self._x, self._y = stream, x, y
        self._left = stream.x.form.rows

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        count = min(count, self._left)
        self._left -= count
        stream = self._stream
        with stream.sentences(stream.files[0]):
            x, y = self._x.take(count, wanted), self._y.take(count, wanted)
        return count, piece_of(x, y, stream.schema, stream.where)


def _judged(stream: ArrayStream) -> ArrayStream:
    x, y = stream.x.form, stream.y.form
    require_form(x.shape, y.shape, stream.schema, stream.where)
    require_count(x.rows, stream.schema, stream.where)
    return stream


def idx_stream(images: Path, schema: Schema) -> ArrayStream:
    labels = idx.labels_beside(images)
    idx.require_records(images, schema)
    parts = [_idx_rows(file) for file in (images, labels)]
    return _judged(ArrayStream(str(images), schema, *parts, (images, labels), idx.sentences))


def _idx_rows(path: Path) -> StoredRows:
    found, begin, packed = idx.announced(path)
    form = Form(found.shape, found.kind)
    if not packed:
        return PlainRows(path, begin, form)
    return PackedRows(path, lambda: idx.numbers(path), form)


def npy_stream(records: Path, schema: Schema) -> ArrayStream | None:
    labels = npy.labels_beside(records)
    npy.require_records(records, schema)
    parts: list[StoredRows] = []
    for path in (records, labels):
        found = npy.announced(path)
        if found.by_columns:
            return None
        parts.append(PlainRows(path, found.begin, Form(found.header.shape, found.header.dtype)))
    return _judged(ArrayStream(str(records), schema, *parts, (records, labels), npy.sentences))


def npz_stream(path: Path, schema: Schema) -> ArrayStream | None:
    """None where an array is stored column by column: a record does not lie in one piece."""
    parts: list[StoredRows] = []
    with arrays.opened(path) as archive:
        members = arrays.members(archive, ("x", "y"), path)
        for name in ("x", "y"):
            found = arrays.placed(archive, members[name], path)
            if found.by_columns:
                return None
            form = Form(found.header.shape, found.header.dtype)
            if found.begin is not None:
                parts.append(PlainRows(path, found.begin, form))
            else:
                parts.append(PackedRows(path, lambda name=name: arrays.numbers(path, name), form))  # type: ignore[misc]
    damage = (lambda: arrays.require_sums(path, ("x", "y"))) if isinstance(parts[0], PlainRows) else (lambda: None)
    return _judged(ArrayStream(str(path), schema, *parts, (path,), arrays.sentences, damage))
