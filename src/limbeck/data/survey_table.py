"""A look at the columns of a private table, for its owner: ranges of numbers, lists of categories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from limbeck.data import csv_file, parquet, table
from limbeck.data.rounding import round_range
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Column

MOST_CATEGORIES = 100
LONGEST_CATEGORY = 1000
# Whole numbers up to here are whole numbers as floats too.
MOST_WHOLE = float(1 << 53)


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


def survey_columns(columns: Mapping[str, list[str]]) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Numeric columns with a rounded range, categorical ones with their categories; and the names of the others."""
    found = {name: _column(name, cells) for name, cells in columns.items()}
    kept = tuple(column for column in found.values() if column is not None)
    return kept, tuple(name for name, column in found.items() if column is None)


def _column(name: str, cells: list[str]) -> Column | None:
    present = [cell for cell in cells if cell]
    try:
        values = np.array([table.number(cell) for cell in present])
    except ValueError:
        return _categorical(name, set(present))
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    low, high = round_range(finite)
    whole = bool((finite == np.rint(finite)).all()) and max(-low, high) <= MOST_WHOLE
    return Column(name=name, low=low, high=high, integer=whole)


def _categorical(name: str, found: set[str]) -> Column | None:
    if len(found) > MOST_CATEGORIES or any(len(text) > LONGEST_CATEGORY for text in found):
        return None
    return Column(name=name, categories=tuple(sorted(found)))
