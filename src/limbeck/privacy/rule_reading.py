"""From declared constraints to rules: what cannot be meant is refused in a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from limbeck.errors import BadInput
from limbeck.privacy.column import Column
from limbeck.privacy.condition import listed, read_condition
from limbeck.privacy.constraint import MOST_CONSTRAINTS, Constraint
from limbeck.privacy.entries import shown
from limbeck.privacy.rules import Derived, Literal, Rules


def rules_of(constraints: Sequence[Constraint], columns: Mapping[str, Column], label: Column | None) -> Rules:
    """The constraints for these columns; what cannot be meant is refused in a sentence.

    label: its classes as a column. It may stand in conditions, and nowhere else.
    """
    if len(constraints) > MOST_CONSTRAINTS:
        raise BadInput(f"A schema has at most {MOST_CONSTRAINTS} constraints, got {len(constraints)}.")
    named = dict(columns) | ({} if label is None else {label.name: label})
    never: list[tuple[Literal, ...]] = []
    for each in constraints:
        _require_columns(each, columns)
        if each.form in ("if", "never"):
            never += _conflicts(each, named)
        elif each.form == "order":
            _require_order(each, [columns[name] for name in each.columns])
    derived = _in_order([_derived(each, columns) for each in constraints if each.form in ("sum", "same")])
    unique = [_unique(each, columns) for each in constraints if each.form == "unique"]
    rules = Rules(
        tuple(never), tuple(each.columns for each in constraints if each.form == "order"), derived, tuple(unique)
    )
    _require_free(rules, columns)
    return rules


def _require_columns(constraint: Constraint, columns: Mapping[str, Column]) -> None:
    for name in constraint.columns:
        if name not in columns:
            raise BadInput(
                f"The constraint {constraint.text} names {shown(name)}, which is no column. The columns are: "
                f"{listed(tuple(columns))}."
            )


def _conflicts(constraint: Constraint, named: Mapping[str, Column]) -> list[tuple[Literal, ...]]:
    """What may not hold together."""
    parts = [[read_condition(part, named) for part in _split(text)] for text in constraint.conditions]
    given = tuple(Literal(condition, True) for condition in parts[0])
    if constraint.form == "never":
        return [given]
    return [(*given, Literal(condition, False)) for condition in parts[1]]


def _split(text: str) -> list[str]:
    """At every & that stands in no quotes.

    >>> _split("age < 16 & name = 'A & B'")
    ['age < 16 ', " name = 'A & B'"]
    """
    return re.findall(r"(?:[^&'\"]|'[^']*'|\"[^\"]*\"|['\"])+", text) or [text]


def _require_order(constraint: Constraint, columns: Sequence[Column]) -> None:
    if not all(column.numeric for column in columns) or len({column.kind for column in columns}) > 1:
        raise BadInput(f"The constraint {constraint.text} needs columns that are all numbers, all dates or all times.")


def _derived(constraint: Constraint, columns: Mapping[str, Column]) -> Derived:
    *sources, column = (columns[name] for name in constraint.columns)
    gaps = [each.name for each in sources if each.missing]
    if gaps and not column.missing:
        raise BadInput(
            f"By the constraint {constraint.text}, '{column.name}' has no value where '{gaps[0]}' has none; write missing = true "
            f"in '{column.name}'."
        )
    names = tuple(each.name for each in sources)
    if constraint.form == "same":
        return Derived(column, names, _table(constraint, sources[0], column))
    plain = [each for each in (*sources, column) if not each.numeric or each.kind]
    if plain:
        raise BadInput(f"The constraint {constraint.text} adds up numbers, and '{plain[0].name}' holds none.")
    scale = None if column.grid is None else column.grid[0]
    finer = [each.name for each in sources if scale is not None and (each.grid is None or each.grid[0] > scale)]
    if finer:
        raise BadInput(
            f"By the constraint {constraint.text}, '{column.name}' has no more digits than its schema says, but '{finer[0]}' "
            "has; give both the same digits."
        )
    return Derived(column, names)


def _table(constraint: Constraint, source: Column, column: Column) -> tuple[float, ...]:
    by = dict(constraint.by)
    if source.numeric or set(by) != set(source.categories):
        raise BadInput(
            f"The constraint {constraint.text} needs a first column with categories, and by has to name each of them once."
        )
    return tuple(_place(constraint, column, by[category]) for category in source.categories)


def _place(constraint: Constraint, column: Column, value: str | float) -> float:
    text = value if isinstance(value, str) else repr(value)
    if not column.numeric:
        if text not in column.categories:
            raise BadInput(f"The constraint {constraint.text} says {shown(value)}, which '{column.name}' never is.")
        return float(column.categories.index(text))
    number = read_condition(f"{column.name} = {text}", {column.name: column}).number
    assert number is not None
    if column.grid is not None and number * column.grid[0] != round(number * column.grid[0]):
        raise BadInput(f"The constraint {constraint.text} says {shown(value)}, which '{column.name}' never is.")
    return number


def _unique(constraint: Constraint, columns: Mapping[str, Column]) -> Column:
    column = columns[constraint.columns[0]]
    if column.missing or (column.numeric and column.grid is None):
        raise BadInput(
            f"The constraint {constraint.text} needs a column of whole numbers, digits, dates or categories that is never "
            "missing."
        )
    return column


def _in_order(derived: Sequence[Derived]) -> tuple[Derived, ...]:
    names = [each.column.name for each in derived]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"Two constraints say what '{twice}' is; leave one of them out.")
    left, done = list(derived), []
    while left:
        open_names = {each.column.name for each in left}
        ready = [each for each in left if not set(each.sources) & open_names]
        if not ready:
            raise BadInput(f"Constraints say what '{left[0].column.name}' is by way of itself; leave one of them out.")
        done += ready
        left = [each for each in left if each not in ready]
    return tuple(done)


def _require_free(rules: Rules, columns: Mapping[str, Column]) -> None:
    unique = [column.name for column in rules.unique]
    taken = next((name for name in unique if name in rules.names or unique.count(name) > 1), None)
    if taken is not None:
        raise BadInput(f"'{taken}' is unique, so no other constraint may be about it.")
    if columns and rules.not_asked >= set(columns):
        raise BadInput("Constraints leave no column that is not unique and follows from no other.")
