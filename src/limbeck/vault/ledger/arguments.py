"""What a caller may hand to the ledger: names, texts and counts, checked before anything is written."""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Mapping

from limbeck.errors import BadInput


def checked_text(name: str, value: str) -> str:
    try:
        value.encode()
    except (AttributeError, UnicodeEncodeError):
        raise BadInput(f"Expected {name}={value!r} to be text.") from None
    return value


def checked_dataset(name: str) -> str:
    # One spelling for names that look the same; otherwise they would be two budgets for one data set.
    name = unicodedata.normalize("NFC", checked_text("dataset", name))
    if not name or name != name.strip() or not name.isprintable() or name.startswith("-"):
        raise BadInput(f"Expected dataset={name!r} to be a printable name that does not start with a dash or a space.")
    return name


def checked_counts(counts: Mapping[str, int]) -> dict[str, int]:
    result = {checked_text("label", label): operator.index(count) for label, count in counts.items()}
    for label, count in result.items():
        if not 0 <= count < 2**53:
            raise BadInput(f"Expected counts[{label!r}]={count} to be a whole number from 0 on.")
    return result
