"""A look at one column of a private table, for its owner: numbers, dates or categories, or why it is left out."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from limbeck.data import table
from limbeck.data.records import Array
from limbeck.data.rounding import round_range, round_years
from limbeck.data.survey_units import looks_like_persons
from limbeck.data.units import MISSING
from limbeck.errors import BadInput
from limbeck.privacy.currency import FORMATS, POINT, amount, looks_like_money, unit_of
from limbeck.privacy.dates import DATE, DAY, DAY_FIRST, ORDERS, TIME, is_written, iso_text, moment
from limbeck.privacy.schema import Column

MOST_CATEGORIES = 100
# Texts that repeat are categories up to here. A column takes one number for each.
MOST_KEPT, LEAST_EACH = 1000, 4
LONGEST_CATEGORY = 1000
MANY_WORDS = 5
MOST_UNITS = 5  # currencies that are named
# Fewer rows say nothing about whether a value is that of one record alone.
FEW_ROWS = 20
# So many rows are numbered 0, 1, 2 ... by nothing but a counter.
COUNTED_ROWS = 200
# Whole numbers up to here are whole numbers as floats too.
MOST_WHOLE = float(1 << 53)
MOST_DIGITS = 6
# One value that more than this share of the records have stands out of a column with so many values over such a range.
LARGE_SHARE, MANY_VALUES, WIDE = 0.2, 20, 100
YES_OR_NO = ({"true", "false"}, {"yes", "no"}, {"y", "n"}, {"t", "f"}, {"1", "0"})
# Digits that are a name and no number: 01069 is not less than 90210. By their form, or by what the column is called.
_LEADING_ZERO = re.compile(r"0\d+", re.ASCII)
_CODE = re.compile(
    r"zip|post_?(?:al|code|leitzahl)|(?:^|[^a-z])(?:plz|cap|fips|iban|bic|icd|naics|ean|isbn|phone|tel|fax)(?:$|[^a-z])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Finding:
    """A column, and what its owner should know about it; or no column, and why."""

    column: Column | None
    says: str = ""


def look(name: str, cells: Sequence[str]) -> Finding:
    """What a column seems to be, by all of its cells."""
    counts = Counter(cells)
    texts = {cell: count for cell, count in counts.items() if cell.strip()}
    values = {cell: count for cell, count in texts.items() if cell.strip().lower() not in MISSING}
    if not values:
        return Finding(None, "has no value")
    missing = sum(values.values()) < len(cells)
    is_code = _is_code(name, values)
    if len(values) > 1 and not is_code and {value.strip() for value in values} != {"0", "1"}:
        for kind, reader in READERS:
            try:
                numbers = np.array([reader(cell) for cell in values])
            except (ValueError, OverflowError):
                continue
            each = np.fromiter(values.values(), dtype=np.int64)
            return _numeric(name, numbers, each, kind, missing)
        if all(is_written(cell) for cell in values):
            found = _written_dates(name, values, missing)
            if found is not None:
                return found
        for form in FORMATS if any(looks_like_money(cell) for cell in values) else ():
            try:
                numbers = np.array([amount(cell, form) for cell in values])
            except ValueError:
                continue
            found = _money(name, numbers, np.fromiter(values.values(), dtype=np.int64), form, missing)
            return _told_apart(found, values)
    found = _categorical(name, values if is_code else texts, missing if is_code else sum(texts.values()) < len(cells))
    return _as_code(found) if is_code else found


READERS: tuple[tuple[str, Callable[[str], float]], ...] = (("", table.number), (TIME, lambda cell: moment(cell, TIME)))


def _is_code(name: str, values: Iterable[str]) -> bool:
    """Whether digits stand for something that cannot be added or compared: zip codes, numbers of accounts and the like."""
    texts = [value.strip() for value in values]
    if not all(text.isdecimal() and text.isascii() for text in texts):
        return False
    return any(_LEADING_ZERO.fullmatch(text) for text in texts) or _CODE.search(name) is not None


def _as_code(found: Finding) -> Finding:
    if found.column is None:
        return Finding(None, f"{found.says}; its digits are a code, such as a zip code, and no number")
    return Finding(found.column, f"Its digits are read as a code, not as a number. {found.says}".strip())


def _told_apart(found: Finding, values: Iterable[str]) -> Finding:
    """Numbers alone are kept of an amount, so one in dollars and one in euros would be the same."""
    units = sorted({unit for value in values if (unit := unit_of(value))})
    if found.column is None or len(units) < 2:
        return found
    named = ", ".join(units[:MOST_UNITS]) + (", ..." if len(units) > MOST_UNITS else "")
    return Finding(
        found.column,
        f"Amounts are in several currencies ({named}), which are not told apart: convert them first. {found.says}",
    )


def _written_dates(name: str, values: dict[str, int], missing: bool) -> Finding | None:
    """Dates with the year last; None if neither order fits all. Where both do, the day is taken to come first."""
    fitting = {}
    for order in ORDERS:
        try:
            fitting[order] = np.array([moment(cell, TIME, order) for cell in values])
        except (ValueError, OverflowError):
            continue
    if not fitting:
        return None
    order = next(iter(fitting))
    found = _numeric(name, fitting[order], np.fromiter(values.values(), dtype=np.int64), TIME, missing)
    if found.column is None:
        return found
    says = f"Dates such as {'31.01.1990' if order == DAY_FIRST else '01/31/1990'} are read."
    if len(fitting) > 1:
        says += " Every one could also have its month first: is the format right?"
    return Finding(dataclasses.replace(found.column, format=order), f"{says} {found.says}".strip())


def _money(name: str, numbers: Array, each: Array, form: str, missing: bool) -> Finding:
    found = _numeric(name, numbers, each, "", missing)
    if found.column is None:
        return found
    says = f"Amounts such as {'$1,200.50' if form == POINT else '1.200,50 EUR'} are read as numbers. {found.says}"
    return Finding(dataclasses.replace(found.column, format=form), says.strip())


def _numeric(name: str, numbers: Array, each: Array, kind: str, missing: bool) -> Finding:
    is_finite = np.isfinite(numbers)
    missing = missing or bool(np.isnan(numbers).any())
    numbers, each = numbers[is_finite], each[is_finite]
    if not numbers.size:
        return Finding(None, "has no finite number")
    if kind and not (numbers % DAY).any():
        kind, numbers = DATE, numbers / DAY
    if kind:
        low, high = round_years(numbers, kind)
        column = Column(name=name, kind=kind, low=iso_text(low, kind), high=iso_text(high, kind), missing=missing)
    else:
        low, high = round_range(numbers)
        whole = bool((numbers == np.rint(numbers)).all()) and max(-low, high) <= MOST_WHOLE
        if whole and _is_identifier(name, numbers, each):
            return Finding(None, "has another number in every record, so it looks like an identifier")
        digits = None if whole else _digits(numbers)
        column = Column(name=name, low=low, high=high, integer=whole, digits=digits, missing=missing)
    return _with_special(column, numbers, each)


def _is_identifier(name: str, numbers: Array, each: Array) -> bool:
    if each.sum() < FEW_ROWS or each.max() > 1 or len(np.unique(numbers)) < len(numbers):
        return False
    is_count = numbers.min() in (0, 1) and numbers.max() - numbers.min() == len(numbers) - 1 >= COUNTED_ROWS - 1
    return bool(is_count) or looks_like_persons(name)


def _digits(numbers: Array) -> int | None:
    """The digits after the point that all numbers have at most; None if these are many."""
    if np.abs(numbers).max() > MOST_WHOLE / 10**MOST_DIGITS:
        return None
    for digits in range(1, MOST_DIGITS + 1):
        if (np.abs(np.round(numbers, digits) - numbers) <= 1e-12 * np.maximum(1, np.abs(numbers))).all():
            return digits
    return None


def _with_special(column: Column, numbers: Array, each: Array) -> Finding:
    """With the value that many records have, where a column of many values has one."""
    values, places = np.unique(numbers, return_inverse=True)
    counts = np.bincount(places.ravel(), weights=each)
    top = int(counts.argmax())
    low, high = column.range
    is_wide = len(values) >= MANY_VALUES and (not column.whole or high - low > WIDE)
    if not is_wide or counts[top] <= LARGE_SHARE * counts.sum():
        return Finding(column)
    point = float(values[top] if column.digits is None else round(values[top], column.digits))
    value = iso_text(point, column.kind) if column.kind else point
    try:
        found = Column(
            name=column.name, low=column.low, high=column.high, integer=column.integer, digits=column.digits,
            kind=column.kind, missing=column.missing, special=(value,),
        )  # fmt: skip
    except BadInput:  # beside very large numbers
        return Finding(column)
    return Finding(found, "More than a fifth of the records have one and the same value, which is listed as special.")


def _categorical(name: str, texts: dict[str, int], missing: bool) -> Finding:
    found, rows = len(texts), sum(texts.values())
    if any(len(text) > LONGEST_CATEGORY for text in texts):
        return Finding(None, f"has texts of more than {LONGEST_CATEGORY} letters, so it looks like free text")
    words = sum(len(text.split()) for text in texts) / found
    if found == rows >= FEW_ROWS or (words >= MANY_WORDS and rows >= FEW_ROWS and 2 * found > rows):
        what = "free text" if words >= 2 else "an identifier"
        return Finding(None, f"has another text in almost every record, so it looks like {what}")
    if found > MOST_KEPT or (found > MOST_CATEGORIES and rows < LEAST_EACH * found):
        return Finding(None, f"has {found} different texts, so it looks like an identifier or free text")
    column = Column(name=name, categories=tuple(sorted(texts)), missing=missing)
    if found == 1:
        return Finding(column, "Only one value occurs. List all that are possible, or take the column out.")
    if found > MOST_CATEGORIES:
        return Finding(
            column, f"So many categories ({found}) take as many numbers. Join rare ones first, where that will do."
        )
    if {text.lower() for text in texts} in YES_OR_NO:
        return Finding(column, "It says yes or no.")
    return Finding(column)
