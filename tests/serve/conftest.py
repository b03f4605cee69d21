from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limbeck.serve.access import Access
from limbeck.serve.server import Server, start
from releases import copied, digits_release


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits_release(tmp_path_factory.mktemp("served"))


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """Two releases of the digits, with scores of one beside them."""
    root = tmp_path / "runs"
    for name in ("first", "second one"):
        copied(made, root / name)
    return root


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is to end notices it at once."""
    monkeypatch.setattr("limbeck.serve.server.SECONDS_TO_NOTICE_THE_END", 0.005)


@pytest.fixture
def serving(made: Path) -> Iterator[Callable[..., Server]]:
    """Start servers that end with the test."""
    started = []

    def begin(runs: Path, ledger: Path | None = made.parent / "ledger.sqlite", token: str | None = None) -> Server:
        context = start(runs, ledger, "127.0.0.1", 0, Access(loopback=True, token=token))
        started.append(context)
        return context.__enter__()

    yield begin
    for context in started:
        context.__exit__(None, None, None)


@pytest.fixture
def server(runs: Path, serving: Callable[..., Server]) -> Server:
    return serving(runs)
