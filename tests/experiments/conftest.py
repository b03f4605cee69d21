"""What sweeps and comparisons are tested with: a budget for many small sets, and a source that nobody may read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from limbeck.data.source import DataSource

Cli = Callable[..., Any]


@pytest.fixture
def budget(cli: Cli) -> None:
    assert cli("budget", "set", "digits", "--epsilon", 100, "--delta", 1e-3).code == 0


@pytest.fixture
def never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: DataSource) -> None:
        raise AssertionError("a record was read")

    monkeypatch.setattr(DataSource, "load", load)
