"""A ledger that is only looked at: nothing is made, nothing is written, no writer waits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from limbeck.errors import LedgerFault
from limbeck.vault.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        ledger.set_budget("people", 2.0, 1e-4)
        ledger.book("people", plan="plan", method="ldpdc", epsilon=0.5, delta=1e-5, counts={"a": 1})
    return path


def test_it_shows_accounts_and_grants(path: Path) -> None:
    with Ledger.open_to_read(path) as ledger:
        (account,) = ledger.accounts()
        assert (account.dataset, account.epsilon, account.spent_epsilon) == ("people", 2.0, 0.5)
        assert ledger.grant(account.bookings[0].grant).plan == "plan"


def test_nothing_can_be_written_through_it(path: Path) -> None:
    before = path.read_bytes()
    with Ledger.open_to_read(path) as ledger:
        grant = ledger.accounts()[0].bookings[0].grant
        for write in (
            lambda: ledger.set_budget("people", 3.0, 1e-4),
            lambda: ledger.book("people", plan="p", method="m", epsilon=0.1, delta=1e-6, counts={"a": 1}),
            lambda: ledger.void(grant),
            lambda: ledger.finish(grant),
        ):
            with pytest.raises(LedgerFault):
                write()
    assert path.read_bytes() == before


def test_none_is_made_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(LedgerFault, match="There is no ledger"):
        Ledger.open_to_read(tmp_path / "deep" / "ledger.sqlite")
    assert not (tmp_path / "deep").exists()


def test_a_damaged_one_is_refused_and_left_alone(path: Path) -> None:
    damaged = path.read_bytes()[:5000]
    path.write_bytes(damaged)
    with pytest.raises(LedgerFault):
        Ledger.open_to_read(path)
    assert path.read_bytes() == damaged


def test_a_reader_in_the_middle_of_reading_lets_others_book(path: Path) -> None:
    with Ledger.open_to_read(path) as reader, reader.file.transaction(write=False) as db:
        assert db.execute("SELECT COUNT(*) FROM bookings").fetchone() == (1,)

        def book() -> None:
            with Ledger.open(path, patience=0.0) as writer:
                writer.book("people", plan="p", method="m", epsilon=0.1, delta=1e-6, counts={"a": 1})

        thread = threading.Thread(target=book)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()
        assert db.execute("SELECT COUNT(*) FROM bookings").fetchone() == (1,)  # still the snapshot it began with
    with Ledger.open_to_read(path) as reader:
        assert len(reader.accounts()[0].bookings) == 2
