"""The report in a real browser: no complaint, no sideways scrolling, light, dark and on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser
from limbeck.data import open_source
from limbeck.report.gather import Sources, gather
from limbeck.report.page import render
from releases import digits_release

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]
POINTS = (
    '{"edition": "release", "points": [{"epsilon": 0.5, "accuracy": 40}, {"epsilon": 1, "accuracy": 60, "std": 3}]}'
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("pages")
    run = digits_release(root)
    (root / "curve.json").write_text(POINTS)
    released = Sources(run=run, curve=root / "curve.json", history=True, ledger=root / "ledger.sqlite")
    owners = Sources(run=run, edition="owner", real=open_source("digits"), ledger=root / "ledger.sqlite")
    for name, sources in (("release", released), ("owner", owners)):
        (root / f"{name}.html").write_text(render(gather(sources)))
    return {name: root / f"{name}.html" for name in ("release", "owner")}


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as found:
        yield found


@pytest.mark.parametrize("edition", ["release", "owner"])
def test_it_opens_without_a_complaint_at_every_size(browser: Browser, pages: dict[str, Path], edition: str) -> None:
    for width, dark in ((1280, False), (390, False), (360, True), (800, True)):
        browser.media(dark=dark)
        browser.size(width, 900, phone=width < 500)
        browser.open(pages[edition].as_uri())
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.images.length > 9 && [...document.images].every(i => i.naturalWidth > 0)")
        paper = browser.run("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == dark
    assert browser.complaints == []
    assert browser.run("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length") == 0


def test_text_is_readable_in_light_and_dark(browser: Browser, pages: dict[str, Path]) -> None:
    """The contrast of soft text on its paper, as WCAG counts it, is at least 4.5."""
    script = """(() => {
      const light = c => { const v = c.match(/\\d+/g).slice(0, 3).map(x => x / 255)
        .map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126*v[0] + .7152*v[1] + .0722*v[2]; };
      const paper = light(getComputedStyle(document.body).backgroundColor);
      return Math.min(...[...document.querySelectorAll('p, dt, .note, th, td, li, figcaption, .above')].map(e => {
        const ink = light(getComputedStyle(e).color); return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05); }));
    })()"""
    for dark in (False, True):
        browser.media(dark=dark)
        browser.open(pages["release"].as_uri())
        assert browser.run(script) >= 4.5


def test_on_paper_every_page_of_the_owners_copy_is_stamped(browser: Browser, pages: dict[str, Path]) -> None:
    import shutil
    import subprocess

    for edition in ("release", "owner"):
        browser.open(pages[edition].as_uri())
        printed = browser.pdf()
        assert printed.startswith(b"%PDF") and browser.complaints == []
        if shutil.which("pdftotext") is None:
            continue
        text = subprocess.run(
            ["pdftotext", "-", "-"], input=printed, stdout=subprocess.PIPE, check=True
        ).stdout.decode()
        sheets = text.split("\f")[:-1]
        assert len(sheets) > 2
        stamped = ["copy: do not share" in " ".join(sheet.split()).lower() for sheet in sheets]
        assert all(stamped) if edition == "owner" else not any(stamped)
