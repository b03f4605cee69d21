"""Sharing out records by a keyed hash: where a record goes depends on the key and on that record alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Records


def record_hashes(records: Records, key: bytes) -> NDArray[np.uint64]:
    """(records, 2): two numbers of 64 bits for each record, by blake2b of its bytes and label under a secret key."""
    return _hashed((x.tobytes() + int(y).to_bytes(8, "big") for x, y in zip(records.x, records.y, strict=True)), key)


def unit_hashes(records: Records, key: bytes) -> NDArray[np.uint64]:
    """(records, 2): as `record_hashes`; where records belong to persons, all records of a person have that person's hash."""
    if records.units is None:
        return record_hashes(records, key)
    return _hashed((int(unit).to_bytes(8, "big", signed=True) for unit in records.units), key)


def _hashed(contents: Iterable[bytes], key: bytes) -> NDArray[np.uint64]:
    joined = b"".join(hashlib.blake2b(content, key=key, digest_size=16).digest() for content in contents)
    return np.frombuffer(joined, dtype=">u8").reshape(-1, 2)
