"""The range of raw values that a schema declares: said by its owner, never guessed."""

from __future__ import annotations

from limbeck.errors import BadInput

UNSAID = float("nan")  # this very object: whoever gives another NaN is told that it is no range
# What a file means that says nothing of its range: files were written before a schema had to say it.
ABSENT = {"low": 0.0, "high": 255.0}


def filled(name: object, low: float, high: float, has_columns: bool) -> dict[str, float]:
    """The ends that were left unsaid. Rows of a table are encoded by their columns, to -1 ... 1.

    Guarantee: no other range is guessed. Under one that does not fit all records look the same, and nothing would tell.
    """
    unsaid = [entry for entry, value in (("low", low), ("high", high)) if value is UNSAID]
    if unsaid and not has_columns:
        raise BadInput(
            f"Schema(...) of {str(name)[:80]!r} needs {' and '.join(f'{entry}=' for entry in unsaid)}: the public range of raw "
            "values has no default any more. Give low=0, high=255 for pictures of 8 bits, meant before version "
            "0.6.0; low=0, high=1 for arrays in [0, 1]."
        )
    return {entry: -1.0 if entry == "low" else 1.0 for entry in unsaid}
