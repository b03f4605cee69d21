"""Sharing out records by a keyed hash: where a record goes depends on the key and on that record alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Array, Records


def record_hashes(records: Records, key: bytes) -> NDArray[np.uint64]:
    """(records, 2): two numbers of 64 bits for each record, by blake2b of its bytes and label under a secret key."""
    return _hashed((_content(x, y) for x, y in zip(records.x, records.y, strict=True)), key)


def unit_hashes(records: Records, key: bytes, by_value: bool = False) -> NDArray[np.uint64]:
    """(records, 2): as `record_hashes`; where records belong to persons, all records of a person have that person's hash.

    by_value: equal numbers have equal hashes, whether they are held in eight bits or as floats.
    """
    if records.units is None and by_value:
        return _hashed((_content(_plain(x), y) for x, y in zip(records.x, records.y, strict=True)), key)
    if records.units is None:
        return record_hashes(records, key)
    return _hashed((int(unit).to_bytes(8, "big", signed=True) for unit in records.units), key)


def _content(x: Array, y: int) -> bytes:
    return x.tobytes() + int(y).to_bytes(8, "big")


def _plain(x: Array) -> Array:
    """Eight bits where these hold all the numbers of a record, else floats with one zero in place of two."""
    if x.dtype == np.uint8:
        return x
    with np.errstate(invalid="ignore"):
        small = x.clip(0, 255).astype(np.uint8)
    return small if np.array_equal(small, x) else x + np.float32(0)


def _hashed(contents: Iterable[bytes], key: bytes) -> NDArray[np.uint64]:
    joined = b"".join(hashlib.blake2b(content, key=key, digest_size=16).digest() for content in contents)
    return np.frombuffer(joined, dtype=">u8").reshape(-1, 2)
