"""One column of a table: what is public about it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any

from limbeck.errors import BadInput
from limbeck.privacy.currency import FORMATS
from limbeck.privacy.dates import DATE, KINDS, ORDERS, TIME, moment
from limbeck.privacy.entries import is_range, is_texts, is_whole, require, shown

MOST_DIGITS = 15
MOST_SPECIAL = 100
# Two special values this share of the range apart stay different numbers in single precision.
LEAST_APART = 1e-7
_EXAMPLES = {DATE: "1990-01-31", TIME: "1990-01-31T23:59:59"}
# Entries that came after the first certificates. One that is absent says nothing.
_LATER = ("missing", "digits", "special", "kind", "format")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: numeric with a public range, or categorical with a public list of values.

    A categorical column is encoded as one number per category, or as one number (its place in the list) when `ordinal`.
    A numeric column that is `integer` is rounded to whole numbers when a synthetic record is decoded, others to so many `digits`
    after the point, where these are given. Its `special` values, such as 0 or -1, are ones that many records have: they come back
    exactly. Of the kinds "date" and "time" it holds dates and time stamps, and `low`, `high` and `special` are ISO texts. Its
    `format` says how texts are read: "currency" for $1,200.50 and "currency-comma" for 1.200,50 EUR; of dates and time stamps
    "day-month-year" for 31.01.1990 and "month-day-year" for 01/31/1990, beside ISO texts.

    In a column that may be `missing`, a cell without a value, or with none that the schema knows, is a value of its own and takes
    one more number; elsewhere it is the low end, or no category.

    >>> Column(name="age", low=0, high=100, integer=True).width
    1
    >>> Column(name="sex", categories=("female", "male")).width
    2
    >>> Column(name="income", low=0, high=1e6, digits=2, special=(0,), missing=True).width
    2
    >>> Column(name="born", kind="date", low="1900-01-01", high="2030-12-31").range
    (-25567.0, 22279.0)
    """

    name: str
    low: float | str | None = None
    high: float | str | None = None
    categories: tuple[str, ...] = ()
    ordinal: bool = False
    integer: bool = False
    missing: bool = False
    digits: int | None = None
    special: tuple[float | str, ...] = ()
    kind: str = ""
    format: str = ""

    def __post_init__(self) -> None:
        require("The name of a column", self.name, isinstance(self.name, str), "a text")
        for entry in ("ordinal", "integer", "missing"):
            value = getattr(self, entry)
            require(f"{entry} of column '{self.name}'", value, isinstance(value, bool), "true or false")
        require(f"categories of column '{self.name}'", self.categories, is_texts(self.categories), "a list of texts")
        if len(set(self.categories)) != len(self.categories):
            raise BadInput(f"Column '{self.name}' lists a category twice; every category must stand once.")
        kinds = " or ".join(f'"{kind}"' for kind in KINDS)
        is_kind = isinstance(self.kind, str) and self.kind in ("", *KINDS)
        require(f"kind of column '{self.name}'", self.kind, is_kind, f"{kinds}, or left out")
        known = ORDERS if self.kind else FORMATS
        formats = " or ".join(f'"{each}"' for each in known)
        is_format = isinstance(self.format, str) and self.format in ("", *known)
        require(f"format of column '{self.name}'", self.format, is_format, f"{formats}, or left out")
        if self.categories:
            self._refuse("has categories, so it takes no", "kind", "digits", "special", "format")
        if self.kind:
            self._refuse(f'is of kind "{self.kind}", so it takes no', "integer", "digits")
        if not self.categories or (self.low, self.high) != (None, None):
            self._check_range()
        self._check_digits()
        self._check_special()

    def _refuse(self, why: str, *entries: str) -> None:
        for entry in entries:
            value = getattr(self, entry)
            if value not in ("", None, (), False):
                raise BadInput(f"Column '{self.name}' {why} {entry}, got {shown(value)}. Take that entry out.")

    def _check_range(self) -> None:
        low, high = self._number(self.low), self._number(self.high)
        if not is_range(low, high):
            form = "a finite range low < high or a list of categories"
            if self.kind:
                form = f'low < high as ISO texts such as "{_EXAMPLES[self.kind]}"'
            raise BadInput(f"Column '{self.name}' needs {form}, got low={shown(self.low)}, high={shown(self.high)}.")

    def _check_digits(self) -> None:
        if self.digits is None:
            return
        right = is_whole(self.digits) and 1 <= self.digits <= MOST_DIGITS
        form = f"a whole number from 1 to {MOST_DIGITS} (for whole numbers write integer = true)"
        require(f"digits of column '{self.name}'", self.digits, right, form)
        if self.integer:
            raise BadInput(f"Column '{self.name}' has integer and digits={self.digits}. Take one of them out.")
        assert self.grid is not None
        if self.grid[1] > self.grid[2]:
            raise BadInput(
                f"Column '{self.name}' has no number of digits={self.digits} from low={shown(self.low)} to "
                f"high={shown(self.high)}. Give more digits or a wider range."
            )

    def _check_special(self) -> None:
        form = f"a list of at most {MOST_SPECIAL} values like low and high"
        listed = isinstance(self.special, tuple) and len(self.special) <= MOST_SPECIAL
        require(f"special of column '{self.name}'", self.special, listed, form)
        if not self.special:
            return
        low, high = self.range
        for value in self.special:
            number = self._number(value)
            if number is None or not low <= number <= high:
                raise BadInput(
                    f"special of column '{self.name}' lists {shown(value)}, which must lie from low={shown(self.low)} to "
                    f"high={shown(self.high)}. Take it out or widen the range."
                )
            if self.grid is not None and _whole_near(number * self.grid[0]) is None:
                form = f"have at most {self.digits} digits" if self.digits else "be whole numbers"
                raise BadInput(
                    f"special of column '{self.name}' must {form} like its other values, got {shown(value)}."
                )
        for one, two in itertools.pairwise(self.points):
            if two - one < LEAST_APART * (high - low):
                raise BadInput(
                    f"special of column '{self.name}' lists values that are less than a ten-millionth of the range apart."
                )

    def _number(self, value: object) -> float | None:
        """An end of the range, or a special value, as a number; None if it is none."""
        if self.kind:
            try:
                return moment(value, self.kind) if isinstance(value, str) else None
            except (ValueError, OverflowError):
                return None
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    @property
    def numeric(self) -> bool:
        return not self.categories

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers: as such, or as days or seconds."""
        return self.integer or bool(self.kind)

    @property
    def range(self) -> tuple[float, float]:
        """The ends of a numeric column's range; of dates and time stamps in days and seconds since 1970."""
        low, high = self._number(self.low), self._number(self.high)
        assert low is not None and high is not None
        return low, high

    @property
    def grid(self) -> tuple[float, float, float] | None:
        """(scale, first, last): its values are k / scale, for the whole numbers k from first to last. None: any number.

        >>> Column(name="price", low=0.005, high=0.07, digits=2).grid
        (100.0, 1.0, 7.0)
        """
        low, high = self.range
        if self.whole:
            return 1.0, float(math.ceil(low)), float(math.floor(high))
        if self.digits is None:
            return None
        scale = 10.0**self.digits
        first, last = (_whole_near(end * scale) for end in (low, high))
        first = math.ceil(low * scale) if first is None else first
        last = math.floor(high * scale) if last is None else last
        return scale, float(first), float(last)

    @property
    def points(self) -> tuple[float, ...]:
        """The special values as numbers, in order."""
        return tuple(sorted(number for value in self.special if (number := self._number(value)) is not None))

    @property
    def marks(self) -> tuple[float, ...]:
        """Where the special values lie in an encoded record, before they are kept in single precision."""
        if not self.special:
            return ()
        low, high = self.range
        return tuple(2 * ((point - low) / (high - low)) - 1 for point in self.points)

    @property
    def width(self) -> int:
        """How many numbers the column takes in an encoded record. The last one says "missing", where that may be."""
        return (1 if self.numeric or self.ordinal else len(self.categories)) + self.missing

    @property
    def words(self) -> str:
        """What is public about it, in a line.

        >>> Column(name="gain", low=0, high=9.5, digits=1, special=(0,), missing=True).words
        '0 to 9.5, digits 1, special 0, missing'
        """
        parts = [", ".join(self.categories) if self.categories else f"{_brief(self.low)} to {_brief(self.high)}"]
        parts += [f"{entry} {value}" for entry in ("kind", "format", "digits") if (value := getattr(self, entry))]
        parts += [f"special {' '.join(_brief(value) for value in self.special)}"] if self.special else []
        return ", ".join([*parts, *(entry for entry in ("ordinal", "integer", "missing") if getattr(self, entry))])

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what came later only where it says something."""
        return {key: value for key, value in dataclasses.asdict(self).items() if value or key not in _LATER}


def _brief(value: float | str | None) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _whole_near(value: float) -> float | None:
    """The whole number that a value is, up to what doubles lose: 0.07 * 100 is 7.000000000000001."""
    near = float(round(value))
    return near if abs(value - near) <= 1e-12 * max(1.0, abs(value)) else None
