"""Parquet files in pieces, row group by row group. A row group of which nothing is wanted is not read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from limbeck.data import images, parquet, table
from limbeck.data.limits import require_count
from limbeck.data.records import Records, class_indices
from limbeck.data.streams.marks import Mark, mark_file
from limbeck.data.streams.stream import Cursor, Places, joined
from limbeck.privacy.schema import Schema

# What is read of a column at a time, instead of a whole row group.
BUFFER = 1 << 20


@dataclass(frozen=True)
class ParquetStream:
    path: Path
    schema: Schema

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def room(self) -> int:
        with parquet.opened(self.path) as file:
            rows = int(file.metadata.num_rows)
        return (
            rows
            * self.schema.numbers
            * (np.dtype(images.raw_dtype(self.schema)).itemsize if self.schema.is_image else 8)
        )

    def marks(self) -> tuple[Mark, ...]:
        return (mark_file(self.path),)

    def check(self) -> None:
        """Reading shows all."""

    @contextmanager
    def opened(self) -> Iterator[Cursor]:
        with ExitStack() as stack:
            with parquet.sentences(self.path):
                file = stack.enter_context(parquet.parquet_file(self.path, BUFFER))
                require_count(int(file.metadata.num_rows), self.schema, self.path)
                cursor = _ParquetCursor(self, file)
            yield cursor


class _ParquetCursor:
    def __init__(self, stream: ParquetStream, file: Any) -> None:
        self._path, self._schema, self._file = stream.path, stream.schema, file
        self._image: tuple[str, str] | None = None
        if stream.schema.is_image:
            image, label, _ = parquet.image_columns(file, stream.schema, stream.path)
            self._image, self._names, most = (image, label), [image, label], parquet.CHUNK
        else:
            self._names = parquet.table_columns(file, stream.schema, stream.path)
            most = table.rows_at_once(stream.schema)
        self._size = parquet.rows_at_once(file, self._names, stream.path, stream.schema, most)
        self._groups = [int(file.metadata.row_group(index).num_rows) for index in range(file.metadata.num_row_groups)]
        self._next = 0  # the next row group
        self._batches: Iterator[Any] = iter(())
        self._batch: Any = None  # what is left of the rows that are unpacked
        self._passed = 0

    def take(self, count: int, wanted: Places | None = None) -> tuple[int, Records]:
        passed, found = 0, []
        with parquet.sentences(self._path):
            while passed < count:
                left = None if wanted is None else wanted[np.searchsorted(wanted, passed) :]
                nearest = 0 if left is None else int(left[0]) - passed if len(left) else count
                skipped = self._skip_groups(min(nearest, count - passed))
                passed += skipped
                if skipped:
                    continue
                batch = self._unpacked(count - passed)
                if batch is None:
                    break
                chosen = np.arange(len(batch)) if left is None else left[left < passed + len(batch)] - passed
                if len(chosen):
                    found.append(self._piece(batch if left is None else batch.take(pa.array(chosen)), chosen))
                passed += len(batch)
                self._passed += len(batch)
        return passed, joined(found, self._schema)

    def _skip_groups(self, count: int) -> int:
        """How many rows are passed by leaving whole row groups out, of the next `count` ones, which nobody wants."""
        skipped = 0
        while self._at_border() and self._next < len(self._groups) and self._groups[self._next] <= count - skipped:
            skipped += self._groups[self._next]
            self._next += 1
        self._passed += skipped
        return skipped

    def _at_border(self) -> bool:
        """Whether no row group is begun."""
        if self._batch is None:
            self._batch = next(self._batches, None)
        return self._batch is None

    def _unpacked(self, most: int) -> Any:
        """The next rows, at most so many; None at the end."""
        while self._at_border():
            if self._next == len(self._groups):
                return None
            self._batches = self._file.iter_batches(batch_size=self._size, row_groups=[self._next], columns=self._names)
            self._next += 1
        batch = self._batch
        self._batch = batch.slice(most) if len(batch) > most else None
        return batch.slice(0, most)

    def _piece(self, batch: Any, chosen: Places) -> Records:
        if self._image is None:
            return table.as_piece(parquet.table_piece(batch, self._names, self._schema), self._schema, self._path)
        image, label = self._image
        x = np.empty((len(batch), *self._schema.shape), dtype=images.raw_dtype(self._schema))
        for row, cell in enumerate(parquet.pictures(batch.column(image))):
            where = f"{self._path}, row {self._passed + int(chosen[row])}"
            x[row] = images.decode(parquet.picture_bytes(cell, where), self._schema, where)
        return Records(x, class_indices(parquet.cells(batch.column(label)), self._schema, str(self._path)))
