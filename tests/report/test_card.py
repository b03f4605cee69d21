from __future__ import annotations

import dataclasses
import json
import re

import pytest

from limbeck.errors import BadInput, NotAuthentic
from limbeck.privacy.schema import Column, Schema
from limbeck.release.certificate import Certificate
from limbeck.report.card import data_card

LINE = re.compile(r"^(?P<indent> *)(?P<dash>- )?(?:(?P<key>[a-z_]+|'\d+'):(?: (?P<value>.+))?|(?P<item>[^:]+))$")


def front_matter(card: str) -> list[tuple[int, str, str]]:
    """(indent, key, value) of each line; every line must be of the small part of YAML that the card is written in."""
    opening, head, body = card.split("---\n", 2)
    assert opening == "" and body.startswith("\n# ")
    found = []
    for line in head.splitlines():
        match = LINE.match(line)
        assert match, line
        value = match["value"] or match["item"] or ""
        if value.startswith('"'):
            value = json.loads(re.sub(r"\\U0000(....)", r"\\u\1", value))
        else:
            assert re.fullmatch(r"[\w/.<-]*", value), line
        found.append((len(match["indent"]) + len(match["dash"] or ""), match["key"] or "-", value))
    return found


def values(lines: list[tuple[int, str, str]], key: str) -> list[str]:
    return [value for _, name, value in lines if name == key]


def test_front_matter_of_images(certificate: Certificate, gray: Schema) -> None:
    lines = front_matter(data_card(certificate, gray, [5, 5]))
    assert values(lines, "pretty_name") == ["tiny, synthetic (epsilon 0.987654)"]
    assert {"synthetic", "differential-privacy", "image-classification", "n<1K"} <= set(values(lines, "-"))
    assert values(lines, "path") == ["data/train.parquet"]
    assert values(lines, "'0'") + values(lines, "'1'") == ["cat", "dog"]
    assert values(lines, "num_examples") == ["10"]
    assert [indent for indent, key, _ in lines if key == "dataset_info"] == [0]


def test_front_matter_of_tables(certificate: Certificate, people: Schema) -> None:
    lines = front_matter(data_card(certificate, people, [3000, 10]))
    assert {"tabular-classification", "1K<n<10K"} <= set(values(lines, "-"))
    assert values(lines, "name") == ["age", "colour", "size", "height $", "bought: it", "train"]
    assert values(lines, "dtype") == ["int64", "string", "string", "float64", "string"]
    kinds = [Column(name=kind, kind=kind, low="2000-01-01", high="2001-01-01") for kind in ("date", "time")]
    dated = dataclasses.replace(people, columns=tuple(kinds), shape=(2,))
    lines = front_matter(data_card(certificate, dated, [3, 4]))
    assert values(lines, "dtype") == ["date32", "timestamp[ms]", "string"]


def test_no_name_breaks_out_of_the_front_matter_or_the_text(certificate: Certificate, gray: Schema) -> None:
    names = ('a": b\n---\n', "é|<script>\x85\u2028#x")
    card = data_card(certificate, dataclasses.replace(gray, name='t: "x" *y*', classes=names), [1, 2])
    assert tuple(values(front_matter(card), "'0'") + values(front_matter(card), "'1'")) == names
    body = card.split("---\n", 2)[2]
    assert "<script>" not in body and r"é\|&lt;script&gt; \#x | 2 |" in body


def test_the_card_says_what_is_promised_and_how_to_use_it(certificate: Certificate, gray: Schema) -> None:
    card = data_card(certificate, gray, [5, 5])
    for words in (
        "epsilon = 0.987654", "delta = 1e-5", "adding or removing one record", "What is not promised", "set.npz",
        "limbeck verify FOLDER", 'load_dataset("parquet"', "read_parquet", "TensorDataset", "8-bit", "Zheng and Li",
        "`per_class=5`", "| 1 | dog | 5 |",
    ):  # fmt: skip
        assert words in card
    assert "NOT PRIVATE" not in card and "NOT RELEASABLE" not in card


def test_the_card_is_loud_where_nothing_is_promised(
    not_private: Certificate, insecure: Certificate, gray: Schema
) -> None:
    card = data_card(not_private, gray, [5, 5])
    assert "> # NOT PRIVATE" in card and "NOT RELEASABLE" not in card and "differential-privacy" not in card
    assert "no privacy promise" in card
    card = data_card(insecure, gray, [5, 5])
    assert "> # NOT RELEASABLE" in card and "NOT PRIVATE" not in card
    assert "Nothing, since the noise is not secret" in card


def test_a_certificate_without_an_epsilon_promises_nothing(unclear: Certificate, gray: Schema) -> None:
    assert "NOT PRIVATE" in data_card(unclear, gray, [1, 1])
    with pytest.raises(NotAuthentic):
        Certificate.from_dict({})


def test_counts_must_fit(certificate: Certificate, gray: Schema) -> None:
    with pytest.raises(BadInput, match="one count per class"):
        data_card(certificate, gray, [1])
