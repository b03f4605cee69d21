"""Correlations of the numbers of a table, real and synthetic: a frozen value with one writer and reader. The owner's."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np

from limbeck.data.records import Array
from limbeck.evaluate.reading import finite, mapping
from limbeck.privacy.schema import Schema

DIGITS = 4
Triangle = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Correlations:
    """Pearson's, of numeric and ordinal columns; row i has those of column i with each before it. None where one is constant."""

    columns: tuple[str, ...]
    real: Triangle
    synthetic: Triangle

    @property
    def pairs(self) -> list[tuple[str, str, float, float]]:
        """(column, column, real, synthetic), the farthest apart first."""
        found = [
            (self.columns[i], self.columns[j], real, own)
            for i, (reals, owns) in enumerate(zip(self.real, self.synthetic, strict=True))
            for j, (real, own) in enumerate(zip(reals, owns, strict=True))
            if real is not None and own is not None
        ]
        return sorted(found, key=lambda pair: -abs(pair[2] - pair[3]))

    @property
    def mean_error(self) -> float | None:
        """The mean of what they differ by."""
        apart = [abs(real - own) for _, _, real, own in self.pairs]
        return round(statistics.fmean(apart), DIGITS) if apart else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "mean_error": self.mean_error,
            "columns": list(self.columns),
            "real": [list(row) for row in self.real],
            "synthetic": [list(row) for row in self.synthetic],
        }

    @classmethod
    def from_dict(cls, value: object) -> Correlations | None:
        """Reads what it finds; None where there are no two columns."""
        values = mapping(value)
        names = values.get("columns")
        if not isinstance(names, list) or len(names) < 2:
            return None
        real, synthetic = (_triangle(values.get(side), len(names)) for side in ("real", "synthetic"))
        return cls(columns=tuple(map(str, names)), real=real, synthetic=synthetic)


def correlations(real: Array, synthetic: Array, schema: Schema) -> Correlations | None:
    """Of encoded rows with hard categories; rows that lack one of two values count for neither."""
    kept, start = [], 0
    for column in schema.columns:
        if column.numeric or column.ordinal:
            kept.append((column.name, start, column.missing))
        start += column.width
    if len(kept) < 2:
        return None
    sides = [_correlated(rows, kept) for rows in (real, synthetic)]
    return Correlations(columns=tuple(name for name, _, _ in kept), real=sides[0], synthetic=sides[1])


def _correlated(rows: Array, kept: list[tuple[str, int, bool]]) -> Triangle:
    values = np.stack([rows[:, start] for _, start, _ in kept]).astype(np.float64)
    there = np.stack([rows[:, start + 1] < 0.5 if gaps else np.ones(len(rows), dtype=bool) for _, start, gaps in kept])
    return tuple(tuple(_one(values, there, i, j) for j in range(i)) for i in range(len(kept)))


def _one(values: Array, there: Array, i: int, j: int) -> float | None:
    both = there[i] & there[j]
    one, two = values[i, both], values[j, both]
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(two) == 0:
        return None
    return round(float(np.corrcoef(one, two)[0, 1]), DIGITS)


def _triangle(value: object, count: int) -> Triangle:
    rows = value if isinstance(value, list) else []
    found = [row if isinstance(row, list) else [] for row in rows[:count]]
    found += [[] for _ in range(count - len(found))]
    return tuple(tuple(finite(row[j]) if j < len(row) else None for j in range(i)) for i, row in enumerate(found))
