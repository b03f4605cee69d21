from __future__ import annotations

from pathlib import Path

import pytest

from limbeck.errors import BadInput, NotReleasable
from limbeck.release.editions import checked_edition, is_owner_copy, page_edition, require_no_owner_copy

OWNERS = [
    b'<html><meta name="limbeck-edition" content="owner">',
    b"<META NAME='limbeck-edition' CONTENT='Owner'>",
    b'<meta name="limbeck-edition" content="release"> <meta name="limbeck-edition" content="owner">',
    b"\xff\xfe binary before <meta name=limbeck-edition content=owner>",
    b' {"a": [1], "edition": "owner"}',
]
OTHERS = [
    b"",
    b"{",
    b"\x93NUMPY",
    b'<meta name="limbeck-edition" content="release">',
    b'<meta name="edition" content="owner">',
    b'{"edition": "release"}',
    b'{"class": {"edition": "owner"}}',
    b'["edition", "owner"]',
    b"the owner's edition is marked limbeck-edition owner",
]


@pytest.mark.parametrize("content", OWNERS)
def test_the_owners_copy_is_known_by_its_content(content: bytes, tmp_path: Path) -> None:
    assert is_owner_copy(content)
    (tmp_path / "harmless.txt").write_bytes(content)
    with pytest.raises(NotReleasable, match=r"harmless\.txt is marked as the owner's copy"):
        require_no_owner_copy([tmp_path / "harmless.txt"])


@pytest.mark.parametrize("content", OTHERS)
def test_nothing_else_is_taken_for_it(content: bytes, tmp_path: Path) -> None:
    assert not is_owner_copy(content)
    (tmp_path / "file").write_bytes(content)
    require_no_owner_copy([tmp_path / "file"])


def test_editions() -> None:
    assert page_edition(OWNERS[0]) == "owner" and page_edition(OTHERS[3]) == "release" and page_edition(b"text") is None
    assert checked_edition("owner") == "owner"
    with pytest.raises(BadInput, match="release and owner, got --edition both"):
        checked_edition("both")
