"""CSV files: a header line and rows, read in pieces, so that a large file takes no more memory than its numbers do."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from limbeck.data import faults
from limbeck.data.limits import BYTES_PER_CELL, MOST_LINE, most_bytes, require_few_columns, require_room
from limbeck.errors import DataUnreadable, TooLarge

# Cells that a file does not have itself, because its rows are short.
MOST_ADDED = 4_000_000
# A byte that is no UTF-8 is content of a record, so it must not raise; it becomes an unknown category.
AS_TEXT: Any = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}


@contextmanager
def opened(path: Path) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
    """The names in the header line, and the rows after it."""
    with sentences(path), path.open(**AS_TEXT) as file:
        yield table_of(file, path)


def table_of(file: TextIO, path: Path) -> tuple[list[str], Iterator[list[str]]]:
    """The names in the header line of an open file, and the rows after it. Both are read under `sentences`."""
    reader = csv.reader(_lines(file, path), skipinitialspace=True)
    header = [name.strip() for name in next(reader, [])]
    require_few_columns(len(header), path)
    if not header or len(set(header)) != len(header):
        raise DataUnreadable(f"{path} needs a header line with {'distinct' if header else 'the'} column names.")
    return header, (row for row in reader if row)


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """What goes wrong with a file, as a sentence."""
    # Python's limit on a cell is 131,072 characters. A long text in a column that nobody asked for is no failure.
    before = csv.field_size_limit(MOST_LINE)
    try:
        with faults.sentences(path, _wrong):
            yield
    finally:
        csv.field_size_limit(before)


def _wrong(error: Exception) -> str | None:
    readable = not isinstance(error, OSError | csv.Error)
    return None if readable else f"is not a readable CSV file ({type(error).__name__})"


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    while line := file.readline(MOST_LINE):
        if len(line) == MOST_LINE:
            raise TooLarge(f"{path} has a line of more than {MOST_LINE} characters; is it a CSV file?")
        yield line


def pieces(rows: Iterable[list[str]], indices: Sequence[int], size: int, path: Path) -> Iterator[list[list[str]]]:
    """The stripped cells of the columns at these indices, `size` rows at a time. A short row has empty cells at its end."""
    there = added = 0
    last = max(indices)
    for piece in _rows_at_once(rows, size):
        widths = [len(row) for row in piece]
        there += sum(widths)
        short = sum(width <= last for width in widths)
        added += short * len(indices)
        if added > MOST_ADDED and added > 4 * there:  # a small file of short rows would become a huge table
            raise DataUnreadable(f"{path} is no table: most of its rows are much shorter than its header line.")
        full = [row if len(row) > last else row + [""] * (last + 1 - len(row)) for row in piece] if short else piece
        yield [[row[index].strip() for row in full] for index in indices]


def _rows_at_once(rows: Iterable[list[str]], size: int) -> Iterator[list[list[str]]]:
    """So many rows, or fewer if they are long."""
    found: list[list[str]] = []
    length = 0
    for row in rows:
        found.append(row)
        length += sum(map(len, row)) + BYTES_PER_CELL * len(row)
        if len(found) == size or length > MOST_LINE:
            yield found
            found, length = [], 0
    if found:
        yield found


def gather(names: Sequence[str], found: Iterable[Sequence[Sequence[str]]], path: Path) -> dict[str, list[str]]:
    """Whole columns, from pieces of them. Equal cells are kept once, and no more is kept than is allowed."""
    columns: list[list[str]] = [[] for _ in names]
    known: dict[str, str] = {}
    texts = rows = 0
    for piece in found:
        for column, cells in zip(columns, piece, strict=True):
            met: dict[int, str] = {}  # one long text in many rows is compared once, not in every row
            for cell in cells:
                kept = met.get(id(cell)) if len(cell) > 100 else known.get(cell)
                if kept is None:
                    kept = met[id(cell)] = known.setdefault(cell, cell)
                    texts += sys.getsizeof(cell) + 100 if kept is cell else 0
                column.append(kept)
        rows += len(piece[0])
        needed = texts + BYTES_PER_CELL * rows * len(columns)
        if needed > most_bytes():
            require_room(needed, path)
    return dict(zip(names, columns, strict=True))


def read_columns(path: Path) -> dict[str, list[str]]:
    """All columns of a CSV file with a header line, as stripped texts."""
    with opened(path) as (header, rows):
        return gather(header, pieces(rows, range(len(header)), max(1, MOST_LINE // 16 // len(header)), path), path)
