"""NumPy archives: an .npz file with the arrays x and y. Their headers are read, and judged, before their numbers."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import numpy as np

from limbeck.data import faults
from limbeck.data.limits import array_bytes, require_count, require_room
from limbeck.data.records import Array, Records, as_records, no_labels, require_form, require_ids
from limbeck.data.units import require_one_id, unit_codes
from limbeck.errors import BadInput, DataUnreadable
from limbeck.privacy.schema import Schema

MAGIC = b"\x93NUMPY"
MOST_DIMENSIONS = 8
PIECE = 1 << 22
# What NumPy writes. Other methods are slow, or take memory that their header does not announce.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True)
class Header:
    """What an array's header announces."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def count(self) -> int:
        count = 1
        for side in self.shape:
            count *= side  # Python's integers: the product may be larger than 64 bits hold
        return count

    @property
    def size(self) -> int:
        return self.count * self.dtype.itemsize

    @property
    def room(self) -> int:
        return array_bytes(self.count, self.dtype.itemsize, converted=self.dtype not in (np.uint8, np.bool_))


def arrays(path: Path, schema: Schema | None = None, unit: str | None = None) -> tuple[Array, Array, Array | None]:
    """The arrays x and y as they are stored, and the array of the persons where its name is given.

    Without a label y is not looked at.
    """
    names = ("x", "y") if schema is None or schema.has_label else ("x",)
    if unit in ("x", "y"):
        raise BadInput(
            f"The unit '{unit}' is the array of the records or the labels; the persons need an array of their own."
        )

    def judge(headers: dict[str, Header]) -> None:
        x = headers["x"]
        y = headers["y"] if "y" in headers else Header(x.shape[:1], np.dtype(np.int64))
        if schema is not None:
            require_form(x.shape, y.shape, schema, str(path))
            require_count(x.shape[0], schema, path)
        if unit is not None:
            persons = headers[unit]
            require_one_id(persons.shape, persons.dtype, str(path))
            require_ids(y.shape[0] if y.shape else 0, persons.shape[0], str(path))

    found = stored(path, names if unit is None else (*names, unit), schema, judge)
    y = found["y"] if "y" in found else no_labels(found["x"])
    return found["x"], y, None if unit is None else found[unit]


def stored(
    path: Path,
    names: Sequence[str],
    schema: Schema | None = None,
    judge: Callable[[dict[str, Header]], None] = lambda headers: None,
) -> dict[str, Array]:
    """Arrays of an archive. Object arrays are refused: unpickling a file runs its code. `judge` sees the headers first."""
    with opened(path) as archive:
        found = members(archive, names, path)
        headers = {name: placed(archive, found[name], path).header for name in names}
        judge(headers)
        require_room(sum(header.room for header in headers.values()), path, schema)
        return {name: _values(archive, found[name]) for name in names}


def members(archive: zipfile.ZipFile, names: Sequence[str], path: Path) -> dict[str, zipfile.ZipInfo]:
    """Where these arrays stand in an archive."""
    listed = {info.filename: info for info in archive.infolist()}
    missing = [name for name in names if f"{name}.npy" not in listed]
    if missing:
        extra = "".join(f", {name}=..." for name in names if name not in ("x", "y"))
        raise DataUnreadable(
            f"{path} has no array {' and '.join(missing)} among its {len(listed)} entries. "
            f"Save it with numpy.savez(file, x=records, y=labels{extra})."
        )
    return {name: listed[f"{name}.npy"] for name in names}


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    with sentences(path), path.open("rb") as file:
        if file.read(len(MAGIC)) == MAGIC:
            raise DataUnreadable(f"{path} is a single array; expected an .npz archive with x and y.")
        with zipfile.ZipFile(file) as archive:
            yield archive


def sentences(path: Path) -> AbstractContextManager[None]:
    """What goes wrong with a file, as a sentence."""
    return faults.sentences(path, lambda error: "is not a readable .npz archive of plain numbers")


@dataclass(frozen=True)
class Placed:
    """An array of an archive: where its numbers begin in the file, if they lie there unpacked, and whether column by column."""

    header: Header
    begin: int | None
    by_columns: bool


def placed(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> Placed:
    """The announced shape and type, compared with the size that the archive lists for the member."""
    if member.compress_type not in METHODS:
        raise DataUnreadable(f"{path} is packed by a method that NumPy does not write; save it with numpy.savez.")
    with archive.open(member) as file:
        found, by_columns = announced(file)
        if file.tell() + found.size != member.file_size:
            raise DataUnreadable(
                f"{path} has {member.file_size} bytes in an array whose header announces {found.size}."
            )
        packed = member.compress_type != zipfile.ZIP_STORED
        begin = None if packed else _content(archive, member) + file.tell()
    return Placed(found, begin, by_columns)


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Where a member's bytes begin: after its own header, whose names may be longer than those of the directory."""
    assert archive.fp is not None
    archive.fp.seek(member.header_offset + 26)
    name, extra = struct.unpack("<HH", archive.fp.read(4))
    return int(member.header_offset) + 30 + int(name) + int(extra)


def announced(file: IO[bytes]) -> tuple[Header, bool]:
    """What an array's header says, and whether its numbers lie column by column."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(file)
    else:  # only for names of fields, and an array of fields is no batch of records
        raise ValueError
    # Fields and objects are no numbers, and the names of fields may be the first line of somebody's table.
    if len(shape) > MOST_DIMENSIONS or any(side < 0 for side in shape) or dtype.kind in "OV":
        raise ValueError
    return Header(shape, dtype), by_columns and len(shape) > 1


def require_sums(path: Path, names: Sequence[str]) -> None:
    """Compare the content of an archive's arrays with its checksums, which rows that are read where they lie do not."""
    for name in names:
        with numbers(path, name) as file:
            while file.read(PIECE):
                pass


@contextmanager
def numbers(path: Path, name: str) -> Iterator[BinaryIO]:
    """The bytes of an array after its header, unpacked while they are read."""
    with ExitStack() as stack:
        with sentences(path):  # around what is done here alone, and not around what the caller does
            archive = stack.enter_context(zipfile.ZipFile(path))
            file = stack.enter_context(archive.open(members(archive, (name,), path)[name]))
            announced(file)
        yield cast(BinaryIO, file)


def _values(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as file:
        values: Array = np.lib.format.read_array(file, allow_pickle=False)
        return values


def read(path: Path, schema: Schema) -> Records:
    x, y, ids = arrays(path, schema, schema.unit if schema.by_person else None)
    return as_records(x, y, schema, str(path), None if ids is None else unit_codes(ids, str(path)))
