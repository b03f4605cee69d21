"""Checks of single entries of a schema: their kind and their bounds, with a sentence that names the entry."""

from __future__ import annotations

import datetime
from typing import Any

from limbeck.errors import BadInput

# Beyond these, arithmetic on public numbers is no longer exact or overflows, and a limit taken from them would not hold.
MOST_RECORDS = MOST_NUMBERS = 1 << 53
MOST_VALUE, LEAST_RANGE = 1e30, 1e-30


def is_whole(value: object) -> bool:
    """An integer; neither True nor 2.0, nor a NaN that passes every comparison."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_range(low: object, high: object) -> bool:
    """Two numbers low < high that can be computed with."""
    if any(isinstance(end, bool) or not isinstance(end, (int, float)) for end in (low, high)):
        return False
    assert isinstance(low, (int, float)) and isinstance(high, (int, float))
    return -MOST_VALUE <= low < high <= MOST_VALUE and high - low >= LEAST_RANGE


def is_texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)


def shown(value: object) -> str:
    """A public value in an error, short; a number of thousands of digits cannot even be written out."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of too many digits"
    return text if len(text) <= 60 else text[:57] + "..."


def require(entry: str, value: object, right: bool, form: str) -> None:
    if not right:
        raise BadInput(f"{entry} must be {form}, got {shown(value)}.")


def plainly(value: object) -> str:
    """
    >>> plainly(("no", "yes")), plainly(300)
    ('no, yes', '300')
    """
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def plain_value(value: Any) -> Any:
    """Lists as tuples; dates that TOML knows by themselves as their ISO texts."""
    if isinstance(value, list):
        return tuple(entry if isinstance(entry, list) else plain_value(entry) for entry in value)
    return value.isoformat() if isinstance(value, datetime.date) else value


def whole_number(value: Any) -> Any:
    """6e4 as the whole number that it is. What is no whole number stays, and is refused by name."""
    if isinstance(value, list | tuple):
        return tuple(whole_number(entry) for entry in value)
    return int(value) if isinstance(value, float) and value.is_integer() and value <= MOST_RECORDS else value
