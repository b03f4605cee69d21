"""From format 1 to format 2: two new tables, and the stages of earlier versions named as what they are, parts.

One transaction inside the file, while no other process has the ledger open: a kill leaves the old file or the new one, whole.
Before it a copy is put beside the ledger, checked and on the disk. Nothing that was there is changed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import tempfile
from pathlib import Path

from limbeck.errors import LedgerFault
from limbeck.files import alone_in, flush, flush_folder
from limbeck.vault.ledger.checks import check_content, check_kind
from limbeck.vault.ledger.rows import append_split
from limbeck.vault.ledger.settling import connect, settle
from limbeck.vault.ledger.splits import earlier_stages
from limbeck.vault.ledger.tables import ADDED_SCHEMA, FORMAT_VERSION

OLD = 1


def migrate(path: Path, patience: float) -> None:
    """Bring a checked ledger of format 1 up to date. Nothing happens if another process has just done it.

    Guarantee: what it knew is the same before and after, and an untouched copy of the old file stays beside it. A process of
    an earlier version that has the ledger open cannot go on without the tree of accounts: it has to end first.
    """
    # SQLite's own locks do not do: of several processes that wait for sole use, each keeps the others from it.
    with contextlib.ExitStack() as turn:
        try:
            turn.enter_context(alone_in(path.parent, patience))
        except TimeoutError:
            raise _in_use(path) from None
        with contextlib.closing(connect(path, "ro", patience)) as reader:
            if check_kind(path, reader) != OLD:
                return  # the one before us has done it, and may have it open for hours
        with contextlib.closing(connect(path, "rw", patience)) as connection:
            if not _have_alone(connection):
                raise _in_use(path)
            _migrate_alone(path, connection, patience)


def _in_use(path: Path) -> LedgerFault:
    return LedgerFault(
        f"The ledger {path} is of an earlier version and has to be brought up to date, but another process is using "
        "it. Nothing was changed. Wait until that process has finished and run the same command again."
    )


def _have_alone(connection: sqlite3.Connection) -> bool:
    """Guarantee: if True, no other process has the ledger open until this connection is closed."""
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        # A copy that was put back has no write-ahead file, and without one a reader holds a share only.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("SELECT COUNT(*) FROM bookings").fetchone()
    except sqlite3.OperationalError as error:
        if (getattr(error, "sqlite_errorcode", 0) & 0xFF) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _migrate_alone(path: Path, connection: sqlite3.Connection, patience: float) -> None:
    check_content(path, connection, OLD)
    connection.execute("COMMIT")
    _keep_copy(path, connection)
    try:
        connection.execute("BEGIN IMMEDIATE")
        before = _content(connection)
        bring_up_to_date(connection)
        check_content(path, connection, FORMAT_VERSION)
        if _content(connection) != before:
            raise LedgerFault(
                f"The ledger {path} could not be brought up to date: its rows would change. Nothing was changed."
            )
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise
    settle(path, connection, patience)


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """The step itself, inside a caller's transaction.

    Guarantee: what earlier versions booked on DATA/stage-1 and so on is a part of DATA from now on, and adds up to it.
    """
    for statement in _statements(ADDED_SCHEMA):
        connection.execute(statement)
    found = connection.execute("SELECT dataset FROM budgets UNION SELECT dataset FROM bookings ORDER BY dataset")
    for split in earlier_stages([str(name) for (name,) in found.fetchall()]):
        append_split(connection, split)
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def _statements(script: str) -> list[str]:
    """`executescript` would commit first. A trigger has semicolons inside, so a statement ends where SQLite says so."""
    found, statement = [], ""
    for line in script.splitlines(keepends=True):
        statement += line
        if statement.strip() and sqlite3.complete_statement(statement):
            found.append(statement.strip())
            statement = ""
    return found


def _content(connection: sqlite3.Connection) -> list[list[tuple[object, ...]]]:
    """The newest link of every chain, which stands for all rows before it, and what no chain covers."""
    return [
        connection.execute(query).fetchall()
        for query in (
            "SELECT number, digest FROM budgets ORDER BY number DESC LIMIT 1",
            "SELECT number, digest FROM bookings ORDER BY number DESC LIMIT 1",
            "SELECT number, state FROM bookings ORDER BY number",
            "SELECT grant_id, label, position, map_digest, payload_sha256, payload IS NULL FROM answers"
            " ORDER BY grant_id, label, position",
        )
    ]


def _keep_copy(path: Path, connection: sqlite3.Connection) -> None:
    """Guarantee: the copy is whole, checked and on the disk when this returns. No earlier copy is ever replaced."""
    handle, temporary = tempfile.mkstemp(prefix=".ledger-", suffix=".copy", dir=path.parent)
    os.close(handle)
    copy = Path(temporary)
    try:
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as target:
            connection.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
            check_content(copy, target, check_kind(copy, target))
            target.execute("COMMIT")
        flush(copy)
        for number in itertools.count(1):
            kept = path.with_name(f"{path.name}.format-{OLD}{'' if number == 1 else f'.{number}'}")
            with contextlib.suppress(FileExistsError):
                os.link(temporary, kept)
                break
        flush_folder(path.parent)
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{temporary}{ending}")
