"""The records of a vault that serves several grants: held once, and one sentence for whatever goes wrong with reading them."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from limbeck.data.records import Records
from limbeck.data.streams.stream import RecordStream
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema
from limbeck.vault.process.quiet_stream import QuietStream
from limbeck.vault.source import PrivateSource, StreamedSource, checked_records


class SharedRecords:
    """A private source that all vaults of one server read from. It holds no record that no vault holds.

    Guarantee: a reader's failure, of whatever kind, is told apart from no other one: too little memory, a broken file, a label
    that is no class, or a shape that is not the schema's.
    """

    def __init__(self, source: PrivateSource, note: Callable[[BaseException], None]) -> None:
        self._source, self._note = source, note
        self._held: weakref.ref[Records] | None = None

    @property
    def schema(self) -> Schema:
        return self._source.schema

    def load(self) -> Records:
        held = None if self._held is None else self._held()
        if held is None:
            try:
                held = checked_records(self._source.load(), self.schema)
            except Exception as error:
                self._note(error)
                raise DataUnreadable("The records cannot be read.") from None
            self._held = weakref.ref(held)
        return held

    def stream(self) -> RecordStream | None:
        """Records in pieces, which nobody holds; their failures are the same one."""
        if not isinstance(self._source, StreamedSource):
            return None
        quiet = QuietStream(self.schema, self._note)
        with quiet.told():
            found = self._source.stream()
        return None if found is None else quiet.over(found)
