"""Every entry of a schema has a kind and bounds. What passes a comparison by not being a number does not pass here."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema

GOOD: dict[str, Any] = {"name": "own", "shape": [4], "classes": ["a", "b"], "records": 200}
NO_NUMBERS = (math.nan, math.inf, -math.inf, True, "5", None, [1], {"a": 1}, 1.5, 10**400, 0, -1)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_records_is_a_whole_number(value: object) -> None:
    with pytest.raises(BadInput, match="records"):
        Schema.from_dict({**GOOD, "records": value})


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_sides_and_class_sizes_are_whole_numbers(value: object) -> None:
    with pytest.raises(BadInput, match="shape"):
        Schema.from_dict({**GOOD, "shape": [value]})
    with pytest.raises(BadInput, match="class_sizes"):
        Schema.from_dict({**GOOD, "class_sizes": [100, value]})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, True, "5", [1], 10**400, 1e300])
def test_ranges_are_numbers_to_compute_with(value: object) -> None:
    with pytest.raises(BadInput, match="low"):
        Schema.from_dict({**GOOD, "high": value})
    for column in ({"low": 0, "high": value}, {"low": value, "high": 1}, {"low": value, "categories": ["x"]}):
        with pytest.raises(BadInput, match="'age'"):
            Schema.from_dict({**GOOD, "shape": [1], "columns": [{"name": "age", **column}]})


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("name", 3),
        ("label", 3),
        ("classes", [1, 2]),
        ("classes", "ab"),
        ("augmentation", "flip"),
        ("unconfirmed", [1]),
        ("columns", 3),
        ("columns", [3]),
        ("columns", [{"name": 3, "low": 0, "high": 1}]),
        ("columns", [{"name": "a", "categories": [1]}]),
        ("columns", [{"name": "a", "low": 0, "high": 1, "integer": 1}]),
        ("columns", [{"name": "a", "low": 0, "high": 1, "nonsense": 1}]),
        ("columns", [{"low": 0, "high": 1}]),
        ("unit", 3),
        ("adjacency", ["add_remove"]),
    ],
)
def test_an_entry_of_another_kind_is_named(entry: str, value: object) -> None:
    with pytest.raises(BadInput) as caught:
        Schema.from_dict({**GOOD, "shape": [1], entry: value})
    assert entry.rstrip("s") in caught.value.message and len(caught.value.message) < 300


def test_what_was_readable_stays_so() -> None:
    schema = Schema(
        name="own", shape=(1,), classes=("a", "b"), records=9, columns=(Column(name="age", low=0, high=1.5),)
    )
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert Schema.from_dict({**GOOD, "records": 6e4, "shape": [4.0], "class_sizes": [3e4, 3e4]}).records == 60_000
    assert isinstance(Schema.from_dict({**GOOD, "low": 0.0}).low, float)


BASE = 'name = "own"\nshape = [4]\nclasses = ["a", "b"]\nrecords = 200\n'


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("200", "nan"),
        BASE.replace("200", "1e400"),
        BASE.replace("200", "9" * 5000),
        BASE.replace("200", "0x" + "F" * 5000),
        BASE + "low = 1979-05-27\n",
        "x = " + "[" * 100_000,
        "x = " + "{a = " * 100_000,
        "a." * 300_000 + "b = 1",
        "x = '" + "a" * 5_000_000,
        BASE + "Ann Secret,47,ill\n",
        "\0\xff",
    ],
)
def test_a_bad_file_is_a_short_sentence_at_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(text.encode("latin-1"))
    began = time.monotonic()
    with pytest.raises(BadInput) as caught:
        Schema.read(path)
    assert time.monotonic() - began < 5
    assert len(caught.value.message) < 500 + len(str(path)) and "Secret" not in caught.value.message


def test_an_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(BadInput, match="more than"):
        Schema.read(Path("/dev/zero"))


# --- columns ---


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"low": 0, "high": 1, "digits": 0}, "integer = true"),
        ({"low": 0, "high": 1, "digits": 2.5}, "digits"),
        ({"low": 0, "high": 1, "digits": True}, "digits"),
        ({"low": 0, "high": 1, "digits": 2, "integer": True}, "Take one of them out"),
        ({"low": 0.001, "high": 0.002, "digits": 2}, "more digits"),
        ({"low": 0, "high": 1, "special": 0}, "a list"),
        ({"low": 0, "high": 1, "special": [2]}, "lists 2, which must lie from low=0 to high=1"),
        ({"low": 0, "high": 1, "special": [True]}, "lists True"),
        ({"low": 0, "high": 1, "special": ["0"]}, "lists '0'"),
        ({"low": 0, "high": 1, "special": [[0]]}, "special"),
        ({"low": 0, "high": 1, "special": [math.nan]}, "lists nan"),
        ({"low": 0, "high": 1, "special": [10**400]}, "special"),
        ({"low": 0, "high": 1, "special": [0, 0.0]}, "ten-millionth"),
        ({"low": 0, "high": 9, "special": [0.5], "integer": True}, "whole numbers"),
        ({"low": 0, "high": 9, "special": [0.125], "digits": 2}, "at most 2 digits"),
        ({"low": 0, "high": 1, "special": list(range(200))}, "at most 100"),
        ({"low": 0, "high": 1, "kind": "day"}, '"date" or "time"'),
        ({"low": 0, "high": 1, "kind": ["date"]}, '"date" or "time"'),
        ({"low": 0, "high": 1, "kind": "date"}, "ISO texts"),
        ({"low": "2000-01-01", "high": "1999-01-01", "kind": "date"}, "low < high"),
        ({"low": "2000-01-01", "high": "2000-02-30", "kind": "date"}, "ISO texts"),
        ({"low": "2000-01-01", "high": "9" * 5000, "kind": "time"}, "ISO texts"),
        ({"low": "2000-01-01", "high": "2001-01-01"}, "finite range"),
        ({"low": "2000-01-01", "high": "2001-01-01", "kind": "date", "digits": 1}, "takes no digits"),
        ({"low": "2000-01-01", "high": "2001-01-01", "kind": "date", "integer": True}, "takes no integer"),
        ({"low": "2000-01-01", "high": "2001-01-01", "kind": "date", "special": ["1900-01-01"]}, "lists '1900-01-01'"),
        ({"categories": ["a"], "digits": 1}, "takes no digits"),
        ({"categories": ["a"], "special": [0]}, "takes no special"),
        ({"categories": ["a"], "kind": "date"}, "takes no kind"),
    ],
)
def test_what_a_column_cannot_be(entries: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput) as caught:
        Schema.from_dict({**GOOD, "shape": [1], "columns": [{"name": "age", **entries}]})
    assert "'age'" in caught.value.message and says in caught.value.message and len(caught.value.message) < 300


def test_new_entries_of_a_column_are_written_only_where_they_say_something() -> None:
    plain = {"name", "low", "high", "categories", "ordinal", "integer"}
    assert set(Column(name="age", low=0, high=1).to_dict()) == plain
    for column in (
        Column(name="a", low=0, high=9, digits=2, special=(0, 1.5), missing=True),
        Column(name="b", low="1990-01-01", high="2020-12-31", kind="date", special=("1990-01-01",)),
        Column(name="c", low="1990-01-01T00:00:00", high="2020-12-31T12:00:00", kind="time"),
    ):
        schema = Schema(name="own", shape=(column.width,), classes=("a", "b"), records=9, columns=(column,))
        assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_dates_may_stand_without_quotes(tmp_path: Path) -> None:
    column = '[[columns]]\nname = "born"\nkind = "date"\nlow = 1990-01-01\nhigh = 2020-12-31\nspecial = [2000-01-01]\n'
    (tmp_path / "own.toml").write_text(BASE.replace("[4]", "[1]") + column)
    born = Schema.read(tmp_path / "own.toml").columns[0]
    assert (born.low, born.high, born.special) == ("1990-01-01", "2020-12-31", ("2000-01-01",))
    assert born.range == (7305.0, 18627.0) and born.whole


@pytest.mark.parametrize(("digits", "low", "high"), [(2, 0.07, 0.29), (1, -3.3, 3.3), (2, 0.0, 123456789.01)])
def test_the_ends_of_a_range_are_on_its_grid(digits: int, low: float, high: float) -> None:
    grid = Column(name="a", low=low, high=high, digits=digits).grid
    assert grid is not None and (grid[1] / grid[0], grid[2] / grid[0]) == (low, high)
