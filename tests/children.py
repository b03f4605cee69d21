"""Processes of their own for tests of ledgers and files: to be killed, or to race."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import limbeck.vault.ledger
from limbeck.vault.ledger import Account, Ledger

SOURCE = Path(limbeck.__file__).parents[1]

# Every child starts with this. `die_before(sql)` kills the process when SQLite is about to run that statement.
PRELUDE = """
import json, os, signal, sys, time
from pathlib import Path
from limbeck.errors import BudgetRefused, LedgerFault
from limbeck.vault.ledger import Ledger

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def die_before(ledger, sql):
    ledger.file.connection.set_trace_callback(lambda text: die() if text.startswith(sql) else None)

def book(ledger, epsilon=0.5, count=1000):
    return ledger.book("digits", plan="{}", method="dm", epsilon=epsilon, delta=1e-6, counts={"sum": count})

path = Path(sys.argv[1])
"""


def start(script: str, *arguments: object, inside: Sequence[str] = ()) -> subprocess.Popen[str]:
    """inside: what to put before the command, so that it runs on another host."""
    return subprocess.Popen(
        [*inside, sys.executable, "-c", PRELUDE + script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )


def run(script: str, *arguments: object) -> tuple[int, str, str]:
    with start(script, *arguments) as child:
        output, errors = child.communicate(timeout=60)
    return child.returncode, output, errors


def account(ledger: Ledger) -> Account:
    found = ledger.account("digits")
    assert found is not None
    return found


WAIT = """
ledger = Ledger.open(path)
print("ready", flush=True)
sys.stdin.readline()
"""


def race(script: str, path: Path, number: int) -> list[str]:
    """Start children, wait until all of them are ready, let them go together, and return what each printed."""
    return race_of([start(WAIT + script, path, name) for name in range(number)])


def race_of(children: Sequence[subprocess.Popen[str]]) -> list[str]:
    """The same with children that were started with WAIT before their script."""
    try:
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        results = [child.communicate(timeout=60) for child in children]
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert [errors for _, errors in results] == [""] * len(children)
    return [output for output, _ in results]
