"""The columns of a private table in Parquet, as texts to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from limbeck.data import csv_file, parquet, table
from limbeck.errors import DataUnreadable


def parquet_columns(file: Any, path: Path) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """The columns of a table as texts, and the names of those with lists or records, which are left out."""
    fields = [file.schema_arrow.field(index) for index in range(len(file.schema_arrow.names))]
    nested = tuple(field.name for field in fields if parquet.is_nested(field))
    names = [field.name for field in fields if not parquet.is_nested(field)]
    if not names:
        raise DataUnreadable(f"{path} has no column with one value per row.")
    size = max(1, min(8192, table.CHUNK // len(names)))
    found = (
        [
            ["" if cell is None else str(cell) for cell in parquet.cells(batch.column(name), as_text=True)]
            for name in names
        ]
        for batch in parquet.batches(file, names, path, None, size)
    )
    return csv_file.gather(names, found, path), nested
