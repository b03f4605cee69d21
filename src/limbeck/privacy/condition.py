"""A condition on one column of a row, such as "age>60": the column, an operator and a value.

A row that has no value in a column keeps to no comparison with a value, as in SQL; "age = missing" asks for such rows. Texts may
stand in quotes; a category that is called missing has to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from limbeck.errors import BadInput
from limbeck.privacy.column import Column
from limbeck.privacy.dates import DATE, iso_text, moment

OPERATORS = ("<=", ">=", "!=", "==", "=", "<", ">")
EQUALITY = ("=", "!=")
GAP = "missing"
MOST_NAMES = 20  # that a message lists


@dataclass(frozen=True, kw_only=True)
class Condition:
    """text: as it was written. number: the value; of a list its place. None: a gap."""

    text: str
    column: Column
    operator: str
    number: float | None

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """For decoded values of the column, None for a gap."""
        is_gap = np.zeros(len(values), dtype=np.bool_)
        if values.dtype == object:
            is_gap[:] = [value is None for value in values]
        if self.number is None:
            return is_gap if self.operator == "=" else ~is_gap
        found: NDArray[np.bool_] = self.hold_for(_numbers(self.column, values, is_gap)) & ~is_gap
        return found

    def keeps(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """For values as numbers, NaN for a gap."""
        is_gap: NDArray[np.bool_] = np.isnan(numbers)
        if self.number is None:
            return is_gap if self.operator == "=" else ~is_gap
        found: NDArray[np.bool_] = self.hold_for(numbers) & ~is_gap
        return found

    def hold_for(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """For values as numbers: days and seconds of dates and time stamps, places in a list."""
        assert self.number is not None
        found: NDArray[np.bool_] = _COMPARE[self.operator](numbers, self.number)
        return found


def _numbers(column: Column, values: NDArray[Any], is_gap: NDArray[np.bool_]) -> NDArray[np.float64]:
    if not column.numeric:
        place_of = {category: place for place, category in enumerate(column.categories)}
        return np.array([place_of.get(value, -1) for value in values], dtype=np.float64)
    if not column.kind:
        return np.where(is_gap, np.nan, values).astype(np.float64)
    unit = "datetime64[D]" if column.kind == DATE else "datetime64[s]"
    moments = np.array([None if gap else value for value, gap in zip(values, is_gap, strict=True)], dtype=unit)
    return np.where(is_gap, np.nan, moments.astype(np.int64).astype(np.float64))


_COMPARE = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def read_condition(text: str, columns: Mapping[str, Column]) -> Condition:
    """A text such as "age>60" for columns by name; what cannot be meant is refused in a sentence."""
    # Names may hold operators: the longest one that fits is meant. White space around them may be left out, unless another
    # column has that very name.
    for name in sorted(columns, key=lambda name: (len(name.strip()), name == name.strip()), reverse=True):
        rest = text.strip()[len(name.strip()) :].lstrip()
        operator = next((sign for sign in OPERATORS if rest.startswith(sign)), None)
        if text.strip().startswith(name.strip()) and operator is not None:
            value = rest[len(operator) :].strip()
            return _condition(text.strip(), columns[name], operator.replace("==", "="), value)
    _refuse(text, columns)


def _refuse(text: str, columns: Mapping[str, Column]) -> NoReturn:
    name = re.split(r"[<>=!]", text, maxsplit=1)[0].strip()
    if not name or name in columns or name == text.strip():
        raise BadInput(
            f"A condition is COLUMN OPERATOR VALUE with one of = != < <= > >=, such as \"age>60\"; got '{text:.80}'."
        )
    raise BadInput(f"There is no column '{name:.40}'. The columns are: {listed(tuple(columns))}.")


def _condition(text: str, column: Column, operator: str, value: str) -> Condition:
    quoted = re.fullmatch(r"\"(.*)\"|'(.*)'", value, re.DOTALL)
    if value == GAP and column.missing:
        if operator not in EQUALITY:
            raise BadInput(f"'{text}' compares with a value that is missing; ask for {column.name} = or != {GAP}.")
        return Condition(text=text, column=column, operator=operator, number=None)
    value = value if quoted is None else quoted[1] if quoted[1] is not None else quoted[2]
    if column.numeric:
        found = Condition(text=text, column=column, operator=operator, number=_number(text, column, value))
        _require_possible(found)
        return found
    if not column.ordinal and operator not in EQUALITY:
        raise BadInput(f"The values of '{column.name}' have no order, so '{text:.80}' says nothing; ask with = or !=.")
    if value not in column.categories:
        other = f", or {GAP}" if column.missing else ""
        raise BadInput(f"'{column.name}' is never '{value:.40}'. Its values are: {listed(column.categories)}{other}.")
    return Condition(text=text, column=column, operator=operator, number=float(column.categories.index(value)))


def _number(text: str, column: Column, value: str) -> float:
    try:
        number = moment(value, column.kind) if column.kind else float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        hint = (
            "" if column.missing or value != GAP else f" The schema does not say that '{column.name}' may be missing."
        )
        kind = f"of the kind {column.kind}, such as {shown_range(column)[0]}," if column.kind else "a number,"
        raise BadInput(f"'{column.name}' is {kind} and in '{text:.80}' it is compared with '{value:.40}'.{hint}")
    return number


def _require_possible(condition: Condition) -> None:
    """A number outside of the public range leaves nothing; that is said without drawing."""
    column = condition.column
    low, high = column.range
    if not condition.hold_for(np.array([low, high, np.clip(condition.number or 0.0, low, high)])).any():
        first, last = shown_range(column)
        raise BadInput(
            f"By the schema '{column.name}' lies in {first} ... {last}, so no row keeps to '{condition.text:.80}'."
        )


def shown_range(column: Column) -> tuple[str, str]:
    low, high = column.range
    if column.kind:
        return iso_text(low, column.kind), iso_text(high, column.kind)
    return f"{low:g}", f"{high:g}"


def listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
