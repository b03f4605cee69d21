"""Drafts of tables as people have them: codes, money, truth values, labels that are numbers, and frames in Python."""

from __future__ import annotations

import contextlib
import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limbeck
from frames import rows
from limbeck.data.draft import draft_of
from limbeck.data.survey_column import look
from limbeck.data.surveyed import Wanted
from limbeck.data.table import encode_rows
from limbeck.errors import BadInput
from limbeck.privacy.currency import COMMA, FORMATS, POINT, amount
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Silent


class Heard(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


# --- columns ---


@pytest.mark.parametrize("cells", [["01067", "90210"] * 20, ["0", "00", "01"] * 20])
def test_digits_with_leading_zeros_are_codes(cells: list[str]) -> None:
    found = look("a", cells)
    assert found.column is not None and found.column.categories == tuple(sorted(set(cells)))
    assert "code, not as a number" in found.says


@pytest.mark.parametrize("name", ["zip", "ZIP_code", "plz", "Postal code", "postcode", "fips"])
def test_codes_by_the_name_of_their_column(name: str) -> None:
    many = look(name, [str(20_000 + place * 7) for place in range(3000)])
    assert many.column is None and "its digits are a code" in many.says
    few = look(name, ["90210", "10115", ""] * 20)
    assert few.column is not None and few.column.categories == ("10115", "90210") and few.column.missing
    assert look("amount", ["90210", "10115"] * 20).column.numeric  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("cells", "form", "digits"),
    [
        (["$1,200.50", "$3.25", "$-7.10", "($4.00)"], POINT, 2),
        (["1.200,50 EUR", "3,25 EUR", "17,00 EUR"], COMMA, 2),
        (["€ 1.200,5", "€ 0,5"], COMMA, 1),
        (["1,200", "3,500", "900"], POINT, None),
        (["1 200,50", "900,00"], COMMA, 1),
        (["CHF 1'200.55", "CHF 9.00"], POINT, 2),
    ],
)
def test_money(cells: list[str], form: str, digits: int | None) -> None:
    found = look("price", cells * 10)
    assert found.column is not None and (found.column.format, found.column.digits) == (form, digits)
    assert "are read as numbers" in found.says and found.column.numeric
    schema = Schema(name="a", shape=(1,), classes=("a", "b"), records=9, columns=(found.column,), low=-1, high=1)
    encoded = encode_rows({"price": cells}, schema)[:, 0]
    low, high = found.column.range
    values = low + (encoded.astype(np.float64) + 1) / 2 * (high - low)
    assert np.allclose(values, [amount(cell, form) for cell in cells], atol=1e-3 * (high - low))


def test_amounts_in_several_currencies_are_told_of() -> None:
    mixed = ["$1.50", "€2.50", "3.00 EUR", "$4.25"] * 6
    found = look("price", mixed)
    assert found.column is not None and "several currencies ($, EUR, €)" in found.says and "convert" in found.says
    for one in (["$1.50", "$2.25", "3.00"] * 8, ["1.50 EUR", "EUR 2.25"] * 10):
        assert "currencies" not in look("price", one).says


@pytest.mark.parametrize(
    "cells", [["C001", "C002"], ["A12", "B7"], ["12%", "15%"], ["5 apples", "3 apples"], ["1,2,3", "4,5"]]
)
def test_what_is_no_money(cells: list[str]) -> None:
    found = look("a", cells * 10)
    assert found.column is not None and not found.column.format


@given(st.integers(-(10**9), 10**9), st.sampled_from(["", "$", "€ ", "EUR "]), st.sampled_from(["", " USD", "€"]))
def test_an_amount_is_read_as_it_is_written(cents: int, before: str, after: str) -> None:
    number = cents / 100
    assert amount(f"{before}{number:,.2f}{after}", POINT) == pytest.approx(number)
    turned = f"{number:,.2f}".translate(str.maketrans(",.", ".,"))
    assert amount(f"{before}{turned}{after}", COMMA) == pytest.approx(number)


@given(st.text(max_size=80), st.sampled_from(FORMATS))
def test_no_text_does_anything_but_fail_as_an_amount(text: str, form: str) -> None:
    with contextlib.suppress(ValueError):
        assert np.isfinite(amount(text, form))


@pytest.mark.parametrize(
    "words", [("0", "1"), ("f", "t"), ("false", "true"), ("no", "yes"), ("False", "True"), ("N", "Y")]
)
def test_truth_values_are_two_categories(words: tuple[str, str]) -> None:
    found = look("a", [*words, *words, words[0]] * 9)
    assert found.column is not None and found.column.categories == words and found.says == "It says yes or no."


def test_whole_numbers_with_gaps() -> None:
    found = look("a", ["1.0", "2.0", "", "17.0"] * 9)
    assert found.column == Column(name="a", low=0, high=20, integer=True, missing=True)


# --- labels ---


def table(path: Path, label: list[Any]) -> Path:
    lines = [f"{place % 50},{value},{'xy'[place % 2]}" for place, value in enumerate(label)]
    path.write_text("\n".join(["age,pay,side", *lines]) + "\n")
    return path


