"""CSV files in pieces. A row that nobody wants is split into cells, because only that shows where the next one begins."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from limbeck.data import csv_file, table
from limbeck.data.limits import require_count
from limbeck.data.records import Records
from limbeck.data.streams.marks import Mark, mark_file
from limbeck.data.streams.stream import Cursor, Places, joined
from limbeck.privacy.schema import Schema


@dataclass(frozen=True)
class CsvStream:
    path: Path
    schema: Schema

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def room(self) -> int:
        """By the schema's number of records, or fewer if the file is too short for them: a row has a byte for each column."""
        most = self.path.stat().st_size // (len(self.schema.columns) + 1)
        return min(self.schema.records, most) * self.schema.numbers * 8

    def marks(self) -> tuple[Mark, ...]:
        return (mark_file(self.path),)

    def check(self) -> None:
        """Reading shows all."""

    @contextmanager
    def opened(self) -> Iterator[Cursor]:
        with ExitStack() as stack:
            with csv_file.sentences(self.path):
                file = stack.enter_context(self.path.open(**csv_file.AS_TEXT))
                header, rows = csv_file.table_of(file, self.path)
                places = table.places_of(header, self.schema, self.path)
            yield _CsvCursor(self, places, rows)


class _CsvCursor:
    def __init__(self, stream: CsvStream, places: list[int], rows: Iterator[list[str]]) -> None:
        self._path, self._schema, self._places, self._rows = stream.path, stream.schema, places, rows
        self._names, self._passed = table.wanted_columns(stream.schema), 0

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        before, size = self._passed, table.rows_at_once(self._schema)
        with csv_file.sentences(self._path):
            found = [
                table.as_piece(dict(zip(self._names, piece, strict=True)), self._schema, self._path)
                for piece in csv_file.pieces(self._wanted(count, wanted), self._places, size, self._path)
            ]
        require_count(self._passed, self._schema, self._path)
        return self._passed - before, joined(found, self._schema)

    def _wanted(self, count: int, wanted: Places | None) -> Iterator[list[str]]:
        """The wanted ones of the next rows. All of them are passed, also those after the last wanted one."""
        if wanted is None:
            for row in itertools.islice(self._rows, count):
                self._passed += 1
                yield row
            return
        start = 0
        for place in wanted.tolist():
            start += self._skipped(place - start)
            for row in itertools.islice(self._rows, 1):
                start += 1
                self._passed += 1
                yield row
        self._skipped(count - start)

    def _skipped(self, count: int) -> int:
        there = sum(1 for _ in itertools.islice(self._rows, count))
        self._passed += there
        return there
