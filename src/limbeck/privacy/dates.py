"""Dates and time stamps as numbers: whole days, or whole seconds, since the beginning of 1970.

Whether 03.04.1990 is a day of March or of April depends on the country, not on the cell, so beside ISO texts there are two rules,
and a column has at most one of them: `day-month-year` (31.01.1990, 31/01/1990) and `month-day-year` (01/31/1990).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

DATE, TIME = "date", "time"
KINDS = (DATE, TIME)
DAY_FIRST, MONTH_FIRST = "day-month-year", "month-day-year"
ORDERS = (DAY_FIRST, MONTH_FIRST)
DAY = 86_400
LONGEST = 40  # letters of a time stamp
_EPOCH = datetime(1970, 1, 1)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?", re.ASCII | re.DOTALL)
_WRITTEN = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:,?[T ]+(\d{2}:\d{2}(?::\d{2})?))?", re.ASCII)


def moment(cell: object, kind: str, order: str = "") -> float:
    """The days, or seconds, of an ISO text, a date or a time stamp; ValueError or OverflowError if it is none.

    order: of day and month in other texts; without one there are none.

    A time stamp with a zone is one of UTC; its date is the one that is written.

    >>> moment("1970-01-31", DATE), moment("1970-01-31 00:01", DATE), moment("1970-01-01T00:01:05", TIME)
    (30.0, 30.0, 65.0)
    >>> moment("31.1.1970", DATE, DAY_FIRST), moment("01/31/1970", DATE, MONTH_FIRST), moment("1970-01-31", DATE, DAY_FIRST)
    (30.0, 30.0, 30.0)
    """
    if isinstance(cell, str):
        text = cell.strip()
        if len(text) > LONGEST:
            raise ValueError
        cell = datetime.fromisoformat(text) if _ISO.fullmatch(text) else _as_written(text, order)
    if not isinstance(cell, date) or cell != cell:
        raise ValueError
    if not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    if cell.tzinfo is not None:
        cell = (cell.astimezone(UTC) if kind == TIME else cell).replace(tzinfo=None)
    since = cell - _EPOCH
    return float(since.days if kind == DATE else since.days * DAY + since.seconds)


def _as_written(text: str, order: str) -> datetime | None:
    found = _WRITTEN.fullmatch(text) if order else None
    if found is None:
        return None
    one, two = int(found[1]), int(found[3])
    day, month = (one, two) if order == DAY_FIRST else (two, one)
    return datetime.fromisoformat(f"{found[4]}-{month:02d}-{day:02d}T{found[5] or '00:00'}")


def is_written(text: str) -> bool:
    """Whether it has the form of a date in digits with the year last, whichever of the others is the day.

    >>> is_written("31.01.1990"), is_written("01/31/1990 17:30"), is_written("31.01/1990"), is_written("1.5")
    (True, True, False, False)
    """
    return len(text) <= LONGEST and _WRITTEN.fullmatch(text.strip()) is not None


def iso_text(number: float, kind: str) -> str:
    """
    >>> iso_text(30, DATE), iso_text(65, TIME)
    ('1970-01-31', '1970-01-01T00:01:05')
    """
    if kind == DATE:
        return (_EPOCH + timedelta(days=number)).date().isoformat()
    return (_EPOCH + timedelta(seconds=number)).isoformat()
