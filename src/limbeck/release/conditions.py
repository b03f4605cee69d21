"""What is asked of rows that are drawn, such as "age>60": one column, an operator and a value.

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
from limbeck.methods.mosaic.axes import columns_of
from limbeck.methods.mosaic.limits import Limit
from limbeck.privacy.dates import DATE, iso_text, moment
from limbeck.privacy.schema import Column, Schema
from limbeck.release.formats import decoded_columns

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

    def limit(self) -> Limit:
        """The same for whoever draws. Of a column with decimals < is taken as <=, so rows are still to be checked."""
        if self.number is None:
            return Limit(values=self.operator == "!=", gaps=self.operator == "=")
        whole = self.column.integer or not self.column.numeric
        if self.operator == "!=":
            return Limit(without=frozenset([self.number]), gaps=False)
        low = high = self.number
        if self.operator in ("<", "<="):
            low, high = -math.inf, math.ceil(high) - 1 if whole and self.operator == "<" else high
        elif self.operator in (">", ">="):
            low, high = math.floor(low) + 1 if whole and self.operator == ">" else low, math.inf
        return Limit(low=low, high=high, gaps=False)

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """For decoded values of the column, None for a gap."""
        is_gap = np.zeros(len(values), dtype=np.bool_)
        if values.dtype == object:
            is_gap[:] = [value is None for value in values]
        if self.number is None:
            return is_gap if self.operator == "=" else ~is_gap
        found: NDArray[np.bool_] = self.hold_for(_numbers(self.column, values, is_gap)) & ~is_gap
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


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """All that is asked of a row together: of its columns, and which classes it may have, (classes,)."""

    schema: Schema
    columns: tuple[Condition, ...] = ()
    labels: tuple[Condition, ...] = ()
    label: int | None = None  # a class by its index, beside what is asked of the label's column

    def __bool__(self) -> bool:
        return bool(self.columns or self.labels)

    @property
    def text(self) -> str:
        """Everything, in words for a message."""
        named = [] if self.label is None else [f"class {self.schema.classes[self.label]}"]
        return " and ".join([*(f"'{each.text}'" for each in (*self.columns, *self.labels)), *named])

    def classes(self) -> NDArray[np.bool_]:
        """Which of them may come."""
        names = np.array(self.schema.classes, dtype=object)
        may = np.ones(len(names), dtype=bool)
        for condition in self.labels:
            may &= condition.holds(names)
        if self.label is not None:
            may &= np.arange(len(names)) == self.label
        return may

    def limits(self) -> dict[int, Limit]:
        """By the place of the column."""
        places = {column.name: place for place, column in enumerate(columns_of(self.schema))}
        found: dict[int, Limit] = {}
        for condition in self.columns:
            place = places[condition.column.name]
            found[place] = found.get(place, Limit()).together(condition.limit())
        return found

    def hold(self, x: NDArray[np.float32], y: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows keep to all of it when they are decoded, as a Parquet file shows them."""
        kept: NDArray[np.bool_] = self.classes()[y]
        if self.columns:
            asked = {condition.column.name for condition in self.columns}
            decoded = decoded_columns(x, self.schema, asked)
            for condition in self.columns:
                kept = kept & condition.holds(decoded[condition.column.name])
        return kept


def read_conditions(where: Sequence[str], schema: Schema, label: str | None = None) -> Conditions:
    """Texts such as "age>60" for the columns of a schema; what cannot be meant is refused in a sentence."""
    if isinstance(where, str) or not all(isinstance(text, str) for text in where):
        raise BadInput(f"where takes a list of conditions, such as ['age>60'], got where={where!r:.60}.")
    if where and schema.is_image:
        raise BadInput(
            f"'{schema.name}' holds images, which have no columns to ask about. Choose a class with --class."
        )
    found = [_read(text, schema) for text in where]
    return Conditions(
        schema=schema,
        columns=tuple(each for each in found if not _is_label(each.column, schema)),
        labels=tuple(each for each in found if _is_label(each.column, schema)),
        label=None if label is None else _class_index(label, schema),
    )


def _is_label(column: Column, schema: Schema) -> bool:
    return schema.has_label and column.name == schema.label


def _class_index(label: str, schema: Schema) -> int:
    if not schema.has_label:
        raise BadInput(f"'{schema.name}' has no label, so there is no class '{label:.40}'. Ask for rows with --where.")
    if label not in schema.classes:
        raise BadInput(f"The release has no class '{label}'; its classes are: {_listed(schema.classes)}.")
    return schema.classes.index(label)


def _read(text: str, schema: Schema) -> Condition:
    columns = {column.name: column for column in columns_of(schema)}
    if schema.has_label:
        columns[schema.label] = Column(name=schema.label, categories=schema.classes)
    # Names may hold operators: the longest one that fits is meant.
    for name in sorted(columns, key=len, reverse=True):
        rest = text.strip()[len(name) :].lstrip()
        operator = next((sign for sign in OPERATORS if rest.startswith(sign)), None)
        if text.strip().startswith(name) and operator is not None:
            value = rest[len(operator) :].strip()
            return _condition(text.strip(), columns[name], operator.replace("==", "="), value)
    _refuse(text, columns)


def _refuse(text: str, columns: Mapping[str, Column]) -> NoReturn:
    name = re.split(r"[<>=!]", text, maxsplit=1)[0].strip()
    if not name or name in columns or name == text.strip():
        raise BadInput(
            f"A condition is COLUMN OPERATOR VALUE with one of = != < <= > >=, such as \"age>60\"; got '{text:.80}'."
        )
    raise BadInput(f"There is no column '{name:.40}'. The columns are: {_listed(tuple(columns))}.")


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
        raise BadInput(f"'{column.name}' is never '{value:.40}'. Its values are: {_listed(column.categories)}{other}.")
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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
