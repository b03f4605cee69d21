"""Arrays of records and labels in pieces: .npy files, .npz archives and IDX files, packed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from limbeck.data import arrays, idx, npy, pairs
from limbeck.data.limits import array_bytes, require_count
from limbeck.data.records import Records, require_form
from limbeck.data.streams.marks import Mark, mark_file
from limbeck.data.streams.rows import Form, PackedRows, PlainRows, RowCursor, StoredRows
from limbeck.data.streams.stream import Cursor, Places, piece_of
from limbeck.privacy.schema import Schema

NAMES = ("x", "y")
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
        wanted = None if wanted is None else wanted[wanted < count]
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
    pairs.require_records(schema, idx.words(images))
    x, y = _idx_rows(images), _idx_rows(labels)
    return _judged(ArrayStream(str(images), schema, x, y, (images, labels), idx.sentences))


def _idx_rows(path: Path) -> StoredRows:
    found, begin, packed = idx.announced(path)
    form = Form(found.shape, found.kind)
    if not packed:
        return PlainRows(path, begin, form)
    return PackedRows(path, lambda: idx.numbers(path), form)


def npy_stream(records: Path, schema: Schema) -> ArrayStream | None:
    """None where an array is stored column by column: a record does not lie in one piece."""
    labels = npy.labels_beside(records)
    pairs.require_records(schema, npy.words(records))
    found = [npy.announced(path) for path in (records, labels)]
    if any(each.by_columns for each in found):
        return None
    x, y = (
        PlainRows(path, each.begin, Form(each.header.shape, each.header.dtype))
        for path, each in zip((records, labels), found, strict=True)
    )
    return _judged(ArrayStream(str(records), schema, x, y, (records, labels), npy.sentences))


def npz_stream(path: Path, schema: Schema) -> ArrayStream | None:
    """The same for an archive. Members that are not packed are read where they lie; the first pass compares their checksums."""
    with arrays.opened(path) as archive:
        members = arrays.members(archive, NAMES, path)
        found = [arrays.placed(archive, members[name], path) for name in NAMES]
    if any(each.by_columns for each in found):
        return None
    x, y = (_npz_rows(path, name, each) for name, each in zip(NAMES, found, strict=True))
    plain = [name for name, each in zip(NAMES, found, strict=True) if each.begin is not None]
    return _judged(
        ArrayStream(str(path), schema, x, y, (path,), arrays.sentences, lambda: arrays.require_sums(path, plain))
    )


def _npz_rows(path: Path, name: str, found: arrays.Placed) -> StoredRows:
    form = Form(found.header.shape, found.header.dtype)
    if found.begin is not None:
        return PlainRows(path, found.begin, form)
    return PackedRows(path, lambda: arrays.numbers(path, name), form)
