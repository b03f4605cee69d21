"""What all tests share: a ledger and a cache of their own, and the command line inside this process."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Read when PyTorch is loaded, which is later, and by every process that a test starts. Tests run side by side, so one thread
# each; where a test asks for more, threads that wait must sleep: spinning takes the core from those that compute.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Thousands of small files that are each forced onto the disk: in memory, where the system has room for them.
IN_MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the garbage collector need not look through it again for every test."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


@pytest.fixture(scope="session", autouse=True)
def shared_prices(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Workers of one session share the dearest prices: half a second each, and most are asked for by both."""
    if not hasattr(request.config, "workerinput"):
        return
    from limbeck.privacy import accountants

    compute = accountants._on_grid
    folder = tmp_path_factory.getbasetemp().parent / "prices"  # the folder of all workers of this session
    folder.mkdir(exist_ok=True)

    def shared(*question: Any) -> float:
        path = folder / hashlib.sha256(repr(question).encode()).hexdigest()
        if not path.exists():
            new = path.with_suffix(f".{os.getpid()}")
            new.write_text(repr(compute(*question)))
            new.replace(path)
        return float(path.read_text())

    accountants._on_grid = shared


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees or changes the ledger, the key or the data sets of the person who runs it."""
    home = tmp_path_factory.mktemp("home")  # beside the test's own folder, which stays empty
    monkeypatch.setenv("LIMBECK_LEDGER", str(home / "ledger.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("LIMBECK_CACHE", str(home / "cache"))
    monkeypatch.setenv("LIMBECK_OFFLINE", "1")
    monkeypatch.setenv("LIMBECK_RELEASES", str(home / "releases"))
    for name in ("LIMBECK_DATA", "LIMBECK_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return home


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on standard output; fails if anything else is there."""
        assert self.out.count("\n") == 1, self.out
        values = json.loads(self.out)
        assert isinstance(values, dict)
        return values


Cli = Callable[..., Ended]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run `limbeck ARGUMENTS` in this process."""
    from limbeck.cli.main import main

    return command(main, monkeypatch, capsys)


def command(main: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["limbeck", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, shown.out, shown.err)

    return run


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run `python -m benchmarks.papers ARGUMENTS` in this process."""
    from benchmarks.papers.command import app

    from limbeck.cli.main import run

    return command(lambda: run(app), monkeypatch, capsys)
