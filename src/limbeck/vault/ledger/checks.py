"""Checks of a ledger file before anybody relies on it: its kind, its soundness, its guards and its chains."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from limbeck.errors import LedgerFault
from limbeck.vault.ledger.database import Database
from limbeck.vault.ledger.faults import damaged
from limbeck.vault.ledger.splits import split_from_row
from limbeck.vault.ledger.tables import (
    APPLICATION_ID,
    CHAIN_START,
    CHAINED,
    FORMAT_VERSION,
    SCHEMAS,
    TABLES,
    chain_digest,
)


def check_kind(path: Path, reader: sqlite3.Connection) -> int:
    """The format of a ledger. Refuses what is not a ledger, or of a format that is not known.

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
    if version not in SCHEMAS:
        raise LedgerFault(
            f"The ledger {path} has format {version}, but this Limbeck knows formats 1 to {FORMAT_VERSION} only. "
            "Nothing was changed. Use the version of Limbeck that wrote it, or a newer one."
        )
    return int(version)


def check_content(path: Path, reader: sqlite3.Connection, version: int = FORMAT_VERSION) -> None:
    """Guarantee: returns only if the file is sound, its guards are in place and all chains are whole."""
    if not reader.in_transaction:
        reader.execute("BEGIN")  # One snapshot for all checks: other processes may be booking meanwhile.
    # The full check: the quick one does not compare the indexes, by which rows are found, with the tables.
    problems = [str(row[0]) for row in reader.execute("PRAGMA integrity_check(1)")]
    if problems != ["ok"]:
        raise damaged(path, problems[0] if problems else "it cannot be checked")
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        model.executescript(SCHEMAS[version])
        if _shape(model) != _shape(reader):
            raise damaged(path, "its tables or guards were altered")
    if reader.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise damaged(path, "an answer belongs to no booking")
    # SQLite remembers the highest number ever given.
    highest = dict(reader.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    check_rows(lambda what: damaged(path, what), reader, version, lambda table: highest.get(table, 0))


def check_rows(
    fault: Callable[[str], LedgerFault], reader: Database, version: int, highest: Callable[[str], int]
) -> None:
    """The checks that a file and a server have in common, in one snapshot.

    fault: the error that says what is damaged. highest: the highest number that was ever given in a table.
    """
    voided = "SELECT 1 FROM answers JOIN bookings USING (grant_id) WHERE state = 'void' LIMIT 1"
    if reader.execute(voided).fetchone() is not None:
        raise fault("a booking was made void although it was answered")
    unknown = "SELECT number FROM bookings WHERE COALESCE(state, '') NOT IN ('open', 'finished', 'void') LIMIT 1"
    if (found := reader.execute(unknown).fetchone()) is not None:  # the one value that no chain covers
        raise fault(f"the state of booking {found[0]} was altered")
    for table in TABLES[version]:
        _check_chain(fault, reader, table, highest(table))
    if version >= 2:
        _check_splits(fault, reader)
        _check_rules(fault, reader)


def _check_splits(fault: Callable[[str], LedgerFault], reader: Database) -> None:
    rows = "SELECT number, dataset, name, kind, parts, disjoint, secret FROM splits"
    for number, *row in reader.execute(rows).fetchall():
        try:
            split_from_row(row)
        except (ValueError, TypeError, KeyError):
            raise fault(f"row {number} of the splits cannot be read") from None


def _check_rules(fault: Callable[[str], LedgerFault], reader: Database) -> None:
    """A rule belongs to a budget of its own account, and to a booking; otherwise nobody was bound by it."""
    stray = (
        "SELECT rules.number FROM rules LEFT JOIN budgets ON budgets.number = CAST(rules.budget AS INTEGER)"
        " AND budgets.dataset = rules.dataset LEFT JOIN bookings ON bookings.number = CAST(rules.booking AS INTEGER)"
        " WHERE budgets.number IS NULL OR bookings.number IS NULL OR rules.rule NOT IN ('sum', 'renyi')"
        " OR CAST(CAST(rules.alpha AS INTEGER) AS TEXT) <> rules.alpha LIMIT 1"
    )
    if (found := reader.execute(stray).fetchone()) is not None:
        raise fault(f"row {found[0]} of the rules belongs to no budget or no booking")


def _shape(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%' ORDER BY type, name"
    ).fetchall()


def _check_chain(fault: Callable[[str], LedgerFault], reader: Database, table: str, highest: int) -> None:
    previous, count = CHAIN_START, 0
    for *row, digest in reader.execute(f"SELECT {', '.join(CHAINED[table])}, digest FROM {table} ORDER BY number"):
        count += 1
        whole = all(type(value) is str for value in row[1:])  # a flipped type makes bytes of a text
        if not whole or row[0] != count or row[-1] != previous or chain_digest(table, row) != digest:
            raise fault(f"row {count} of the {table} was altered")
        previous = digest
    if highest != count:  # no digest would tell
        raise fault(f"rows are missing at the end of the {table}")
