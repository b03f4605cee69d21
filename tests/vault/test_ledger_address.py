"""What names a ledger: a file, or a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from limbeck.errors import BadInput
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import absolute, home_of, may_exist, server_url, shown
from limbeck.vault.ledger.commands import on_ledger
from limbeck.vault.ledger.server_tables import COLUMNS, allowed, statements
from limbeck.vault.ledger.tables import CHAINED

URL = "postgresql://booker@db.example:5433/limbeck?sslmode=verify-full"


def test_an_address_survives_being_a_path() -> None:
    assert server_url(Path(URL)) == URL == shown(Path(URL))
    assert server_url(Path("postgres://db.example/limbeck")) == "postgresql://db.example/limbeck"
    assert absolute(Path(URL)) == Path(URL) and may_exist(Path(URL))
    for file in ("ledger.sqlite", "/books/postgresql", "postgresql.sqlite"):
        assert server_url(Path(file)) is None


def test_a_run_folder_keeps_the_address() -> None:
    request = Request(data=DataReference(data="digits"), options=RunOptions(ledger=URL))
    assert server_url(Path(request.to_dict()["ledger"])) == URL
    assert server_url(Request.from_dict(request.to_dict()).options.ledger_path) == URL


def test_commands_name_the_server() -> None:
    found = on_ledger("limbeck budget set scans --epsilon 1", Path(URL))
    assert found == f"limbeck budget set scans --epsilon 1 --ledger '{URL}'"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret@db.example/x",
        "postgresql://db.example/x?user=me&password=secret",
        "postgres://:secret@h/x",
        "postgresql://db.example/x?sslpassword=secret",
        "postgresql://db.example/x?%70assword=secret",
    ],
)
def test_a_password_has_no_place_in_an_address(address: str) -> None:
    for refused in (Ledger.open, Ledger.open_to_read):
        with pytest.raises(BadInput, match="no password") as error:
            refused(Path(address))
        assert "secret" not in error.value.message


def test_two_servers_have_two_homes() -> None:
    assert home_of(URL) != home_of(URL.replace("db.", "other."))


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(BadInput, match="needs the package psycopg") as error:
        Ledger.open(Path(URL))
    assert error.value.next_command == "pip install 'limbeck[postgres]'"


def test_tables_of_the_server_have_every_column_that_is_chained() -> None:
    for table, columns in CHAINED.items():
        assert set(columns) < set(COLUMNS[table])


def test_who_may_book_is_granted_nothing_that_alters() -> None:
    granted = " ".join(allowed('"booker"'))
    assert not any(
        word in granted for word in ("DELETE", "TRUNCATE", "TRIGGER", "ALL ON", "budgets", "splits", "heads")
    )
    assert "UPDATE (state)" in granted and "UPDATE (payload)" in granted and granted.count("UPDATE") == 2
    assert any("REVOKE ALL ON ALL FUNCTIONS" in statement for statement in statements())
