"""A fixed sample of damaged and hostile files; the slow test takes all 5,000."""

from __future__ import annotations

import json

import fuzz
import pytest


def test_a_sample_of_hostile_files_ends_in_sentences() -> None:
    found = fuzz.summary(list(fuzz.results(range(0, 150))))
    assert found["files"] == 150 and not found["failures"], json.dumps(found["failures"][:3], indent=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_thousand_hostile_files_end_in_sentences() -> None:
    found = fuzz.summary(list(fuzz.results(range(5000))))
    assert found["files"] == 5000 and not found["failures"], json.dumps(found["failures"][:3], indent=1)
