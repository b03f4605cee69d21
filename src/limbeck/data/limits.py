"""How much a file may take when it is read, decided from its header before anything is unpacked.

A few megabytes can unpack to more than a machine has: zeros in gzip, one long text in a dictionary, an announced shape.
What is allowed comes from the schema, which the owner wrote, and from a declared maximum where there is none yet.
"""

from __future__ import annotations

import os
from pathlib import Path

from limbeck.errors import BadInput, DataUnreadable, TooLarge
from limbeck.privacy.schema import Schema

MOST_BYTES = 1 << 30
MOST_COLUMNS = 50_000
# One line of a CSV file, and one cell of it.
MOST_LINE = 1 << 24
# What a cell of a table takes while a schema is drafted from it, beside its text.
BYTES_PER_CELL = 24
BYTES_VARIABLE, COLUMNS_VARIABLE = "LIMBECK_MOST_BYTES", "LIMBECK_MOST_COLUMNS"
# A double in the file and a float beside it, with a little to spare.
BYTES_PER_DECLARED_NUMBER = 16


def most_bytes(schema: Schema | None = None) -> int:
    """What reading one set may take: the declared maximum, or what its schema declares if that is more."""
    allowed = _from_environment(BYTES_VARIABLE, MOST_BYTES)
    if schema is None:
        return allowed
    numbers = schema.numbers + (1 if schema.by_person else 0)
    return max(allowed, schema.records * numbers * BYTES_PER_DECLARED_NUMBER)


def most_columns() -> int:
    return _from_environment(COLUMNS_VARIABLE, MOST_COLUMNS)


def _from_environment(variable: str, default: int) -> int:
    text = os.environ.get(variable)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
        raise BadInput(f"{variable} must be a whole number of at least 1, got '{text[:40]}'.")
    return int(text)


def array_bytes(numbers: int, itemsize: int, converted: bool) -> int:
    """What an array takes: as it stands in the file, and once more as a reader hands it on (8 bits, or a float)."""
    return numbers * (max(itemsize, 1) + (4 if converted else 1))


def require_room(needed: int, where: Path | str, schema: Schema | None = None) -> None:
    """Refuse what would take too much memory. `needed` comes from a header, never from unpacked content."""
    allowed = most_bytes(schema)
    if needed > allowed:
        raise TooLarge(
            f"{where} would take about {size_words(needed)} of memory when it is read; the limit is {size_words(allowed)}. "
            f"If the file is what you expect, set {BYTES_VARIABLE}={1 << needed.bit_length()} and run the command again."
        )


def require_plain(path: Path) -> None:
    """Refuse a pipe or a device: it may never end, and cannot be read twice."""
    if not (path.is_file() or path.is_dir()):
        raise DataUnreadable(f"{path} is neither a plain file nor a folder; copy what it gives into a file first.")


def require_count(count: int, schema: Schema, where: Path | str) -> None:
    """Refuse a file with far more records than its schema declares. About right is right: a count is never exact."""
    most = 10 * schema.records + 1000
    if count > most:
        raise DataUnreadable(
            f"{where} announces {count} records, far more than the {schema.records} of the schema of '{schema.name}'; "
            "correct 'records' in the schema if the file is right."
        )


def require_few_columns(count: int, where: Path | str) -> None:
    if count > most_columns():
        raise TooLarge(
            f"{where} has {count} columns; the limit is {most_columns()}. If the file is what you expect, set "
            f"{COLUMNS_VARIABLE}={count} and run the command again."
        )


def size_words(count: int) -> str:
    """
    >>> size_words(1 << 30), size_words(300)
    ('1.1 GB', '1 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"
