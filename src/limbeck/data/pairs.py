"""Records and labels that are two arrays side by side: what every reader of such files checks, by headers alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from limbeck.data.limits import require_count, require_room
from limbeck.data.records import Array, Records, as_records, require_form
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema


class Announced(Protocol):
    """What a header says of an array: its shape, and what reading it takes."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def room(self) -> int: ...


def judge(x: Announced, y: Announced, schema: Schema | None, where: Path) -> None:
    """Refuse a wrong form, far too many records, and what takes too much memory, before a number is unpacked."""
    if schema is not None:
        require_form(x.shape, y.shape, schema, str(where))
        require_count(x.shape[0], schema, where)
    require_room(x.room + y.room, where, schema)


def require_records(schema: Schema, words: str) -> None:
    """words: the file, and that it cannot say who a record is about."""
    if schema.by_person:
        raise DataUnreadable(
            f"{words} cannot say who a record is about, but the unit of '{schema.name}' is {schema.unit_words}. Save x, y and "
            "the ids of the persons in an .npz archive."
        )


def read(path: Path, schema: Schema, load: Callable[[Path, Schema], tuple[Array, Array]], words: str) -> Records:
    require_records(schema, words)
    x, y = load(path, schema)
    return as_records(x, y, schema, str(path))