def test_a_label_that_is_a_number_to_predict(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [place / 4 for place in range(60)])
    plain = draft_of(path, Wanted(label="pay"))
    assert plain.schema.has_label and len(plain.schema.classes) == 60
    assert any("--target pay" in sentence and 'targets = ["pay"]' in sentence for sentence in plain.aloud)
    questions: list[str] = []
    for answer in (True, False):
        found = draft_of(path, Wanted(label="pay", ask=lambda text, a=answer: questions.append(text) or a)).schema  # type: ignore[misc]
        assert found.has_label is not answer and found.targets == (("pay",) if answer else ())
    assert all("60 different numbers" in text and "regression" in text for text in questions) and len(questions) == 2
    asked = draft_of(path, Wanted(targets=("pay", "side"))).schema
    assert asked.targets == ("pay", "side") and not asked.has_label and asked.records == 60
    assert asked.unconfirmed == ("records", "columns.age", "columns.pay", "columns.side")


@pytest.mark.parametrize("label", [list(range(60)), ["a", "b"] * 30, [0.5, 1.5] * 30])
def test_labels_that_are_classes(tmp_path: Path, label: list[Any]) -> None:
    found = draft_of(table(tmp_path / "a.csv", label), Wanted(label="pay", ask=lambda _: 1 / 0 > 0))
    assert found.schema.has_label and found.remarks == ()


def test_no_label_and_what_cannot_be(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ["a", "b"] * 30)
    found = draft_of(path, Wanted(unlabelled=True)).schema
    assert not found.has_label and found.order == ("age", "pay", "side") and found.records == 60
    for wanted, message in (
        (Wanted(), "--no-label"),
        (Wanted(label="pay", unlabelled=True), "the opposite"),
        (Wanted(label="pay", targets=("pay",)), "cannot be a target"),
        (Wanted(targets=("who",)), "no column 'who' for a target"),
    ):
        with pytest.raises(BadInput, match=message):
            draft_of(path, wanted)


def test_where_the_label_stands_is_kept(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ["a", "b"] * 30)
    assert draft_of(path, Wanted(label="pay")).schema.order == ("age", "pay", "side")
    assert "label_at" not in draft_of(path, Wanted(label="side")).text


def test_the_command_says_what_is_left_out(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f"{place % 50},name {place},{10000 + place * 3},{'xy'[place % 2]}" for place in range(1500)]
    path.write_text("\n".join(["age,who,zip,ill", *lines]) + "\n")
    ended = cli("schema", "draft", path, "--label", "ill", "--out", tmp_path / "a.toml", "--json")
    assert set(ended.json["left_out"]) == {"who", "zip"} and "a code" in ended.json["left_out"]["zip"]
    assert "left out: column who has another text" in ended.err and "left out: column zip" in ended.err
    ended = cli("schema", "draft", path, "--target", "age", "--json")
    assert tomllib.loads(ended.json["schema"])["targets"] == ["age"]


# --- frames ---


def test_a_frame_is_drafted_like_its_file(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows(60)).drop(columns=["born", "seen", "price"]).astype({"visits": "Int64"})
    frame.to_csv(tmp_path / "clinic.csv", index=False)
    found = limbeck.draft(frame, name="clinic", label="ill", reporter=Silent())
    assert found == draft_of(tmp_path / "clinic.csv", Wanted(label="ill")).schema
    assert found == limbeck.draft(tmp_path / "clinic.csv", label="ill", reporter=Silent())
    assert found == limbeck.draft(pa.Table.from_pandas(frame), name="clinic", label="ill", reporter=Silent())
    assert found.order == tuple(frame.columns)


def test_drafted_confirmed_and_planned() -> None:
    heard, frame = Heard(), pa.table(rows(400) | {"note": [f"a long tale {place}" for place in range(400)]})
    found = limbeck.draft(frame, name="clinic", label="ill", reporter=heard)
    assert heard.said and heard.said[0].startswith("left out: column note")
    assert "columns.age: 20 to 90, integer" in found.to_confirm and "classes: 0, 1" in found.to_confirm
    with pytest.raises(BadInput, match=r"not confirmed as public.*confirmed\(\)"):
        limbeck.plan(frame, schema=found, epsilon=1.0)
    assert found.confirmed("classes", "records").unconfirmed == found.unconfirmed[2:]
    with pytest.raises(BadInput, match="an entry under unconfirmed"):
        found.confirmed("name")
    wider = dataclasses.replace(found, records=500).confirmed()
    assert limbeck.plan(frame, schema=wider, epsilon=1.0).plan.method == "mosaic"


def test_what_a_frame_may_be_drafted_as(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pa.table({"age": [1, 2, 3] * 9, "list": [[1]] * 27, "span": pa.array([1] * 27, pa.duration("s"))})
    found = limbeck.draft(frame, name="a")
    assert not found.has_label and [column.name for column in found.columns] == ["age"]
    assert "left out: column list holds lists" in capsys.readouterr().err
    with pytest.raises(BadInput, match="say name="):
        limbeck.draft(frame)
    with pytest.raises(BadInput, match="no column 'who'"):
        limbeck.draft(frame, name="a", label="who")
    with pytest.raises(BadInput, match="holds no record"):
        limbeck.draft(frame[:0], name="a")
