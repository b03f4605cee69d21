"""What the documents say about the code exists: every file that they name, and every link between them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])
ROOTS = (REPOSITORY, REPOSITORY / "src" / "limbeck", REPOSITORY / "tests", REPOSITORY / "tests" / "privacy")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_the_code_that_a_page_names_is_there(page: Path) -> None:
    if page.name == "CHANGELOG.md":  # speaks of what was, too
        return
    named = re.findall(r"`([\w./-]+\.(?:py|toml|cff|yaml))`", page.read_text(encoding="utf-8"))
    own = {name for name in named if "/" in name or (REPOSITORY / name).exists() or name.endswith(".py")}
    missing = [name for name in own if not any((root / name).exists() for root in ROOTS)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target
