"""What is asked of rows that are drawn: conditions such as "age>60", all of which a row keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck.errors import BadInput
from limbeck.methods.mosaic.axes import asked_columns, columns_of
from limbeck.methods.mosaic.keeping import hold
from limbeck.methods.mosaic.limits import Limit
from limbeck.privacy.condition import Condition, listed, read_condition
from limbeck.privacy.schema import Column, Schema
from limbeck.release.formats import decoded_columns


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """All that is asked of a row together: of its columns, and which classes it may have, (classes,)."""

    schema: Schema
    columns: tuple[Condition, ...] = ()
    labels: tuple[Condition, ...] = ()
    label: int | None = None  # a class by its index, beside what is asked of the label's column

    def __bool__(self) -> bool:
        return bool(self.columns or self.labels or self.schema.rules.names)

    @property
    def text(self) -> str:
        """Everything, in words for a message."""
        named = [] if self.label is None else [f"class {self.schema.classes[self.label]}"]
        declared = ["the constraints of the schema"] if self.schema.rules.names else []
        return " and ".join([*(f"'{each.text}'" for each in (*self.columns, *self.labels)), *named, *declared])

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
        places = {column.name: place for place, column in enumerate(asked_columns(self.schema))}
        found: dict[int, Limit] = {}
        for condition in self.columns:
            # A column that follows from others has no place in a model: rows are checked for what is asked of it.
            if condition.column.name in places:
                place = places[condition.column.name]
                found[place] = found.get(place, Limit()).together(_limit(condition))
        return found

    def hold(self, x: NDArray[np.float32], y: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows keep to all of it when they are decoded, as a Parquet file shows them."""
        kept: NDArray[np.bool_] = self.classes()[y] & hold(x, y, self.schema)
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
    for condition in found:
        if condition.column in schema.rules.unique:
            raise BadInput(
                f"'{condition.column.name}' is unique: its values are made up and say nothing, so '{condition.text:.80}' "
                "cannot be asked."
            )
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
        raise BadInput(f"The release has no class '{label}'; its classes are: {listed(schema.classes)}.")
    return schema.classes.index(label)


def _limit(condition: Condition) -> Limit:
    """The same for whoever draws. Of a column with decimals < is taken as <=, so rows are still to be checked."""
    if condition.number is None:
        return Limit(values=condition.operator == "!=", gaps=condition.operator == "=")
    whole = condition.column.integer or not condition.column.numeric
    if condition.operator == "!=":
        return Limit(without=frozenset([condition.number]), gaps=False)
    low = high = condition.number
    if condition.operator in ("<", "<="):
        low, high = -math.inf, math.ceil(high) - 1 if whole and condition.operator == "<" else high
    elif condition.operator in (">", ">="):
        low, high = math.floor(low) + 1 if whole and condition.operator == ">" else low, math.inf
    return Limit(low=low, high=high, gaps=False)


def _read(text: str, schema: Schema) -> Condition:
    columns = {column.name: column for column in columns_of(schema)}
    if schema.has_label:
        columns[schema.label] = Column(name=schema.label, categories=schema.classes)
    return read_condition(text, columns)
