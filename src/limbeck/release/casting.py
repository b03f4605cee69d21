"""Columns of a synthetic table in the type that a frame wants: words to truth values, dates to time stamps, numbers to decimals.

The schema says what a value is, the type only how it is stored. Where a type cannot hold what the schema allows (300 in 8 bits),
the column keeps the schema's own type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from limbeck.privacy.dates import DATE
from limbeck.privacy.schema import Column
from limbeck.privacy.words import truth_words

FAILURES = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def words_of(column: Column | None, classes: Sequence[str]) -> tuple[str, ...]:
    """The words that may stand in a column, or in the label (then `column` is None); none for numbers and dates."""
    return tuple(classes) if column is None else column.categories


def cast(array: Any, target: Any, column: Column | None, words: Sequence[str]) -> Any:
    """The array as `target`, an Arrow type; unchanged where that is not possible."""
    if pa.types.is_dictionary(target):
        return _dictionary(array, target, column, words)
    try:
        if array.type == target or pa.types.is_null(target):
            return array
        if is_text(target):
            return texts(array, column).cast(target)
        if pa.types.is_boolean(target):
            return _truths(array, words)
        if pa.types.is_timestamp(target) and target.tz is not None and column is not None and column.kind == DATE:
            days = array.cast(pa.timestamp(target.unit))
            return pc.assume_timezone(days, target.tz, ambiguous="earliest", nonexistent="latest")
        if pa.types.is_floating(array.type) and not pa.types.is_floating(target):
            array = pc.round(array, target.scale if pa.types.is_decimal(target) else 0)
        if pa.types.is_integer(array.type) and pa.types.is_decimal(
            target
        ):  # Arrow wants room for every whole number first
            array = array.cast(pa.decimal128(38, target.scale))
        # A time stamp loses its time of day where only the date is wanted; nothing else may lose anything.
        return array.cast(target, safe=not pa.types.is_date(target))
    except FAILURES:
        return array


def is_text(kind: Any) -> bool:
    return any(getattr(pa.types, each)(kind) for each in ("is_string", "is_large_string", "is_string_view"))


def texts(array: Any, column: Column | None) -> Any:
    """Values as they would stand in a CSV file: numbers with their digits, ISO dates and time stamps."""
    if is_text(array.type):
        return array
    digits = None if column is None else column.digits
    cells = array.to_pylist()
    if digits is not None:
        return pa.array([None if cell is None else f"{cell:.{digits}f}" for cell in cells], type=pa.string())
    found = [None if cell is None else cell.isoformat() if hasattr(cell, "isoformat") else str(cell) for cell in cells]
    return pa.array(found, type=pa.string())


def _truths(array: Any, words: Sequence[str]) -> Any:
    if not is_text(array.type):
        return pc.not_equal(pc.round(array), 0)
    no, yes = truth_words(words)
    if no is None or len(words) != 2:
        return array
    return pc.equal(array, pa.scalar(yes, array.type))


def _dictionary(array: Any, target: Any, column: Column | None, words: Sequence[str]) -> Any:
    """Of the declared words. Numbers and dates have none: their dictionary would list what occurs, so they are plain."""
    if not words:
        return cast(array, target.value_type, column, words)
    listed = pa.array(words, type=array.type)
    places = pc.index_in(array, value_set=listed)
    values = cast(listed, target.value_type, column, words)
    try:
        return pa.DictionaryArray.from_arrays(places.cast(target.index_type), values, ordered=target.ordered)
    except FAILURES:  # more words than the index can count
        return pa.DictionaryArray.from_arrays(places, values, ordered=target.ordered)
