"""The constraints of a schema, ready to be used: which columns follow from others, and which rows keep to all of it.

Rows are columns of numbers by name, as `values.numbers_of` gives them, NaN for a gap; the label is the place of its class.

A comparison with a value never holds for a gap. So "if A then B" asks for a value that keeps to B. A sum has no value exactly
where one of its parts has none; of two columns that say the same, the second has none where the first has none. An order is one
of the values that are there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.column import Column
from limbeck.privacy.condition import Condition
from limbeck.privacy.values import Numbers

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Literal:
    """A condition, or that it does not hold."""

    condition: Condition
    holds: bool

    @property
    def column(self) -> str:
        return self.condition.column.name

    def of(self, numbers: Numbers) -> Mask:
        found: Mask = self.condition.keeps(numbers) == self.holds
        return found


@dataclass(frozen=True)
class Derived:
    """A column that follows from others: their sum, or the value that stands for that of the one source."""

    column: Column
    sources: tuple[str, ...]
    table: tuple[float, ...] | None = None

    def of(self, rows: Mapping[str, Numbers]) -> Numbers:
        if self.table is not None:
            places = rows[self.sources[0]]
            known = np.where(np.isnan(places), 0, places).astype(np.int64)
            return np.where(np.isnan(places), np.nan, np.array(self.table)[known])
        total: Numbers = np.sum([rows[name] for name in self.sources], axis=0)
        if self.column.grid is None:
            return total
        scale = self.column.grid[0]
        rounded: Numbers = np.rint(total * scale) / scale
        return rounded

    def in_range(self, numbers: Numbers) -> Mask:
        """Whether the schema allows it; a gap is one of its values."""
        if not self.column.numeric:
            return np.ones(len(numbers), dtype=np.bool_)
        low, high = self.column.range
        found: Mask = np.isnan(numbers) | ((numbers >= low) & (numbers <= high))
        return found


@dataclass(frozen=True)
class Rules:
    """never: literals that no row keeps to together. orders: columns that do not fall. derived: in an order in which each one's
    sources are known. unique: columns whose values are all different."""

    never: tuple[tuple[Literal, ...], ...] = ()
    orders: tuple[tuple[str, ...], ...] = ()
    derived: tuple[Derived, ...] = ()
    unique: tuple[Column, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.never or self.orders or self.derived or self.unique)

    @property
    def not_asked(self) -> frozenset[str]:
        """Columns that no question has to be asked about."""
        return frozenset([*(each.column.name for each in self.derived), *(column.name for column in self.unique)])

    @property
    def names(self) -> frozenset[str]:
        """Columns, and maybe the label, that `hold` looks at."""
        literals = (literal.column for each in self.never for literal in each)
        derived = (name for each in self.derived for name in (each.column.name, *each.sources))
        return frozenset([*literals, *itertools.chain(*self.orders), *derived])

    def sources_of(self, names: Sequence[str]) -> set[str]:
        """These columns, and all that they follow from."""
        wanted = set(names)
        for each in reversed(self.derived):
            if each.column.name in wanted:
                wanted |= set(each.sources)
        return wanted

    def derive(self, rows: Mapping[str, Numbers]) -> dict[str, Numbers]:
        """The rows with every column that follows from others as it follows; those whose sources are not there stay away."""
        made = dict(rows)
        for each in self.derived:
            if set(each.sources) <= set(made):
                made[each.column.name] = each.of(made)
        return made

    def hold(self, rows: Mapping[str, Numbers]) -> Mask:
        """Which rows keep to all constraints, but for unique values, which one row says nothing about."""
        count = len(next(iter(rows.values())))
        kept = np.ones(count, dtype=np.bool_)
        for _, broken in self.broken(rows):
            kept &= ~broken
        return kept

    def broken(self, rows: Mapping[str, Numbers]) -> Iterator[tuple[set[str], Mask]]:
        """For each constraint the columns that it is about, with those that these follow from, and which rows break it."""
        for literals in self.never:
            names = self.sources_of([literal.column for literal in literals])
            yield names, np.logical_and.reduce([literal.of(rows[literal.column]) for literal in literals])
        for ordered in self.orders:
            for one, two in itertools.combinations(ordered, 2):
                yield self.sources_of([one, two]), rows[one] > rows[two]  # a comparison with NaN is false
        made = self.derive(rows)
        for each in self.derived:
            found, wanted = rows[each.column.name], made[each.column.name]
            is_same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
            yield self.sources_of([each.column.name]), ~(each.in_range(wanted) & is_same)
