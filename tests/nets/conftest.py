"""Tiny networks gain nothing from threads, and on a busy machine the threads wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limbeck.runs.execution import computing_with


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with computing_with(1):
        yield
