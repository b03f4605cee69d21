"""In a notebook: certificates, releases and condensers as HTML in which nothing is taken for markup."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frames import SCHEMA as TABLE
from limbeck import Condenser, Schema, load
from limbeck.release.reader import Release
from limbeck.release.shown import certificate_html, montage
from releases import digits_release

X = np.random.default_rng(0).uniform(0, 1, (200, 4)).astype(np.float32)
SMALL: dict[str, Any] = {"method": "ldpdc", "epsilon": None, "per_class": 3, "settings": {"L": 10, "sigma": 2.0}}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.met: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.met.add(tag)
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags_of(text: str) -> set[str]:
    parser = Tags()
    parser.feed(text)
    assert parser.open == []
    return parser.met


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits_release(tmp_path_factory.mktemp("shown"))


def test_a_release_of_pictures_shows_them(release: Path) -> None:
    text = load(release)._repr_html_()  # type: ignore[union-attr]
    assert tags_of(text) == {"table", "tr", "th", "td", "img"} and "data:image/png;base64," in text
    assert "NOT RELEASABLE" not in text and "digits" in text


def test_nothing_of_a_schema_is_markup(release: Path) -> None:
    found = load(release).certificate
    evil = dataclasses.replace(found, dataset="<script>x</script>", method="<b>", releasable=False)
    text = certificate_html(evil)
    assert tags_of(text) == {"p", "strong", "table", "tr", "th", "td"} and "NOT RELEASABLE: its noise" in text
    columns = (dataclasses.replace(TABLE.columns[0], name="<i>"), *TABLE.columns[1:])
    schema = dataclasses.replace(TABLE, columns=columns, classes=("<u>", "b"))
    rows = Release(np.zeros((9, schema.numbers), np.float32), np.zeros(9, np.int64), evil, schema)
    assert tags_of(rows._repr_html_()) == {"p", "strong", "table", "tr", "th", "td", "div"}
    assert "9 synthetic rows; the first 5" in rows._repr_html_()


def test_a_condenser_before_and_after() -> None:
    schema = Schema(name="<b>own", shape=(4,), classes=("a", "b"), records=200, low=0, high=1, augmentation=())
    own = Condenser(**SMALL, schema=schema)
    assert "not fitted yet" in own._repr_html_() and "<b>own" not in own._repr_html_()
    own.fit(X, np.arange(200) % 2)
    bundle = own._repr_mimebundle_()
    assert str(own.release_) in bundle["text/html"] and bundle["text/plain"] == repr(own)
    tags_of(bundle["text/html"])


@pytest.mark.parametrize(("shape", "fits"), [((1, 8, 8), True), ((3, 224, 224), True), ((5, 8, 8), False)])
def test_a_montage_stays_small(shape: tuple[int, int, int], fits: bool) -> None:
    schema = Schema(name="s", shape=shape, classes=("a", "b"), records=100, low=0, high=255)
    found = montage(np.zeros((20, *shape), np.float32), np.arange(20) % 2, schema)
    assert (found is not None) == fits
    assert found is None or found[0].size <= 500_000
