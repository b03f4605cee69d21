"""A row that keeps to all constraints, found by trying: where there is none, constraints contradict each other.

Values are tried at the edges of what conditions say, and there a condition holds or does not hold for all that lies between.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from limbeck.errors import BadInput
from limbeck.privacy.column import Column
from limbeck.privacy.rules import Rules
from limbeck.privacy.schema import Schema

MOST_TRIED = 4_000  # partial rows
MOST_VALUES = 40  # of a column

Row = dict[str, float]


def witness(schema: Schema, label: int | None = None) -> Row:
    """By name of the column, and of the label, a number each, NaN for a gap. Refuses constraints that no row is found for.

    label: the place of its class, where that is given
    """
    columns = {column.name: column for column in schema.columns}
    if schema.has_label:
        columns[schema.label] = Column(name=schema.label, categories=schema.classes)
    rules = schema.rules
    free = [name for name in columns if name not in rules.not_asked]
    values = {name: _values(columns[name], _edges(name, rules, columns)) for name in free}
    if label is not None:
        values[schema.label] = [float(label)]
    # What no constraint is about may have any value.
    row = {name: values[name][0] for name in free if name not in rules.names}
    try:
        found = next(_rows(row, [name for name in free if name in rules.names], values, rules, itertools.count()), None)
    except RecursionError:  # constraints about a thousand columns
        found = None
    if found is None:
        raise BadInput(
            f"No row was found that keeps to all constraints of '{schema.name}'; they contradict each other, or leave hardly "
            "anything. Take one of them out."
        )
    for column in rules.unique:
        found[column.name] = 0.0 if not column.numeric else column.grid[1] / column.grid[0]  # type: ignore[index]
    return found


def _rows(
    row: Row, left: Sequence[str], values: Mapping[str, list[float]], rules: Rules, tried: Iterator[int]
) -> Iterator[Row]:
    if next(tried) > MOST_TRIED:
        return
    made = {name: float(found[0]) for name, found in rules.derive({k: np.array([v]) for k, v in row.items()}).items()}
    if not _may_hold(made, rules):
        return
    if not left:
        yield made
        return
    for value in values[left[0]]:
        yield from _rows({**row, left[0]: value}, left[1:], values, rules, tried)


def _may_hold(row: Row, rules: Rules) -> bool:
    """Whether nothing is violated by what is known of the row so far."""
    known = set(row)
    part = Rules(
        never=tuple(each for each in rules.never if {literal.column for literal in each} <= known),
        orders=tuple(names for each in rules.orders if len(names := tuple(n for n in each if n in known)) > 1),
        derived=tuple(each for each in rules.derived if {each.column.name, *each.sources} <= known),
    )
    return not row or bool(part.hold({name: np.array([value]) for name, value in row.items()})[0])


def _edges(name: str, rules: Rules, columns: Mapping[str, Column]) -> list[float]:
    """Numbers that decide something about a column: in conditions on it, on those it is ordered with, on sums that it is in."""
    linked = {name, *(other for names in rules.orders if name in names for other in names)}
    for each in reversed(rules.derived):
        if linked & set(each.sources):
            linked.add(each.column.name)
    literals = [literal.condition for each in rules.never for literal in each if literal.column in linked]
    numbers = [condition.number for condition in literals if condition.number is not None]
    ends = [end for other in linked if columns[other].numeric for end in columns[other].range]
    return [*numbers, *ends]


def _values(column: Column, edges: Sequence[float]) -> list[float]:
    """Values to try, the likeliest to pass first."""
    if not column.numeric:
        places = [float(place) for place in range(len(column.categories))]
        named = [place for place in places if place in edges]
        found = [*[place for place in places if place not in edges][:2], *named]
    else:
        low, high = column.range
        step = 1 / column.grid[0] if column.grid is not None else (high - low) * 1e-4
        near = {low, high, (low + high) / 2, *(edge + side for edge in edges for side in (-step, 0.0, step))}
        found = sorted({_on_grid(column, value) for value in near if low <= value <= high}, key=lambda v: abs(v - low))
    return [*found[:MOST_VALUES], *([math.nan] if column.missing else [])]


def _on_grid(column: Column, value: float) -> float:
    if column.grid is None:
        return value
    scale, first, last = column.grid
    return min(max(round(value * scale), first), last) / scale
