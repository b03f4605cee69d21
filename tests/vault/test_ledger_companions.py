"""The files beside the ledger: whatever becomes of -wal and -shm, nothing that was confirmed is forgotten."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from children import account, run, start
from limbeck.errors import LedgerFault, RunConflict
from limbeck.vault.ledger import Ledger

LEDGERS = Path(__file__).parent / "ledgers"
PAGE = 4096
COMPANIONS = ("-wal", "-shm")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a budget of 2.0, one open booking of 0.5 under the grant 'first', and one answer."""
    place = tmp_path / "ledger.sqlite"
    with Ledger.open(place) as ledger:
        ledger.set_budget("digits", 2.0, 1e-5)
        book(ledger, "first")
        ledger.store("first", "sum", 0, map_digest="m", payload=b"zero" * 3_000)
    return place


def book(ledger: Ledger, grant: str) -> None:
    ledger.book("digits", plan="{}", method="dm", epsilon=0.5, delta=1e-6, counts={"sum": 5}, grant=grant)


def remove(path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        Path(f"{path}{name}").unlink(missing_ok=True)


@pytest.mark.parametrize("names", [("-wal",), ("-shm",), COMPANIONS])
def test_after_a_kill_the_companions_may_go(path: Path, names: tuple[str, ...]) -> None:
    """Also with a process that has the ledger open meanwhile: otherwise the last one to close would merge the files."""
    code, _, errors = run(
        "ledger = Ledger.open(path); other = Ledger.open(path)\n"
        "ledger.set_budget('digits', 3.0, 1e-5); book(ledger)\n"
        "ledger.store('first', 'sum', 1, map_digest='m', payload=b'one' * 3_000); die()",
        path,
    )
    assert code == -signal.SIGKILL, errors
    remove(path, names)
    with Ledger.open(path) as ledger:
        assert (account(ledger).spent_epsilon, account(ledger).epsilon) == (1.0, 3.0)
        assert ledger.store("first", "sum", 1, map_digest="m", payload=b"second") == b"one" * 3_000


def test_killed_before_a_step_is_confirmed_it_is_there_or_it_is_not(path: Path) -> None:
    code, _, errors = run("ledger = Ledger.open(path); die_before(ledger, 'PRAGMA wal_checkpoint'); book(ledger)", path)
    assert code == -signal.SIGKILL, errors
    assert Path(f"{path}-wal").stat().st_size > 0
    copy = path.with_name("copy.sqlite")
    shutil.copy(path, copy)
    with Ledger.open(copy) as ledger:
        assert account(ledger).spent_epsilon == 0.5  # nobody was told that it was booked, and no record was read
    with Ledger.open(path) as ledger:
        assert account(ledger).spent_epsilon == 1.0
        assert (
            Path(f"{path}-wal").stat().st_size == 0
        )  # from here on it is confirmed, so it stands in the ledger itself


def test_killed_at_any_moment_and_its_companions_lost(tmp_path: Path) -> None:
    """Two processes at work, killed at a random moment: whatever they were told is there, or the damage is reported."""
    draw = random.Random(8)
    for number in range(5):
        path = tmp_path / f"{number}.sqlite"
        with Ledger.open(path) as ledger:
            ledger.set_budget("digits", 1e6, 0.5)
        script = "ledger = Ledger.open(path)\nwhile True: print(book(ledger), flush=True)"
        children = [start(script, path) for _ in range(2)]
        told = [child.stdout.readline() for child in children if child.stdout is not None]
        time.sleep(draw.uniform(0.0, 0.1))
        for child in children:
            child.kill()
        for child in children:
            told += child.communicate(timeout=60)[0].splitlines()
        remove(path, COMPANIONS)
        with contextlib.suppress(LedgerFault), Ledger.open(path) as ledger:
            booked = {booking.grant for booking in account(ledger).bookings}
            assert booked >= {line.strip() for line in told if len(line.strip()) == 32}


STEPS: dict[str, Callable[[Ledger], object]] = {
    "budget": lambda ledger: ledger.set_budget("digits", 3.0, 1e-5),
    "booking": lambda ledger: book(ledger, "second"),
    "answer": lambda ledger: ledger.store("first", "sum", 7, map_digest="m", payload=bytes(300)),
    "long answer": lambda ledger: ledger.store("first", "sum", 7, map_digest="m", payload=bytes(9_000)),
    "forgetting": lambda ledger: ledger.forget("first", "sum", 6),
    "finish": lambda ledger: ledger.finish("first"),
    "void": lambda ledger: ledger.void("third"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_reached_the_ledger_in_part_is_noticed(tmp_path: Path, step: str) -> None:
    """Killed while a step is brought into the ledger, and its -wal lost: some pages are new, some old, in any mixture."""
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 2.0, 1e-5)
        for grant in ("first", "third"):
            ledger.book("digits", plan="{}", method="dm", epsilon=0.5, delta=1e-6, counts={"sum": 9}, grant=grant)
        for index in range(6):
            ledger.store("first", "sum", index, map_digest="m", payload=bytes([index]) * 700)
        before, old = path.read_bytes(), said(ledger)
        STEPS[step](ledger)
        after, new = path.read_bytes(), said(ledger)
    pages = max(len(before), len(after)) // PAGE
    changed = [at for at in range(pages) if before[at * PAGE :][:PAGE] != after[at * PAGE :][:PAGE]]
    draw = random.Random(11)
    chosen = list(itertools.product((False, True), repeat=len(changed)))
    for mixture in chosen if len(chosen) <= 128 else draw.sample(chosen, 128):
        content = bytearray(before.ljust(len(after), b"\0"))
        for at, is_new in zip(changed, mixture, strict=True):
            if is_new:
                content[at * PAGE : (at + 1) * PAGE] = after[at * PAGE :][:PAGE]
        path.write_bytes(content)
        try:
            with Ledger.open(path) as ledger:
                found = said(ledger)
        except LedgerFault:
            continue
        finally:
            remove(path, COMPANIONS)
        # A finished booking may still hold payloads, or an open one have lost them: spent and drawn are what they were.
        assert found[:2] in (old[:2], new[:2]) and all(kept in (None, *old[2], *new[2]) for kept in found[2])
        assert all(kept is not None for kept in found[2][: 6 if found == old else 0])


def said(ledger: Ledger) -> tuple[object, dict[str, int], list[bytes | None]]:
    spent = [(found.epsilon, found.spent_epsilon, len(found.bookings)) for found in ledger.accounts()]
    return spent, ledger.drawn("first"), [kept(ledger, index) for index in range(8)]


def kept(ledger: Ledger, index: int) -> bytes | None:
    try:
        found = ledger.fetch("first", "sum", index)
    except RunConflict:
        return None
    return None if found is None else found.payload


def test_a_damaged_companion_of_a_killed_process_forgets_nothing(path: Path) -> None:
    run("ledger = Ledger.open(path); book(ledger); die_before(ledger, 'PRAGMA wal_checkpoint'); book(ledger)", path)
    main, wal = path.read_bytes(), bytearray(Path(f"{path}-wal").read_bytes())
    draw = random.Random(5)
    for _ in range(60):
        flipped = bytearray(wal)
        flipped[draw.randrange(len(wal))] ^= 1 << draw.randrange(8)
        path.write_bytes(main)
        remove(path, COMPANIONS)
        Path(f"{path}-wal").write_bytes(flipped)
        with Ledger.open(path) as ledger:
            assert account(ledger).spent_epsilon in (1.0, 1.5)


@pytest.mark.parametrize("names", [("-wal",), ("-shm",), COMPANIONS, ("",)])
def test_a_process_whose_files_were_taken_away_books_no_more(path: Path, names: tuple[str, ...]) -> None:
    """It no longer shares locks with those that come later, so its bookings would be lost, or theirs."""
    with Ledger.open(path) as ledger:
        for name in names:
            os.rename(f"{path}{name}", f"{path.with_name('away')}{name}")
        if names != ("",):
            run("book(Ledger.open(path)); die()", path)
        with pytest.raises(LedgerFault, match="removed or replaced"):
            book(ledger, "lost")
        with pytest.raises(LedgerFault, match="removed or replaced"):
            ledger.store("first", "sum", 1, map_digest="m", payload=b"x")
    if names != ("",):
        with Ledger.open(path) as ledger:
            assert account(ledger).spent_epsilon == 1.0


def test_a_step_that_cannot_reach_the_ledger_is_not_confirmed(path: Path) -> None:
    """Another program holds on to an older state of the file: the booking waits in -wal, and nobody is told that it is paid."""
    with Ledger.open(path, patience=0.05) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM bookings").fetchone()
        with pytest.raises(LedgerFault, match=r"recorded in .*-wal"):
            book(ledger, "late")
        with pytest.raises(LedgerFault, match=r"recorded in .*-wal"):
            Ledger.open(path, patience=0.05)
        other.execute("COMMIT")
        book(ledger, "late")  # as a run does that tries again: paid once
        assert account(ledger).spent_epsilon == 1.0 and Path(f"{path}-wal").stat().st_size == 0


# Ledgers of earlier versions


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
def test_a_ledger_of_an_earlier_version_opens_reads_and_books(tmp_path: Path, killed: bool) -> None:
    """Made by version 0.1; the killed one has its last booking and answer in the -wal file only."""
    path = tmp_path / "ledger.sqlite"
    shutil.copy(LEDGERS / "format-1.sqlite", path)
    if killed:
        shutil.copy(LEDGERS / "format-1.unmerged-wal", f"{path}-wal")
    with Ledger.open_to_read(path) as reader:
        digits, people = reader.accounts()
    assert (digits.dataset, digits.epsilon, digits.spent_epsilon) == ("digits", 3.0, 2.25 if killed else 1.5)
    assert (people.dataset, people.epsilon, people.spent_epsilon) == ("people", 0.25, 0.25)
    with Ledger.open(path, create=False) as ledger:
        assert Path(f"{path}-wal").stat().st_size == 0
        assert ledger.accounts() == [digits, people]
        assert [ledger.state(grant) for grant in ("finished", "voided", "open", "unset")] == [
            "finished", "void", "open", "open",
        ]  # fmt: skip
        assert ledger.store("open", "sum", 1, map_digest="m", payload=b"second") == bytes([11]) * 3000
        with pytest.raises(RunConflict, match="forgotten"):
            ledger.store("open", "sum", 0, map_digest="m", payload=b"second")
        assert ledger.store("open", "sum", 2, map_digest="m", payload=b"third") == b"third"
        if killed:
            assert ledger.store("late", "sum", 0, map_digest="m", payload=b"second") == b"late" * 500
        book(ledger, "now")
        assert account(ledger).spent_epsilon == digits.spent_epsilon + 0.5
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
    kept = tmp_path / "ledger.sqlite.format-1"
    with closing(sqlite3.connect(kept)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT COUNT(*) FROM bookings").fetchone() == (5 if killed else 4,)
