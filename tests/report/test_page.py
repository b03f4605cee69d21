from __future__ import annotations

import base64
import dataclasses
import math
from html.parser import HTMLParser

import pytest

from limbeck.errors import NotAuthentic
from limbeck.evaluate.evaluation import Evaluation
from limbeck.privacy.queries import ClippedSum, TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.report.page import report_page
from limbeck.report.wording import QueryRow, exact, promise, query_rows

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


def test_the_page_shows_what_was_asked_spent_and_reached(certificate: Certificate, gray: Schema) -> None:
    page = checked(report_page(certificate, gray, PNG, Evaluation.from_dict(EVALUATION)))
    for words in (
        "0.987654", "1e-5", "PLD", "1.2</td>", "this one counts", "93.71 %", "93.00, 94.00", "21.00 %", "tiny/test",
        "groups", "2.4381", "0.1 to 0.2", "11.2", "per_class", "chosen by the tool", "set.npz", "limbeck verify",
        "0.1.0", "Zheng and Li", base64.b64encode(PNG).decode(), "prefers-color-scheme: dark", "@media print",
    ):  # fmt: skip
        assert words in page, words
    assert "NOT PRIVATE" not in page and "NOT RELEASABLE" not in page


def test_no_accuracy_section_without_an_evaluation(certificate: Certificate, people: Schema) -> None:
    page = checked(report_page(certificate, people, PNG, None))
    assert "How well it trains" not in page and "decoded columns" in page


def test_texts_are_escaped(certificate: Certificate, gray: Schema) -> None:
    evil = "<script>alert(1)</script>"
    schema = dataclasses.replace(gray, name=evil, classes=(evil, "b"))
    bad = dataclasses.replace(certificate, method=evil, settings={evil: evil}, versions={evil: evil}, randomness=evil)
    evaluation = {**EVALUATION, "test": evil, "accuracy": {evil: {"mean": None}}}
    page = checked(report_page(bad, schema, PNG, Evaluation.from_dict(evaluation)))
    assert evil not in page and "&lt;script&gt;" in page


def test_the_page_is_loud_where_nothing_is_promised(
    not_private: Certificate, insecure: Certificate, gray: Schema
) -> None:
    page = checked(report_page(not_private, gray, PNG, None))
    assert "NOT PRIVATE" in page and "Differentially private" not in page and "What is not promised" not in page
    page = checked(report_page(insecure, gray, PNG, None))
    assert "NOT RELEASABLE" in page and "NOT PRIVATE" not in page and "Differentially private" not in page


def test_unclear_entries_are_read_against_the_release(unclear: Certificate, gray: Schema) -> None:
    assert "NOT PRIVATE" in checked(report_page(unclear, gray, PNG, Evaluation.from_dict({})))
    assert "NOT PRIVATE" in report_page(dataclasses.replace(unclear, epsilon=-1.0, private=True), gray, PNG, None)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 9.0, 12.0, 800.0])
def test_the_plain_words_never_promise_more_than_epsilon(certificate: Certificate, epsilon: float) -> None:
    text = " ".join(promise(dataclasses.replace(certificate, epsilon=epsilon)))
    assert f"epsilon = {exact(epsilon)} " in text
    assert ("weak promise" in text) == (epsilon > 10)


def test_the_plain_words_are_rounded_up(certificate: Certificate) -> None:
    text = " ".join(promise(dataclasses.replace(certificate, epsilon=1.0)))
    assert "2.72 times" in text and "73.2 %" in text


def test_queries_of_every_form_are_shown_as_far_as_they_go(certificate: Certificate) -> None:
    vote = TeacherVote(label="votes", map="sign", clip=2.0, noise_multiplier=1.5, teachers=4)
    assert query_rows(dataclasses.replace(certificate, queries=(vote,)))[0].rate == "-"
    bare = ClippedSum(label="a", map="identity", clip=math.inf, noise_multiplier=0.0, rate=(1.0,))
    assert query_rows(dataclasses.replace(certificate, queries=(bare,), drawn={"a": 2}))[0] == QueryRow(
        label="a", map="identity", clip="infinity", noise="0", rate="1", count="1", drawn="2"
    )
    with pytest.raises(NotAuthentic):
        Certificate.from_dict({**certificate.to_dict(), "queries": [{"kind": "new"}]})
