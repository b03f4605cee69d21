"""Fixtures that put a ledger's tests on a PostgreSQL server in place of a file."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_server import Server, programs, running

FOUND = programs()
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="needs PostgreSQL (Debian: postgresql) and psycopg"),
]
NUMBERS = itertools.count()
# Words of tests that look into the file itself.
OF_THE_FILE = (
    ".connection",
    "settle",
    "path.",
    "default_path",
    "tmp_path",
    "tempfile",
    "chmod",
    "raw(",
    "made(path",
    "sqlite",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    assert FOUND is not None
    with running(FOUND) as found:
        yield found


@pytest.fixture
def path(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return Path(server.make_database(f"book{next(NUMBERS)}"))


def of_both(module: Any) -> dict[str, Any]:
    """The tests of a module that ask the ledger and do not look into its file."""
    found = {
        name: test
        for name, test in vars(module).items()
        if name.startswith("test_")
        and set(inspect.signature(test).parameters) & {"ledger", "path"}
        and not any(word in inspect.getsource(test) for word in OF_THE_FILE)
    }
    assert len(found) >= 8, "hardly a test of the rules is left"
    return found
