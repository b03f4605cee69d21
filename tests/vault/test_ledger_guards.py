"""Guards of the ledger that other guards stand behind: each holds by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limbeck.errors import LedgerFault, RunConflict
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.rows import append_booking
from limbeck.vault.ledger.tables import CHAINED, chain_digest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        opened.set_budget("digits", 3.0, 1e-3)
        yield opened


def book(ledger: Ledger, grant: str | None = None, plan: str = "{}", dataset: str = "digits") -> str:
    return ledger.book(dataset, plan=plan, method="dm", epsilon=1.0, delta=1e-5, counts={"sum": 3}, grant=grant)


def spent(ledger: Ledger) -> float:
    account = ledger.account("digits")
    assert account is not None
    return account.spent_epsilon


@pytest.mark.parametrize("end", [None, "void", "finish"])
def test_the_same_grant_is_paid_once_and_for_its_own_plan_only(ledger: Ledger, end: str | None) -> None:
    """Taken up after a crash it is free; with another plan, for another set, or after its end it is refused."""
    assert book(ledger, "g") == book(ledger, "g") == "g"
    assert spent(ledger) == 1.0
    for plan, dataset in (("{ }", "digits"), ("{}", "others")):
        with pytest.raises(RunConflict, match="booked before"):
            book(ledger, "g", plan, dataset)
    if end is not None:
        getattr(ledger, end)("g")
        with pytest.raises(RunConflict, match="with an end"):
            book(ledger, "g")
    assert spent(ledger) == (0.0 if end == "void" else 1.0)
    assert book(ledger) != book(ledger)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("epsilon = '0.1' WHERE number = 1", "row 2 of the bookings was altered"),
        ("number = 9 WHERE number = 3", "row 3 of the bookings was altered"),
    ],
)
def test_a_row_that_is_replaced_with_a_digest_of_its_own_is_found(
    ledger: Ledger, path: Path, change: str, what: str
) -> None:
    """Somebody lowers a spend or skips numbers, and computes that row's digest anew. The row after it still holds the old one,
    and numbers have no gaps."""
    for _ in range(3):
        book(ledger)
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"UPDATE bookings SET {change}")
        for row in connection.execute(f"SELECT {', '.join(CHAINED['bookings'])} FROM bookings").fetchall():
            digest = chain_digest("bookings", row)
            connection.execute("UPDATE bookings SET digest = ? WHERE number = ?", (digest, row[0]))
        for _, sql in guards:
            connection.execute(sql)
    with pytest.raises(LedgerFault, match=what):
        Ledger.open(path)


@pytest.mark.parametrize(
    ("table", "change", "what"),
    [
        ("rules", "budget = '2'", "belongs to no budget"), ("rules", "booking = '9'", "belongs to no budget"),
        ("rules", "dataset = 'other'", "belongs to no budget"), ("rules", "alpha = 'x'", "belongs to no budget"),
        ("splits", "parts = 'x'", "cannot be read"), ("splits", "secret = 'ab'", "cannot be read"),
    ],
)  # fmt: skip
def test_a_last_row_with_a_digest_of_its_own_still_has_to_make_sense(
    ledger: Ledger, path: Path, table: str, change: str, what: str
) -> None:
    book(ledger)
    ledger.declare_split("digits", "halves", parts=2)
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(f"UPDATE {table} SET {change}")
        (row,) = connection.execute(f"SELECT {', '.join(CHAINED[table])} FROM {table}").fetchall()
        connection.execute(f"UPDATE {table} SET digest = ?", (chain_digest(table, row),))
        for _, sql in guards:
            connection.execute(sql)
    with pytest.raises(LedgerFault, match=what):
        Ledger.open(path)


def test_a_step_that_fails_leaves_nothing(ledger: Ledger, path: Path) -> None:
    class Interrupted(Exception):
        pass

    with pytest.raises(Interrupted), ledger.file.transaction(write=True) as db:
        append_booking(db, "digits", "{}", "dm", 1.0, 1e-5, {"sum": 1}, "half")
        raise Interrupted
    assert spent(ledger) == 0.0 and ledger.state("half") is None
    with Ledger.open(path) as other:
        assert other.state("half") is None
    book(ledger)
    assert spent(ledger) == 1.0


def test_what_is_finished_stays_spent_and_what_is_void_does_not(ledger: Ledger) -> None:
    finished, given_back = book(ledger), book(ledger)
    ledger.finish(finished)
    ledger.void(given_back)
    assert spent(ledger) == 1.0
    assert [ledger.grant(grant).state for grant in (finished, given_back)] == ["finished", "void"]


def test_a_budget_is_the_newest_one(ledger: Ledger, path: Path) -> None:
    ledger.set_budget("digits", 2.0, 1e-4)
    with Ledger.open(path) as other:
        account = other.account("digits")
    assert account is not None and (account.epsilon, account.delta) == (2.0, 1e-4)


def test_spent_is_never_shown_below_the_sum(ledger: Ledger) -> None:
    """1.0 and 1e-20 have no float between them: what is shown lies above, what remains below."""
    for epsilon in (1.0, 1e-20):
        ledger.book("digits", plan="{}", method="dm", epsilon=epsilon, delta=1e-5, counts={"sum": 1})
    account = ledger.account("digits")
    assert account is not None and account.spent_epsilon > 1.0 and account.remaining_epsilon < 2.0
