"""The ledger's SQLite file: where it is, how it is created and checked, and what its faults mean to a data owner.

The constitution of the format stands at the top of ledger.py. This file enforces it: a new ledger appears under its
name complete or not at all, and an existing one is checked through a read-only connection before anything may write.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from limbeck.errors import LedgerFault, WallBreach
from limbeck.vault.ledger_schema import APPLICATION_ID, CHAIN_START, CHAINED, FORMAT_VERSION, SCHEMA, chain_digest

_RESTORE = (
    "The file was left exactly as it is. Restore it from a backup that is as new as the last run; "
    "do not delete it, or the spent budget would be forgotten."
)


def default_path() -> Path:
    """LIMBECK_LEDGER if set, else limbeck/ledger.sqlite in the user's data folder."""
    if chosen := os.environ.get("LIMBECK_LEDGER"):
        return Path(os.path.expanduser(chosen))
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG rules say that a relative folder is to be ignored.
    folder = Path(data) if os.path.isabs(data) else Path(os.path.expanduser("~/.local/share"))
    return folder / "limbeck" / "ledger.sqlite"


@contextlib.contextmanager
def faults(path: Path) -> Iterator[None]:
    """Turn every failure of SQLite and of the file system into a LedgerFault that a data owner understands."""
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerFault(_sentence(path, error)) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LedgerFault(_full(path)) from error
        raise LedgerFault(
            f"The ledger {path} cannot be used ({error.strerror or error}). Nothing was changed. "
            "Make its folder exist and be writable for this user, then run the same command again."
        ) from error


def _full(path: Path) -> str:
    return (
        f"The disk that holds the ledger {path} is full. Nothing was changed and every earlier booking is intact. "
        "Free some space and run the same command again."
    )


def _sentence(path: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return _full(path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"The ledger {path} is locked by another process for too long. Nothing was changed. "
            "Wait until that process has finished and run the same command again."
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"The ledger {path} is damaged ({error}). {_RESTORE}"
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return (
            f"The ledger {path} cannot be written ({error}). Nothing was changed. "
            "Make the file and its folder writable for this user and run the same command again."
        )
    if code == sqlite3.SQLITE_IOERR:
        # After a failed flush nobody knows whether the last step reached the disk; the next opening will.
        return (
            f"The disk refused to read or write the ledger {path} ({error}). Every earlier booking is intact; the last "
            "step is recorded whole or not at all. Check the disk and run the same command again."
        )
    return f"The ledger {path} refused a step ({error}). Nothing was changed. This is a defect; please report it."


def _damaged(path: Path, what: str) -> LedgerFault:
    return LedgerFault(f"The ledger {path} is damaged ({what}). {_RESTORE}")


@dataclass(frozen=True)
class LedgerFile:
    """An open, checked ledger file."""

    path: Path
    connection: sqlite3.Connection
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _owner: int = field(default_factory=os.getpid)

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """One transaction: everything in it happens, durably, or nothing does.

        Guarantee: a writing transaction holds the file's only write lock from its first read to its commit, so what it
        checked is still true when it commits.
        """
        if os.getpid() != self._owner:
            # A connection shared across fork() can corrupt the file without any error.
            raise WallBreach("A ledger cannot be used by a forked process; open it again there.")
        with self._lock, faults(self.path):
            try:
                self.connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    if self.connection.in_transaction:
                        self.connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock, faults(self.path):
            self.connection.close()


def open_file(path: Path, patience: float) -> LedgerFile:
    """Create the ledger if there is none, check it, and open it for writing.

    Guarantee: a file that fails a check is never written to, and never replaced by an empty one.
    """
    with faults(path):
        path = path.resolve()
        if not path.exists():
            _create(path)
        if not path.is_file():
            raise LedgerFault(f"The ledger {path} is not a file. Nothing was changed. Name a file for the ledger.")
        with contextlib.closing(_connect(path, "ro", patience)) as reader:
            _check_kind(path, reader)
            _check_content(path, reader)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
        connection = _connect(path, "rw", patience)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return LedgerFile(path, connection)


def open_to_read(path: Path, patience: float) -> LedgerFile:
    """Check an existing ledger and open it for reading only.

    Guarantee: no ledger is made, nothing can be written through it, and it makes no writer wait: in SQLite's write-ahead
    mode readers hold no lock that a writer needs.
    """
    with faults(path):
        path = path.resolve()
        if not path.is_file():
            raise LedgerFault(f"There is no ledger at {path}. Name the right one with --ledger or LIMBECK_LEDGER.")
        connection = _connect(path, "ro", patience)
        try:
            _check_kind(path, connection)
            _check_content(path, connection)
            connection.execute("COMMIT")
            return LedgerFile(path, connection)
        except BaseException:
            connection.close()
            raise


def _connect(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )


def _create(path: Path) -> None:
    """Build the ledger beside its place and link it there, so that it is never seen half made.

    Guarantee: of two processes that create it together one wins, and both then open the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    leftovers = [name for name in (f"{path}-wal", f"{path}-journal") if os.path.exists(name)]
    if leftovers and not path.exists():
        # SQLite would replay it into the new file, and the spent budget in the lost one would be forgotten.
        raise LedgerFault(
            f"The ledger {path} is missing, but its companion {leftovers[0]} is there. Nothing was changed. "
            "Put the ledger back beside it, or restore both from a backup."
        )
    handle, temporary = tempfile.mkstemp(prefix=".ledger-", suffix=".new", dir=path.parent)
    os.close(handle)
    try:
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(
                f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION};"
                f"{SCHEMA} COMMIT; PRAGMA journal_mode = WAL;"
            )
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
        _flush_folder(path.parent)
    finally:
        for name in (temporary, f"{temporary}-journal", f"{temporary}-wal", f"{temporary}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)  # Without it a power cut may lose the new file's name, and with it what was booked.
    finally:
        os.close(handle)


def _check_kind(path: Path, reader: sqlite3.Connection) -> None:
    """Refuse what is not a ledger, or not of this format.

    The file is never read with open(): closing it would drop the locks of every other connection of this process, and
    unlocked writers can destroy the file.
    """
    if path.stat().st_size == 0:
        raise _damaged(path, "it is empty")  # To SQLite an empty file is a fresh one, with nothing spent.
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


def _check_content(path: Path, reader: sqlite3.Connection) -> None:
    """Guarantee: returns only if the file is sound, its guards are in place and both chains are whole."""
    reader.execute("BEGIN")  # One snapshot for all checks: other processes may be booking meanwhile.
    problems = [str(row[0]) for row in reader.execute("PRAGMA quick_check(1)")]
    if problems != ["ok"]:
        raise _damaged(path, problems[0] if problems else "it cannot be checked")
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        model.executescript(SCHEMA)
        if _shape(model) != _shape(reader):
            raise _damaged(path, "its tables or guards were altered")
    if reader.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise _damaged(path, "an answer belongs to no booking")
    voided = "SELECT 1 FROM answers JOIN bookings USING (grant_id) WHERE state = 'void' LIMIT 1"
    if reader.execute(voided).fetchone() is not None:
        raise _damaged(path, "a booking was made void although it was answered")
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
        if row[0] != count or row[-1] != previous or chain_digest(table, row) != digest:
            raise _damaged(path, f"row {count} of the {table} was altered")
        previous = digest
    # SQLite remembers the highest number ever given, so rows missing at the end are noticed too.
    highest = reader.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    if (highest[0] if highest else 0) != count:
        raise _damaged(path, f"rows are missing at the end of the {table}")
