"""How far the marginals of a synthetic table are from those of the real one: a frozen value with one writer and reader.

It is a part of the result of `limbeck fidelity`, and like that the owner's: every share of `real` was counted, unpaid, in
private records.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from limbeck.evaluate.correlations import Correlations
from limbeck.evaluate.reading import finite, mapping, number, objects, whole


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Of the real and of the synthetic rows, 0 to 1."""

    real: float | None
    synthetic: float | None

    @classmethod
    def from_dict(cls, value: object) -> Shares:
        values = mapping(value)
        return cls(real=number(values.get("real")), synthetic=number(values.get("synthetic")))


@dataclass(frozen=True, kw_only=True)
class ColumnMarginal:
    """One column, or the label: the share of each bin, and of the cells without a value."""

    name: str
    numeric: bool
    total_variation: float | None
    missing: Shares
    bins: Mapping[str, Shares]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "bins": [{"name": name, **asdict(shares)} for name, shares in self.bins.items()]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ColumnMarginal:
        return cls(
            name=str(values.get("name", "-")),
            numeric=values.get("numeric") is True,
            total_variation=number(values.get("total_variation")),
            missing=Shares.from_dict(values.get("missing")),
            bins={str(each.get("name", "-")): Shares.from_dict(each) for each in objects(values.get("bins"))},
        )


@dataclass(frozen=True, kw_only=True)
class RareCategory:
    """A category that few of the real rows have."""

    column: str
    category: str
    shares: Shares

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "category": self.category, **asdict(self.shares)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RareCategory:
        column, category = str(values.get("column", "-")), str(values.get("category", "-"))
        return cls(column=column, category=category, shares=Shares.from_dict(values))


@dataclass(frozen=True, kw_only=True)
class TableMarginals:
    """Total variations from the real training rows, 0 (the same) to 1 (nothing in common).

    pairs: of two columns; row i has those of column i with each column before it.
    real_one_way, real_two_way: the means of the real test rows, which chance alone keeps from 0.
    broken, real_broken: rows that break a declared constraint, of the set and of the real training rows; None without any.
    """

    columns: tuple[ColumnMarginal, ...]
    pairs: tuple[tuple[float | None, ...], ...]
    real_one_way: float | None
    real_two_way: float | None
    rare: tuple[RareCategory, ...]
    broken: int | None = None
    real_broken: int | None = None
    correlations: Correlations | None = None

    @property
    def one_way(self) -> float | None:
        return _mean([column.total_variation for column in self.columns])

    @property
    def two_way(self) -> float | None:
        return _mean([each for row in self.pairs for each in row])

    def to_dict(self) -> dict[str, Any]:
        return {
            "one_way": {"mean": self.one_way, "real_test": self.real_one_way},
            "two_way": {"mean": self.two_way, "real_test": self.real_two_way},
            "columns": [column.to_dict() for column in self.columns],
            "pairs": [list(row) for row in self.pairs],
            "rare": [each.to_dict() for each in self.rare],
            **({} if self.correlations is None else {"correlations": self.correlations.to_dict()}),
            **(
                {}
                if self.broken is None
                else {"broken_constraints": {"set": self.broken, "real_train": self.real_broken}}
            ),
        }

    @classmethod
    def from_dict(cls, value: object) -> TableMarginals | None:
        """Reads what it finds; None where there are no columns. The means are computed again."""
        values = mapping(value)
        columns = tuple(ColumnMarginal.from_dict(each) for each in objects(values.get("columns")))
        if not columns:
            return None
        rows = values.get("pairs")
        return cls(
            columns=columns,
            pairs=tuple(_row(row, place) for place, row in enumerate(rows if isinstance(rows, list) else [])),
            real_one_way=number(mapping(values.get("one_way")).get("real_test")),
            real_two_way=number(mapping(values.get("two_way")).get("real_test")),
            rare=tuple(RareCategory.from_dict(each) for each in objects(values.get("rare"))),
            correlations=Correlations.from_dict(values.get("correlations")),
            broken=whole(mapping(values.get("broken_constraints")).get("set")),
            real_broken=whole(mapping(values.get("broken_constraints")).get("real_train")),
        )


def _row(row: object, place: int) -> tuple[float | None, ...]:
    return tuple(finite(each) for each in row[:place]) if isinstance(row, list) else ()


def _mean(found: list[float | None]) -> float | None:
    numbers = [each for each in found if each is not None]
    return round(statistics.fmean(numbers), 6) if numbers else None
