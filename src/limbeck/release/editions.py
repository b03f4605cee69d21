"""The two editions of whatever is shown or measured, and the mark that keeps the owner's edition out of a release.

`release` holds nothing that was not paid for. `owner` may hold scores on private records and the records themselves;
nobody has paid for those, so such a file says inside what it is, and no release takes it, whatever it is called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, NotReleasable

RELEASE = "release"
OWNER = "owner"
EDITIONS = (RELEASE, OWNER)
META_NAME = "limbeck-edition"

_EDITION_IN_PAGE = re.compile(rb"<meta[^>]*limbeck-edition[^>]*content\s*=\s*[\"']?(\w+)", re.IGNORECASE)


def checked_edition(edition: str) -> str:
    if edition not in EDITIONS:
        raise BadInput(f"There are the editions {' and '.join(EDITIONS)}, got --edition {edition}.")
    return edition


def page_edition(content: bytes) -> str | None:
    """The edition that a page is marked with; None for a file that is no report of ours."""
    found = _EDITION_IN_PAGE.search(content)
    return found.group(1).decode().lower() if found else None


def is_owner_copy(content: bytes) -> bool:
    """Whether a file is marked as the owner's, as a page or as JSON."""
    if any(found.lower() == OWNER.encode() for found in _EDITION_IN_PAGE.findall(content)):
        return True
    if content.lstrip()[:1] != b"{" or b'"edition"' not in content:
        return False
    try:
        return is_owners(json.loads(content))
    except (ValueError, RecursionError):
        return False


def is_owners(values: Any) -> bool:
    """Whether a JSON object says that it is the owner's."""
    return isinstance(values, Mapping) and values.get("edition") == OWNER


def require_no_owner_copy(files: Iterable[Path]) -> None:
    """Guarantee: returns only if no file is marked as the owner's, under whatever name."""
    for path in files:
        if is_owner_copy(path.read_bytes()):
            raise NotReleasable(
                f"{path.name} is marked as the owner's copy: it may show private records or scores that nobody paid "
                "for, so it is never part of a release. Keep it outside the folder."
            )
