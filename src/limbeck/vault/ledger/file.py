"""The ledger's SQLite file: where it is, how it is created, opened and written.

The constitution of the format stands at the top of book.py. This file enforces it: a new ledger appears under its
name complete or not at all, and an existing one is checked through a read-only connection before anything may write.

    ledger.sqlite        all that is confirmed: whoever keeps this one file keeps every booking and every answer
    ledger.sqlite-wal    SQLite's write-ahead file: the step under way, empty as soon as it is confirmed
    ledger.sqlite-shm    locks of the processes that use the ledger now
    ledger.sqlite.format-1   what an earlier version wrote, kept when the ledger was brought up to date
"""

from __future__ import annotations

import contextlib
import os
import resource
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from limbeck.errors import LedgerFault, WallBreach
from limbeck.files import flush_folder
from limbeck.vault.ledger.address import path_in_data_folder
from limbeck.vault.ledger.checks import check_content, check_kind
from limbeck.vault.ledger.faults import faults, full, missing
from limbeck.vault.ledger.migration import bring_up_to_date, migrate
from limbeck.vault.ledger.settling import connect, settle
from limbeck.vault.ledger.tables import APPLICATION_ID, FORMAT_VERSION, SCHEMA

ROOM_TO_SPARE = 64 * 1024


@dataclass(frozen=True, kw_only=True)
class LedgerFile:
    """An open, checked ledger file; `created` if this opening made it, `writable` unless it is only looked at."""

    path: Path
    connection: sqlite3.Connection
    patience: float
    writable: bool
    created: bool = False
    _files: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _owner: int = field(default_factory=os.getpid)

    @property
    def home(self) -> Path:
        return self.path

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """One transaction: everything in it happens, durably, or nothing does.

        Guarantee: a writing transaction holds the file's only write lock from its first read to its commit, so what it
        checked is still true when it commits. When it returns, what it wrote stands in the ledger file itself.
        """
        if os.getpid() != self._owner:
            # A connection shared across fork() can corrupt the file without any error.
            raise WallBreach("A ledger cannot be used by a forked process; open it again there.")
        if write and not self.writable:
            raise LedgerFault(f"The ledger {self.path} was opened for reading only. Nothing was changed.")
        with self._lock, faults(self.path):
            try:
                self.connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if write:
                    self._require_same_files()
                yield self.connection
                if write:
                    _require_room(self.path, self.connection)
                self.connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    if self.connection.in_transaction:
                        self.connection.execute("ROLLBACK")
                raise
            if write:
                settle(self.path, self.connection, self.patience)

    def _require_same_files(self) -> None:
        """Two processes with different companions would not see each other's locks, nor each other's bookings."""
        for name, known in self._files.items():
            if _identity(name) != known:
                raise LedgerFault(
                    f"{name} was removed or replaced while this process was using the ledger. Nothing was changed. "
                    "Never remove a file of the ledger during a run; stop all runs, then resume them."
                )

    def close(self) -> None:
        with self._lock, faults(self.path):
            self.connection.close()


def _require_room(path: Path, db: sqlite3.Connection) -> None:
    """Refuse a step that fits the write-ahead file but not the ledger, while nothing is written yet."""
    pages, size = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    growth = pages * size - path.stat().st_size
    if growth <= 0:
        return
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and pages * size > limit:
        raise LedgerFault(
            f"The ledger {path} would grow beyond the {limit} bytes that a file of this user may have. Nothing was changed. "
            "Every earlier booking is intact. Raise the limit (ulimit -f) and run the same command again."
        )
    disk = os.statvfs(path)
    if disk.f_bavail * disk.f_frsize < 2 * growth + ROOM_TO_SPARE:
        raise LedgerFault(full(path))


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def open_file(path: Path, patience: float, create: bool) -> LedgerFile:
    """Check the ledger and open it for writing; make it if there is none and `create` allows it.

    Guarantee: a file that fails a check is never written to, and never replaced by an empty one.
    """
    with faults(path):
        path = path.resolve()
        created = False
        if not path.exists():
            if not create:
                raise missing(path)
            created = _create(path)
        if not path.is_file():
            raise LedgerFault(f"The ledger {path} is not a file. Nothing was changed. Name a file for the ledger.")
        with contextlib.closing(connect(path, "ro", patience)) as reader:
            reader.execute("BEGIN")  # kind and content of one moment: another process may be bringing it up to date
            version = check_kind(path, reader)
            check_content(path, reader, version)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
        if version != FORMAT_VERSION:
            migrate(path, patience)
        connection = connect(path, "rw", patience)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            settle(path, connection, patience)  # what a crash, or an earlier version, left in the write-ahead file
            files = {name: _identity(name) for name in (str(path), f"{path}-wal", f"{path}-shm")}
            return LedgerFile(
                path=path, connection=connection, patience=patience, writable=True, created=created, _files=files
            )
        except BaseException:
            connection.close()
            raise


def open_to_read(path: Path, patience: float) -> LedgerFile:
    """Copy an existing ledger into memory, check the copy and open it for reading.

    Guarantee: no ledger is made and nothing can be written through it. A writer waits for the moment of the copy at most,
    never for the checks and for whoever looks.
    """
    with faults(path):
        path = path.resolve()
        if not path.is_file():
            raise missing(path)
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            with contextlib.closing(connect(path, "ro", patience)) as reader:
                reader.execute("BEGIN")
                reader.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()  # waits here; backup() would for ever
                version = check_kind(path, reader)
                reader.backup(copy)
            check_content(path, copy, version)
            if version != FORMAT_VERSION:
                bring_up_to_date(copy)  # the copy only: whoever looks changes nothing
            copy.execute("COMMIT")
            copy.execute("PRAGMA query_only = ON")
            return LedgerFile(path=path, connection=copy, patience=patience, writable=False)
        except BaseException:
            copy.close()
            raise


def _create(path: Path) -> bool:
    """Build the ledger beside its place and link it there, so that it is never seen half made; True if this one won.

    Guarantee: of two processes that create it together one wins, and both then open the same file. A folder is made in
    the user's data folder only: elsewhere it may be missing because a disk is, and the ledger with it.
    """
    if path == path_in_data_folder().resolve():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif not path.parent.is_dir():
        raise LedgerFault(
            f"There is no folder {path.parent} for the ledger {path}. Nothing was changed. If it is on a disk that is not "
            "connected, connect it; to begin a new ledger there, make the folder first."
        )
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
        made = True
        try:
            os.link(temporary, path)
        except FileExistsError:
            made = False
        flush_folder(path.parent)
        return made
    finally:
        for name in (temporary, f"{temporary}-journal", f"{temporary}-wal", f"{temporary}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
