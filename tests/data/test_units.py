"""Codes of persons: equal ids are one person in whatever way they are stored, and no id ever raises or is shown."""

from __future__ import annotations

import datetime
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.data import units
from limbeck.data.units import canonical, unit_codes
from limbeck.errors import DataUnreadable

SECRET = "Zq7Secret"


def codes(*ids: Any) -> list[int]:
    found: list[int] = unit_codes(list(ids), "X").tolist()
    return found


def test_equal_ids_are_one_person_and_others_are_not() -> None:
    found = codes("ann", "bob", "ann", "Ann")
    assert found[0] == found[2] and len(set(found)) == 3


@pytest.mark.parametrize(
    "ids",
    [
        (7, 7.0, "7", " 7 ", "007", "7.0", "7.", "+7", b"7", np.int8(7), np.float32(7), np.uint64(7), Decimal("7.00")),
        (-7, "-7", -7.0, "-007.0"),
        (0, "0", "-0", "00.0", 0.0, -0.0, np.float16(0)),
        (None, "", "  ", "\t", float("nan"), np.nan, "NaN", "nan", "None", "NULL", "n/a", "<NA>", "NaT", b"", Decimal("NaN")),
        ("p 1", " p 1", "p 1\n", "p 1\u2003", "\u00a0p 1"),
        ("Zo\u00eb", "Zoe\u0308", " Zoe\u0308"),
        ("\u212b", "\u00c5", "A\u030a"),
        (10**60, str(10**60), f"000{10**60}"),
        (1e22, "10000000000000000000000"),
    ],
)  # fmt: skip
def test_spellings_of_one_id_are_one_person(ids: tuple[Any, ...]) -> None:
    assert len(set(codes(*ids))) == 1


@pytest.mark.parametrize(
    "ids",
    [
        ("7", "70", "-7", "7.5", "A7", "7 7", "٧", "1e3"),
        (1, 2, 1.5, -1),
        ("nan1", "no", "-", "?"),
        (b"\xff\xfe", b"\xff\xfd", b"\xff"),
        ("9" * 1_000_000, "9" * 999_999 + "8", "9" * 999_999),
        ("x" * 1_000_000, "x" * 999_999 + "y"),
        (2**63, 2**63 + 1, 2**64, -(2**63)),
    ],
)
def test_other_ids_are_other_persons(ids: tuple[Any, ...]) -> None:
    assert len(set(codes(*ids))) == len(ids)


def test_a_code_depends_on_the_id_alone() -> None:
    """Not on its place, its neighbours or its type in NumPy: the same person is the same code in another file."""
    ids = [f"p{i % 9}" for i in range(50)] + ["", "5", "5"]
    alone = [codes(each)[0] for each in ids]
    order = np.random.default_rng(0).permutation(len(ids))
    assert codes(*ids) == alone and codes(*(ids[i] for i in order)) == [alone[i] for i in order]
    assert unit_codes(np.array(ids), "X").tolist() == alone
    assert unit_codes(np.array(ids, dtype=object), "X").tolist() == alone
    assert unit_codes(np.array([each.encode() for each in ids]), "X").tolist() == alone


def test_a_code_depends_on_the_ids_of_no_neighbour() -> None:
    """1 and True are equal in Python, and are two ids whichever comes first."""
    for other in (1, 1.0, "1"):
        assert codes(other, True) == codes(True, other)[::-1] == [codes(other)[0], codes(True)[0]]


def test_whole_numbers_are_one_person_in_every_type_of_array() -> None:
    expected = codes(3, 0, 5)
    for kind in ("u1", "i2", "i8", ">u4", "f2", "f4", "f8", "g", "U3", "S3", "O"):
        assert unit_codes(np.array([3, 0, 5]).astype(kind), "X").tolist() == expected, kind
    assert unit_codes(np.array([True, False]), "X").tolist() == codes(True, False)


def test_pieces_of_a_long_array_are_read_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.array([f"p{i % 37}" for i in range(1000)])
    whole = unit_codes(ids, "X")
    monkeypatch.setattr(units, "CHUNK", 7)
    assert np.array_equal(unit_codes(ids, "X"), whole) and len(set(whole.tolist())) == 37
    monkeypatch.setattr(units, "MOST_CHUNK_BYTES", 1)
    assert np.array_equal(unit_codes(ids, "X"), whole)


def test_codes_are_int64_of_63_bits_known_for_good() -> None:
    """Teachers and splits by person hang on them, so they never change."""
    found = unit_codes(["p1", 7, None], "X")
    assert found.dtype == np.int64 and (found >= 0).all()
    assert found.tolist() == [3030853162637011735, 7701788345062223921, 4338375446535122049]


@pytest.mark.parametrize("count", [0, 1])
def test_nobody_and_one(count: int) -> None:
    assert unit_codes([SECRET] * count, "X").shape == (count,)
    assert unit_codes(np.array([SECRET] * count, dtype="U9"), "X").shape == (count,)


def test_all_ids_missing_are_one_person_and_every_record_its_own() -> None:
    assert len(set(unit_codes([None] * 10_000, "X").tolist())) == 1
    assert len(set(unit_codes(np.arange(10_000), "X").tolist())) == 10_000


class Rude:
    """Raises wherever it can."""

    def __eq__(self, other: object) -> bool:
        raise ValueError(SECRET)

    def __hash__(self) -> int:
        raise ValueError(SECRET)

    def __str__(self) -> str:
        raise ValueError(SECRET)


def test_no_id_raises() -> None:
    odd = [
        Rude(),
        [1],
        {"a": 1},
        np.zeros(2),
        Decimal("sNaN"),
        "\ud800",
        b"\xff",
        datetime.date(2020, 1, 1),
        1j,
        object,
    ]
    odd += [float("inf"), 10**5000, Decimal("1e999999"), "\0", "a\0"]
    found = codes(*odd)
    assert len(found) == len(odd) and found == codes(*odd)
    assert canonical(Rude()) == canonical(np.zeros(2)) == ""  # what cannot be compared is nobody's own


def test_a_text_made_to_take_long_takes_no_time() -> None:
    began = time.monotonic()
    long = codes("\u0301\u0316" * 500_000, "\u0316\u0301" * 500_000, "é" * 2000, "e\u0301" * 2000)
    assert len(set(long)) == 1  # nobody has such an id; all who have are one person
    assert len(set(codes("é" * 500, "e\u0301" * 500))) == 1
    assert len(set(codes("é" * 501, "e\u0301" * 501))) == 1  # the limit is on the longest spelling, so it splits nobody
    codes(*["x" * 1_000_000 + "y"] * 1000)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.zeros((3, 2)), "one id per record"),
        (np.array(SECRET), "one id per record"),
        (np.zeros(3, complex), "type complex128"),
        (np.zeros(3, "M8[D]"), "whole numbers or texts"),
    ],
)
def test_the_form_of_an_array_is_checked_and_no_id_is_shown(ids: Any, message: str) -> None:
    with pytest.raises(DataUnreadable, match=message) as caught:
        unit_codes(ids, "people.npz")
    assert caught.value.message.startswith("people.npz") and SECRET not in caught.value.message


@given(st.text(max_size=30))
def test_any_text_is_its_own_canonical_text(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once and canonical(f" {text}\t") == once and codes(text) == codes(once)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False).map(lambda value: float(round(value))))
def test_a_whole_number_is_its_decimal_text(value: float) -> None:
    assert canonical(value) == str(int(value)) == canonical(str(int(value)))
