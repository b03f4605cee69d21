"""The site builds without a warning, fetches nothing from elsewhere, and has its equations as MathML."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?(https?:)?//|@import|url\(["']?(https?:)?//"""
)
LINKED = re.compile(
    r"""<link\b[^>]*\brel=["']?(?:stylesheet|preconnect|preload|icon)["']?[^>]*\bhref=["']?(https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for needed in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(needed, reason="make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return folder


@pytest.mark.slow
def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not FETCHED.search(text) and not LINKED.search(text), page


@pytest.mark.slow
def test_equations_are_mathml_and_prices_are_not(site: Path) -> None:
    for name in ("theory.html", *(f"methods/{name}.html" for name in ("elixir", "mosaic", "dpsgd", "aim", "ceilings"))):
        text = (site / name).read_text(encoding="utf-8")
        assert "<math" in text and "arithmatex" not in text, name
    assert "<math" not in (site / "data.html").read_text(encoding="utf-8")  # which speaks of dollars


@pytest.mark.slow
def test_search_knows_the_pages(site: Path) -> None:
    found = {
        entry["location"].partition("#")[0]
        for entry in json.loads((site / "search" / "search_index.json").read_text())["docs"]
    }
    assert {
        "theory.html",
        "choose.html",
        "for-lawyers.html",
        "methods/elixir.html",
        "api.html",
        "CHANGELOG.html",
    } <= found


def test_what_counts_as_fetched() -> None:
    assert FETCHED.search('<script src="https://example.org/a.js">') and FETCHED.search("src: url(//fonts.example/x)")
    assert LINKED.search('<link rel="stylesheet" href="https://example.org/a.css">')
    assert not LINKED.search('<link rel="canonical" href="https://example.org/">') and not FETCHED.search(
        '<img src="a.png">'
    )
