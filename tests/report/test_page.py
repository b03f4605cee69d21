from __future__ import annotations

import base64
import dataclasses
from html.parser import HTMLParser
from typing import Any

import pytest

from limbeck.evaluate.evaluation import Evaluation
from limbeck.privacy.schema import Schema
from limbeck.report.page import report_page
from limbeck.report.wording import exact, promise, query_rows

PNG = b"\x89PNG not really"
EVALUATION = {
    "test": "tiny/test", "preset": "paper", "labels": "hard", "repeats": 2, "majority_rate": 21.0,
    "accuracy": {"convnet": {"mean": 93.712, "std": 0.4, "runs": [93.0, 94.0]}},
}  # fmt: skip


class Tags(HTMLParser):
    """Opened tags must close, and nothing is fetched from anywhere."""

    VOID = ("meta", "img", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "iframe", "object"), tag
        for name, value in attrs:
            assert name not in ("src", "href", "srcset") or (value or "").startswith("data:image/png;base64,")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(page: str) -> str:
    parser = Tags()
    parser.feed(page)
    assert not parser.open
    for word in ("http:", "https:", "url(", "@import"):
        assert word not in page
    return page


def test_the_page_shows_what_was_asked_spent_and_reached(certificate: dict[str, Any], gray: Schema) -> None:
    page = checked(report_page(certificate, gray, PNG, Evaluation.from_dict(EVALUATION)))
    for words in (
        "0.987654", "1e-5", "PLD", "1.2</td>", "this one counts", "93.71 %", "93.00, 94.00", "21.00 %", "tiny/test",
        "groups", "2.4381", "0.1 to 0.2", "11.2", "per_class", "chosen by the tool", "set.npz", "limbeck verify",
        "0.1.0", "Zheng and Li", base64.b64encode(PNG).decode(), "prefers-color-scheme: dark", "@media print",
    ):  # fmt: skip
        assert words in page, words
    assert "NOT PRIVATE" not in page and "NOT RELEASABLE" not in page


def test_no_accuracy_section_without_an_evaluation(certificate: dict[str, Any], people: Schema) -> None:
    page = checked(report_page(certificate, people, PNG, None))
    assert "How well it trains" not in page and "decoded columns" in page


def test_texts_are_escaped(certificate: dict[str, Any], gray: Schema) -> None:
    evil = "<script>alert(1)</script>"
    schema = dataclasses.replace(gray, name=evil, classes=(evil, "b"))
    bad = {**certificate, "method": evil, "settings": {evil: evil}, "versions": {evil: evil}, "generator": evil}
    evaluation = {**EVALUATION, "test": evil, "accuracy": {evil: {"mean": None}}}
    page = checked(report_page(bad, schema, PNG, Evaluation.from_dict(evaluation)))
    assert evil not in page and "&lt;script&gt;" in page


def test_the_page_is_loud_where_nothing_is_promised(
    not_private: dict[str, Any], insecure: dict[str, Any], gray: Schema
) -> None:
    page = checked(report_page(not_private, gray, PNG, None))
    assert "NOT PRIVATE" in page and "Differentially private" not in page and "What is not promised" not in page
    page = checked(report_page(insecure, gray, PNG, None))
    assert "NOT RELEASABLE" in page and "NOT PRIVATE" not in page and "Differentially private" not in page


def test_missing_entries_are_read_against_the_release(gray: Schema) -> None:
    assert "NOT PRIVATE" in checked(report_page({}, gray, PNG, Evaluation.from_dict({})))
    assert "NOT PRIVATE" in report_page({"epsilon": float("nan"), "private": True}, gray, PNG, None)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 9.0, 12.0, 800.0])
def test_the_plain_words_never_promise_more_than_epsilon(certificate: dict[str, Any], epsilon: float) -> None:
    text = " ".join(promise({**certificate, "epsilon": epsilon}))
    assert f"epsilon = {exact(epsilon)} " in text
    assert ("weak promise" in text) == (epsilon > 10)


def test_the_plain_words_are_rounded_up(certificate: dict[str, Any]) -> None:
    text = " ".join(promise({**certificate, "epsilon": 1.0}))
    assert "2.72 times" in text and "73.2 %" in text


def test_queries_of_another_form_are_shown_as_far_as_they_go() -> None:
    assert query_rows({"queries": [{"kind": "new"}]})[0]["rate"] == "-"
    assert query_rows({"queries": [{"label": "a", "rate": [1.0], "clip": "infinity"}], "drawn": {"a": 2}})[0] == {
        "label": "a", "map": "-", "clip": "infinity", "noise": "-", "rate": "1", "count": "-", "drawn": "2",
    }  # fmt: skip
