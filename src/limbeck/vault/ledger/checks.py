"""Checks of a ledger file before anybody relies on it: its kind, its soundness, its guards and its chains."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from limbeck.errors import LedgerFault
from limbeck.vault.ledger.faults import damaged
from limbeck.vault.ledger.tables import APPLICATION_ID, CHAIN_START, CHAINED, FORMAT_VERSION, SCHEMA, chain_digest


def check_kind(path: Path, reader: sqlite3.Connection) -> None:
    """Refuse what is not a ledger, or not of this format.

    The file is never read with open(): closing it would drop the locks of every other connection of this process, and
    unlocked writers can destroy the file.
    """
    if path.stat().st_size == 0:
        raise damaged(path, "it is empty")  # To SQLite an empty file is a fresh one, with nothing spent.
    (application,) = reader.execute("PRAGMA application_id").fetchone()
    (version,) = reader.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise LedgerFault(
            f"The file {path} is not a ledger, but a database of another program or damaged. Nothing was changed. "
            "Point LIMBECK_LEDGER to the ledger, or restore it from a backup that is as new as the last run."
        )
    if version != FORMAT_VERSION:
        raise LedgerFault(
            f"The ledger {path} has format {version}, but this Limbeck knows format {FORMAT_VERSION} only. "
            "Nothing was changed. Use the version of Limbeck that wrote it, or a newer one."
        )


def check_content(path: Path, reader: sqlite3.Connection) -> None:
    """Guarantee: returns only if the file is sound, its guards are in place and both chains are whole."""
    reader.execute("BEGIN")  # One snapshot for all checks: other processes may be booking meanwhile.
    # The full check: the quick one does not compare the indexes, by which rows are found, with the tables.
    problems = [str(row[0]) for row in reader.execute("PRAGMA integrity_check(1)")]
    if problems != ["ok"]:
        raise damaged(path, problems[0] if problems else "it cannot be checked")
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        model.executescript(SCHEMA)
        if _shape(model) != _shape(reader):
            raise damaged(path, "its tables or guards were altered")
    if reader.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise damaged(path, "an answer belongs to no booking")
    voided = "SELECT 1 FROM answers JOIN bookings USING (grant_id) WHERE state = 'void' LIMIT 1"
    if reader.execute(voided).fetchone() is not None:
        raise damaged(path, "a booking was made void although it was answered")
    unknown = "SELECT number FROM bookings WHERE COALESCE(state, '') NOT IN ('open', 'finished', 'void') LIMIT 1"
    if (found := reader.execute(unknown).fetchone()) is not None:  # the one value that no chain covers
        raise damaged(path, f"the state of booking {found[0]} was altered")
    for table in CHAINED:
        _check_chain(path, reader, table)


def _shape(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name"
    ).fetchall()


def _check_chain(path: Path, reader: sqlite3.Connection, table: str) -> None:
    previous, count = CHAIN_START, 0
    for *row, digest in reader.execute(f"SELECT {', '.join(CHAINED[table])}, digest FROM {table} ORDER BY number"):
        count += 1
        whole = all(type(value) is str for value in row[1:])  # a flipped type makes bytes of a text
        if not whole or row[0] != count or row[-1] != previous or chain_digest(table, row) != digest:
            raise damaged(path, f"row {count} of the {table} was altered")
        previous = digest
    # SQLite remembers the highest number ever given, so rows missing at the end are noticed too.
    highest = reader.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    if (highest[0] if highest else 0) != count:
        raise damaged(path, f"rows are missing at the end of the {table}")
