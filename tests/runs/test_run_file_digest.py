"""A run file is taken up as it was written, and in no other state."""

from __future__ import annotations

import json

import pytest

from limbeck.runs.run_file import DIGEST, decoded, encoded

VALUES = {"grant": "0" * 32, "threads": 2, "plan": {"queries": [{"noise_multiplier": 4.0}]}, "booked": True}


def test_what_was_written_comes_back() -> None:
    assert decoded(encoded(VALUES)) == VALUES
    # Of a version without digests.
    assert decoded(json.dumps(VALUES).encode()) == VALUES


@pytest.mark.parametrize(
    ("before", "after"), [("4.0", "3.0"), ('"threads": 2', '"threads": 3'), ("true", "false"), ('"0000', '"0001')]
)
def test_a_changed_value_does_not_fit_the_digest(before: str, after: str) -> None:
    content = encoded(VALUES).decode()
    assert before in content
    with pytest.raises(ValueError, match=DIGEST):
        decoded(content.replace(before, after, 1).encode())
