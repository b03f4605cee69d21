"""What the ledger's rules need of a database: rows by SQL, in a transaction that the caller holds. A file or a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Found(Protocol):
    """The rows of one statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """Statements keep to what SQLite and PostgreSQL both know, with a question mark for each value."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Found: ...


class Store(Protocol):
    """An open, checked ledger: an SQLite file, or tables on a server.

    path      what names it, as it was given
    home      the file's own path, or one that stands for it on this machine: keys and teachers lie beside it
    created   whether this opening made it
    """

    @property
    def path(self) -> Path: ...

    @property
    def home(self) -> Path: ...

    @property
    def created(self) -> bool: ...

    def transaction(self, *, write: bool) -> AbstractContextManager[Database]:
        """One transaction: everything in it happens, durably, or nothing does.

        Guarantee: nobody else writes between the first read of a writing transaction and its commit, so what it checked is
        still true when it commits. When it returns, what it wrote outlives a crash.
        """
        ...

    def close(self) -> None: ...
