"""The ledger on a PostgreSQL server: the same tables and rules as the file, for several machines that share one budget.

    LIMBECK_LEDGER=postgresql://booker@db.example/limbeck

Writers take turns by a lock of the whole ledger, from before their first read to after their commit, so what they checked
is still true when they commit. The transaction is serializable all the same: should a writer ever get past the lock,
the server refuses one of the two. The lock of a machine that is gone goes with its connection.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limbeck.errors import BadInput, LedgerFault, WallBreach
from limbeck.vault.ledger.address import home_of
from limbeck.vault.ledger.database import Database, Found
from limbeck.vault.ledger.server_checks import check_server, is_there
from limbeck.vault.ledger.server_faults import missing_on_server, server_faults
from limbeck.vault.ledger.server_tables import SPACE, allowed, statements

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

LOCK = 0x4C494D42  # "LIMB": all who write a ledger in this database
# A machine that is cut off must not keep the lock: the server ends what has been silent for a minute. A run that was, because
# it computed, connects again.
SILENCE = "60s"
SETTINGS = {
    "search_path": SPACE,
    "synchronous_commit": "on",
    "idle_session_timeout": SILENCE,
    "idle_in_transaction_session_timeout": SILENCE,
    "client_encoding": "UTF8",
}


@dataclass(frozen=True)
class Rows:
    """A connection in the words of `Database`: a question mark for each value."""

    connection: Connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Found:
        # The statements are constants of this package, which hold neither a question mark nor a per cent sign besides.
        return self.connection.execute(sql.replace("?", "%s").encode(), tuple(parameters))


@dataclass(kw_only=True)
class LedgerServer:
    """An open, checked ledger on a server. A connection that broke is made, and checked, again for the next transaction."""

    path: Path
    url: str
    patience: float
    writable: bool
    created: bool = False
    _connection: Connection
    _ended: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _owner: int = field(default_factory=os.getpid)

    @property
    def home(self) -> Path:
        return home_of(self.url)

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Database]:
        """One transaction, as `limbeck.vault.ledger.database.Store` promises it."""
        if os.getpid() != self._owner:
            raise WallBreach("A ledger cannot be used by a forked process; open it again there.")
        if write and not self.writable:
            raise LedgerFault(f"The ledger {self.url} was opened for reading only. Nothing was changed.")
        with self._lock, server_faults(self.url):
            connection = self._connected()
            with _alone(connection) if write else contextlib.nullcontext():
                connection.execute(f"BEGIN ISOLATION LEVEL {'SERIALIZABLE' if write else 'REPEATABLE READ, READ ONLY'}")
                try:
                    yield Rows(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(Exception):
                        connection.execute("ROLLBACK")
                    raise

    def _connected(self) -> Connection:
        if self._ended:
            raise LedgerFault(f"The ledger {self.url} was closed. Nothing was changed.")
        if not _is_alive(self._connection):
            self._connection = _checked(self.url, self.patience)
        return self._connection

    def close(self) -> None:
        with self._lock, server_faults(self.url):
            self._ended = True
            self._connection.close()


def _is_alive(connection: Connection) -> bool:
    from psycopg import OperationalError

    try:
        connection.execute("SELECT 1")
    except OperationalError:
        connection.close()
        return False
    return True


@contextlib.contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """The lock is taken before the transaction begins: a snapshot from before the wait would be stale."""
    connection.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # a broken connection has let it go
            connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))


def open_server(path: Path, url: str, patience: float, create: bool) -> LedgerServer:
    """Check the ledger and open it for writing; make its tables if there are none and `create` allows it.

    Guarantee: tables that fail a check are never written to, and never replaced by empty ones.
    """
    with server_faults(url):
        connection = _connect(url, patience)
        created = False
        try:
            if not is_there(Rows(connection)):
                if not create:
                    raise missing_on_server(url)
                created = _create(connection)
            _check(connection, url)
        except BaseException:
            connection.close()
            raise
        home_of(url).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return LedgerServer(
            path=path, url=url, patience=patience, writable=True, created=created, _connection=connection
        )


def open_server_to_read(path: Path, url: str, patience: float) -> LedgerServer:
    """Guarantee: makes nothing, and nothing can be written through it. No writer waits for whoever looks."""
    with server_faults(url):
        return LedgerServer(path=path, url=url, patience=patience, writable=False, _connection=_checked(url, patience))


def allow(url: str, role: str, patience: float) -> None:
    """Let a role of the server book plans and store answers, and do nothing else; it has to be there already."""
    from psycopg import sql

    with server_faults(url), contextlib.closing(_checked(url, patience)) as connection:
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
        if known is None:
            raise BadInput(f"The server of {url} knows no role {role!r}. Make it first, in the server's own words.")
        connection.execute("BEGIN")
        for statement in allowed(sql.Identifier(role).as_string(connection)):
            connection.execute(statement.encode())
        connection.execute("COMMIT")


def _connect(url: str, patience: float) -> Connection:
    try:
        import psycopg
    except ImportError:
        raise BadInput(
            "A ledger on a server needs the package psycopg, which is not installed.", "pip install 'limbeck[postgres]'"
        ) from None
    wait = max(int(patience), 2)  # seconds; the client takes no less
    settings = {**SETTINGS, "lock_timeout": f"{max(int(patience * 1000), 1)}ms"}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    connection = psycopg.connect(
        url, autocommit=True, connect_timeout=wait, options=options, application_name="limbeck"
    )
    connection.prepare_threshold = None  # a pool in between may hand statements to another connection
    return connection


def _checked(url: str, patience: float) -> Connection:
    connection = _connect(url, patience)
    try:
        if not is_there(Rows(connection)):
            raise missing_on_server(url)
        _check(connection, url)
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: Connection, url: str) -> None:
    """All checks look at one moment: other machines may be booking meanwhile."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    try:
        check_server(url, Rows(connection))
    finally:
        connection.execute("ROLLBACK")


def _create(connection: Connection) -> bool:
    """Guarantee: of two machines that make it together one wins, and both then use the same tables."""
    with _alone(connection):
        if is_there(Rows(connection)):
            return False
        connection.execute("BEGIN")
        try:
            for statement in statements():
                connection.execute(statement.encode())
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        return True
