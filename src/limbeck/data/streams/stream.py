"""Records that are read piece by piece, in the order of their files: what every such reader is.

A reader in `limbeck.data` holds a set as one array. A stream holds none of it: whoever reads opens a cursor, takes the next
records, all of them or those at chosen places, and closes it. Every answer of a vault is one such pass. A record has the same
bits in both, because both come from the same functions of one record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Array, Records, as_raw, class_indices, fit_shape
from limbeck.data.streams.marks import Mark
from limbeck.errors import DataUnreadable, out_of_memory, ran_out
from limbeck.privacy.schema import Schema

Places = NDArray[np.int64]
NONE: Places = np.empty(0, dtype=np.int64)


class Cursor(Protocol):
    """A place in a pass over records."""

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        """How many of the next `count` records there are, and those of them at `wanted`, which rise from 0; None for all.
        Places after the last record are left out.

        Memory grows with what is wanted, not with `count`.
        """
        ...


class RecordStream(Protocol):
    """Records of one schema, unread, in files that can be read again and again."""

    @property
    def where(self) -> str: ...

    @property
    def room(self) -> int:
        """What the records would take in memory, in bytes, by what headers announce."""
        ...

    def marks(self) -> tuple[Mark, ...]:
        """What tells the files from other ones, and from what they were before."""
        ...

    def check(self) -> None:
        """Raise if the files are damaged in a way that reading records would not show."""
        ...

    def opened(self) -> AbstractContextManager[Cursor]: ...


def piece_of(x: Array, labels: Array | Sequence[Any], schema: Schema, where: str) -> Records:
    """A piece of a set, in the form of the whole. It may be empty."""
    y = class_indices(labels, schema, where)
    if len(x) != len(y):
        raise DataUnreadable(f"{where} has a piece of {len(x)} records and {len(y)} labels.")
    return Records(as_raw(fit_shape(x, schema, where), where), y)


def joined(pieces: Sequence[Records], schema: Schema) -> Records:
    """One piece made of several."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return Records(np.empty((0, *schema.shape), dtype=np.float32), NONE)
    return Records(np.concatenate([piece.x for piece in pieces]), np.concatenate([piece.y for piece in pieces]))


@contextmanager
def sentences(where: str) -> Iterator[None]:
    """What the system says of a file that cannot be read, or of too little memory, as a sentence of ours."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if ran_out(error):
            raise out_of_memory(f"to read {where}") from None
        if not isinstance(error, OSError):
            raise
        raise DataUnreadable(f"{where} cannot be read: {error.strerror or type(error).__name__}.") from None


@dataclass(frozen=True)
class Shards:
    """Several streams, one after the other."""

    where: str
    schema: Schema
    shards: tuple[RecordStream, ...]

    @property
    def room(self) -> int:
        return 2 * sum(shard.room for shard in self.shards)  # each, and the whole made of them

    def marks(self) -> tuple[Mark, ...]:
        return tuple(mark for shard in self.shards for mark in shard.marks())

    def check(self) -> None:
        for shard in self.shards:
            shard.check()

    @contextmanager
    def opened(self) -> Iterator[Cursor]:
        with ExitStack() as stack:
            yield _ShardCursor(self, stack)


class _ShardCursor:
    """One shard is open at a time."""

    def __init__(self, shards: Shards, stack: ExitStack) -> None:
        self._schema, self._stack = shards.schema, stack
        self._left = list(shards.shards)
        self._cursor: Cursor | None = None

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        passed, found = 0, []
        while passed < count:
            if self._cursor is None:
                if not self._left:
                    break
                self._stack.close()
                self._cursor = self._stack.enter_context(self._left.pop(0).opened())
            asked = count - passed
            rest = None if wanted is None else wanted[wanted >= passed] - passed
            there, piece = self._cursor.take(asked, rest)
            found.append(piece)
            passed += there
            if there < asked:
                self._cursor = None
        return passed, joined([piece for piece in found if len(piece)] or found[:1], self._schema)
