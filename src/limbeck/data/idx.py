"""IDX files, the format of MNIST: a header of sizes, then the numbers; plain or gzipped."""

from __future__ import annotations

import gzip
import math
import re
import struct
import zlib
from pathlib import Path

import numpy as np

from limbeck.data.records import Array, Records, as_records
from limbeck.errors import DataNotFound, DataUnreadable
from limbeck.schema import Schema

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
SPLITS = {"train": ("train",), "test": ("t10k", "test")}
_IMAGES = re.compile(r"images[-.]?idx3-ubyte(\.gz)?$|images\.idx(\.gz)?$")
_LABELS = re.compile(r"labels[-.]?idx1-ubyte(\.gz)?$|labels\.idx(\.gz)?$")


def is_images(path: Path) -> bool:
    return _IMAGES.search(path.name) is not None


def is_labels(path: Path) -> bool:
    return _LABELS.search(path.name) is not None


def content(path: Path) -> bytes:
    """The bytes of the file, unpacked if it is gzipped."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except FileNotFoundError:
        raise DataNotFound(f"There is no file {path}.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataUnreadable(f"{path} cannot be read: {error}.") from None


def parse(data: bytes, where: str) -> Array:
    """The array of an IDX file."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES:
        raise DataUnreadable(f"{where} is not an IDX file: its first four bytes are {data[:4].hex(' ') or 'missing'}.")
    rank = data[3]
    start = 4 + 4 * rank
    if len(data) < start:
        raise DataUnreadable(f"{where} ends inside its header, after {len(data)} bytes.")
    shape = struct.unpack(f">{rank}I", data[4:start])
    kind = np.dtype(TYPES[data[2]])
    expected = start + math.prod(shape) * kind.itemsize
    if len(data) != expected:
        raise DataUnreadable(f"{where} has {len(data)} bytes, but its header announces {expected}.")
    # A copy, because the view of the bytes is read-only and tensors want memory of their own.
    return np.frombuffer(data, dtype=kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))


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


def read(images: Path, schema: Schema) -> Records:
    x = parse(content(images), str(images))
    labels = labels_beside(images)
    y = parse(content(labels), str(labels))
    return as_records(x, y, schema, str(images))
