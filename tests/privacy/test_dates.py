"""Dates and time stamps as days and seconds, and back."""

from __future__ import annotations

import doctest
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.privacy import dates
from limbeck.privacy.dates import DATE, DAY_FIRST, MONTH_FIRST, TIME, is_written, iso_text, moment


@given(st.dates())
def test_days_and_back(day: date) -> None:
    assert iso_text(moment(day, DATE), DATE) == day.isoformat()
    assert moment(day.isoformat(), DATE) == moment(day, DATE) == moment(day, TIME) / dates.DAY


@given(st.datetimes())
def test_seconds_and_back(stamp: datetime) -> None:
    assert iso_text(moment(stamp, TIME), TIME) == stamp.replace(microsecond=0).isoformat()
    assert moment(stamp.isoformat(), TIME) == moment(str(stamp), TIME) == moment(stamp, TIME)
    assert moment(stamp, DATE) == moment(stamp.date(), DATE)


def test_a_zone_moves_a_stamp_and_no_date() -> None:
    late = datetime(2020, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    assert moment(late, TIME) == moment("2019-12-31T22:30", TIME) == moment("2020-01-01T00:30+02:00", TIME)
    assert moment(late, DATE) == moment("2020-01-01", DATE)
    assert moment(datetime(2020, 1, 1, tzinfo=UTC), TIME) == moment("2020-01-01T00:00:00Z", TIME)


@pytest.mark.parametrize(
    "cell", ["", "20200101", "2020-W01-1", "2020-13-01", "0000-01-01", "01.02.2020", "2020-01-01 late", "x" * 99, 7, 7.5,
             None, b"2020-01-01", "\u0662020-01-01", "2020-01-01\n12:00"],
)  # fmt: skip
@pytest.mark.parametrize("kind", [DATE, TIME])
def test_what_is_no_date(cell: object, kind: str) -> None:
    with pytest.raises(ValueError):
        moment(cell, kind)


@given(st.dates(min_value=date(1000, 1, 1)), st.sampled_from(".-/"))
def test_dates_as_people_write_them(day: date, mark: str) -> None:
    first, other = (
        mark.join((f"{one:02d}", f"{two:02d}", str(day.year)))
        for one, two in ((day.day, day.month), (day.month, day.day))
    )
    assert moment(first, DATE, DAY_FIRST) == moment(other, DATE, MONTH_FIRST) == moment(day, DATE)
    assert moment(f"{first} 17:30", TIME, DAY_FIRST) == moment(day, TIME) + 63_000
    assert is_written(first) and moment(day.isoformat(), DATE, MONTH_FIRST) == moment(day, DATE)
    with pytest.raises(ValueError):
        moment(first, DATE)  # without an order there is one form alone


@pytest.mark.parametrize(
    "cell", ["31.02.2020", "13/13/2020", "1.2/2020", "01.02.20", "0.1.2020", "1.2.2020 25:00", "1.2.2020 late"]
)
@pytest.mark.parametrize("order", [DAY_FIRST, MONTH_FIRST])
def test_what_is_no_date_in_either_order(cell: str, order: str) -> None:
    with pytest.raises(ValueError):
        moment(cell, TIME, order)


def test_a_stamp_beyond_all_years_is_an_error_that_readers_know() -> None:
    with pytest.raises(OverflowError):
        moment("0001-01-01T00:00+10:00", TIME)


def test_examples() -> None:
    assert doctest.testmod(dates).failed == 0
