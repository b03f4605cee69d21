"""A small table with every kind of column, and the same rows as frames of pandas, polars and Arrow in several types."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from limbeck.privacy.schema import Column, Schema

COLUMNS = (
    Column(name="age", low=0, high=100, integer=True),
    Column(name="visits", low=0, high=50, integer=True, missing=True),
    Column(name="town", categories=("isle", "north", "south"), missing=True),
    Column(name="grade", categories=("low", "middle", "high"), ordinal=True),
    Column(name="ok", categories=("False", "True")),
    Column(name="born", kind="date", low="1900-01-01", high="2030-12-31"),
    Column(name="seen", kind="time", low="2020-01-01", high="2020-01-31"),
    Column(name="price", low=0, high=1000, digits=2),
    Column(name="zip", categories=("01067", "90210")),
)
SCHEMA = Schema(
    name="clinic", shape=(sum(column.width for column in COLUMNS),), classes=("0", "1"), records=40, low=-1, high=1,
    columns=COLUMNS, label="ill", augmentation=(),
)  # fmt: skip
DAY, HOUR = datetime.date(1990, 2, 28), datetime.datetime(2020, 1, 5, 10)


def row(place: int) -> dict[str, Any]:
    return {
        "ill": place % 2,
        "age": 20 + place % 70,
        "visits": None if place % 5 == 0 else place % 50,
        "town": None if place % 7 == 0 else ("isle", "north", "south")[place % 3],
        "grade": ("low", "middle", "high")[place % 3],
        "ok": place % 3 == 0,
        "born": DAY + datetime.timedelta(days=place),
        "seen": HOUR + datetime.timedelta(hours=place % 20),
        "price": Decimal(place % 900) + Decimal("0.25"),
        "zip": ("01067", "90210")[place % 2],
    }


def rows(count: int) -> dict[str, list[Any]]:
    """By column. The label stands first, and must come back there."""
    found = [row(place) for place in range(count)]
    return {name: [each[name] for each in found] for name in found[0]}
