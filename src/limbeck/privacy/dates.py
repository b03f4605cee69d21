"""Dates and time stamps as numbers: whole days, or whole seconds, since the beginning of 1970."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

DATE, TIME = "date", "time"
KINDS = (DATE, TIME)
DAY = 86_400
LONGEST = 40  # letters of a time stamp
_EPOCH = datetime(1970, 1, 1)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?", re.ASCII | re.DOTALL)


def moment(cell: object, kind: str) -> float:
    """The days, or seconds, of an ISO text, a date or a time stamp; ValueError or OverflowError if it is none.

    A time stamp with a zone is one of UTC; its date is the one that is written.

    >>> moment("1970-01-31", DATE), moment("1970-01-31 00:01", DATE), moment("1970-01-01T00:01:05", TIME)
    (30.0, 30.0, 65.0)
    """
    if isinstance(cell, str):
        text = cell.strip()
        if len(text) > LONGEST or not _ISO.fullmatch(text):
            raise ValueError
        cell = datetime.fromisoformat(text)
    if not isinstance(cell, date) or cell != cell:
        raise ValueError
    if not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    if cell.tzinfo is not None:
        cell = (cell.astimezone(UTC) if kind == TIME else cell).replace(tzinfo=None)
    since = cell - _EPOCH
    return float(since.days if kind == DATE else since.days * DAY + since.seconds)


def iso_text(number: float, kind: str) -> str:
    """
    >>> iso_text(30, DATE), iso_text(65, TIME)
    ('1970-01-31', '1970-01-01T00:01:05')
    """
    if kind == DATE:
        return (_EPOCH + timedelta(days=number)).date().isoformat()
    return (_EPOCH + timedelta(seconds=number)).isoformat()
