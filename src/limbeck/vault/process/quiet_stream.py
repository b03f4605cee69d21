"""A stream of records whose failures are all one: what goes wrong is for the owner's log, not for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from limbeck.data.records import Records
from limbeck.data.streams.marks import Mark
from limbeck.data.streams.stream import Cursor, Places, RecordStream
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema
from limbeck.vault.source import checked_records


@dataclass(frozen=True)
class QuietStream:
    """Guarantee: whatever a reader raises, or hands over that is not what the schema says, is one sentence."""

    schema: Schema
    note: Callable[[BaseException], None]
    stream: RecordStream | None = None

    def over(self, stream: RecordStream) -> QuietStream:
        return replace(self, stream=stream)

    @contextmanager
    def told(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.note(error)
            raise DataUnreadable("The records cannot be read.") from None

    @property
    def _stream(self) -> RecordStream:
        assert self.stream is not None
        return self.stream

    @property
    def where(self) -> str:
        return self._stream.where

    @property
    def room(self) -> int:
        return self._stream.room

    def marks(self) -> tuple[Mark, ...]:
        with self.told():
            return self._stream.marks()

    def check(self) -> None:
        with self.told():
            self._stream.check()

    @contextmanager
    def opened(self) -> Iterator[Cursor]:
        with self.told():
            opened = self._stream.opened()
            cursor = opened.__enter__()
        try:
            yield _QuietCursor(self, cursor)
        finally:
            opened.__exit__(None, None, None)


@dataclass(frozen=True)
class _QuietCursor:
    quiet: QuietStream
    cursor: Cursor

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        with self.quiet.told():
            passed, found = self.cursor.take(count, wanted)
            return passed, checked_records(found, self.quiet.schema)
