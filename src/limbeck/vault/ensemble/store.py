"""Checkpoints of an ensemble: sealed with AES-256-GCM, in the vault's own folder, readable by this user only.

A file is a sequence of frames, each nonce (12 bytes), length (8 bytes), sealed bytes. The first frame is JSON: clock, identity of
the ensemble, names, types and shapes; the others are the tensors' bytes in order. Every frame is bound to its grant, its
query, its file and its index in it, so frames cannot be swapped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from torch import Tensor

from limbeck.errors import LedgerFault, RunConflict
from limbeck.files import read_or_create, replacing
from limbeck.vault.ensemble.partition import KEY_BYTES
from limbeck.vault.noise import Randomness
from limbeck.vault.private_folder import KEY, folder_of

FRAME = 1 << 24
SEALING_KEY = 32
KEYS = SEALING_KEY + KEY_BYTES
TYPES = {torch.float32: "float32", torch.int64: "int64", torch.bool: "bool"}


@dataclass(frozen=True)
class EnsembleStore:
    """Keys and checkpoints of the ensembles of one grant."""

    ledger: Path
    grant: str
    randomness: Randomness

    @property
    def folder(self) -> Path:
        return folder_of(self.ledger, self.grant)

    def partition_key(self, label: str) -> bytes:
        """The key that shares out the records for one query; drawn once, and kept for a resumed run."""
        return hashlib.blake2b(label.encode(), key=self._keys()[SEALING_KEY:], digest_size=KEY_BYTES).digest()

    def _keys(self) -> bytes:
        path = self.folder / KEY
        with _faults(path):
            self._make_folder()
            keys = read_or_create(path, self._new_keys)
        # Another key would share out the records anew. Files without a digest are those of older versions.
        keys, digest = keys[:KEYS], keys[KEYS:]
        if len(keys) != KEYS or digest not in (b"", hashlib.sha256(keys).digest()):
            raise _damaged(path)
        return keys

    def _new_keys(self) -> bytes:
        # The sealing key is never the insecure one: a test's seed should not open a checkpoint.
        keys = os.urandom(SEALING_KEY) + self.randomness.stream("partition", 0).integers(KEY_BYTES // 8).tobytes()
        return keys + hashlib.sha256(keys).digest()

    def _make_folder(self) -> None:
        for folder in (self.folder.parent, self.folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def save(self, label: str, clock: int, identity: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Guarantee: the file is sealed and of mode 600 from its first byte on; the old one stays until the new one is safe."""
        cipher, unique = AESGCM(self._keys()[:SEALING_KEY]), os.urandom(16)
        header = {"clock": clock, "identity": identity, "tensors": _listed(tensors)}
        path = self._path(label)

        def frames() -> Iterator[bytes]:
            yield unique
            for index, plain in enumerate(_plain_frames(json.dumps(header).encode(), tensors)):
                nonce = os.urandom(12)
                sealed = cipher.encrypt(nonce, plain, self._bound(label, unique, index))
                yield nonce + len(sealed).to_bytes(8, "big")
                yield sealed

        with _faults(path):
            self._make_folder()
            _write_private(path, frames())

    def load(self, label: str, identity: dict[str, Any], into: dict[str, Tensor]) -> int | None:
        """Fill the tensors in place and return the clock; None where there is no checkpoint."""
        path = self._path(label)
        if not path.exists():
            return None
        cipher = AESGCM(self._keys()[:SEALING_KEY])
        try:
            with path.open("rb") as file:
                unique = file.read(16)
                header = json.loads(self._opened(file, cipher, label, unique, 0))
                if header["identity"] != json.loads(json.dumps(identity)) or header["tensors"] != _listed(into):
                    raise RunConflict(
                        f"The teachers in {path.parent} belong to another configuration; put the first one back to resume."
                    )
                index = 1
                for value in into.values():
                    index = self._fill(value, file, cipher, label, unique, index)
                return int(header["clock"])
        except (OSError, ValueError, KeyError, InvalidTag):
            raise _damaged(path) from None

    def _fill(self, value: Tensor, file: BinaryIO, cipher: AESGCM, label: str, unique: bytes, index: int) -> int:
        parts = []
        for _ in range(_frames_of(value)):
            parts.append(self._opened(file, cipher, label, unique, index))
            index += 1
        flat = np.frombuffer(b"".join(parts), dtype=TYPES[value.dtype]).copy()
        value.copy_(torch.from_numpy(flat).view(value.shape))
        return index

    def _opened(self, file: BinaryIO, cipher: AESGCM, label: str, unique: bytes, index: int) -> bytes:
        nonce, length = file.read(12), int.from_bytes(file.read(8), "big")
        if length > 2 * FRAME:
            raise ValueError(length)
        return cipher.decrypt(nonce, file.read(length), self._bound(label, unique, index))

    def _bound(self, label: str, unique: bytes, index: int) -> bytes:
        return json.dumps([self.grant, label, unique.hex(), index]).encode()

    def drop(self, label: str) -> None:
        """Remove one ensemble's checkpoint, when no further answer can be asked of it."""
        self._path(label).unlink(missing_ok=True)

    def _path(self, label: str) -> Path:
        return self.folder / f"{label.encode().hex()}.sealed"


def _listed(tensors: dict[str, Tensor]) -> list[list[Any]]:
    return [[name, TYPES[value.dtype], list(value.shape)] for name, value in tensors.items()]


def _raw(value: Tensor) -> memoryview:
    return value.detach().cpu().contiguous().numpy().reshape(-1).view(np.uint8).data


def _frames_of(value: Tensor) -> int:
    return -(-value.numel() * value.element_size() // FRAME)


def _plain_frames(header: bytes, tensors: dict[str, Tensor]) -> Iterator[bytes | memoryview]:
    yield header
    for value in tensors.values():
        raw = _raw(value)
        for start in range(0, len(raw), FRAME):
            yield raw[start : start + FRAME]


def _write_private(path: Path, parts: Iterator[bytes] | list[bytes]) -> None:
    with replacing(path, mode=0o600) as temporary, temporary.open("wb") as file:
        file.writelines(parts)


@contextlib.contextmanager
def _faults(path: Path) -> Iterator[None]:
    """A full or read-only disk, as a sentence."""
    try:
        yield
    except OSError as error:
        raise LedgerFault(
            f"The vault's folder {path.parent} cannot be written ({error.strerror or error}); make room or make it writable, "
            "then resume the run."
        ) from None


def _damaged(path: Path) -> RunConflict:
    return RunConflict(
        f"The vault's file {path} is damaged, so its teachers cannot go on; what the run has booked stays booked. Restore the "
        "file from a backup, or start a new run in another folder."
    )
