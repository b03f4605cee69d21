"""A connection to the ledger's file, and bringing what is committed from the write-ahead file into it."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from limbeck.vault.ledger.faults import unsettled


def connect(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
    )


def settle(path: Path, connection: sqlite3.Connection, patience: float) -> None:
    """Bring what is committed from the write-ahead file into the ledger, flush it, and empty the write-ahead file.

    Guarantee: when this returns, all that was committed is in the one file. Whoever loses or damages the write-ahead file
    later loses nothing that was confirmed.
    """
    end = time.monotonic() + patience
    while True:
        try:
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as error:
            raise unsettled(path, str(error)) from error
        if not busy:
            return
        # SQLite does not wait for another process that is doing just this.
        if time.monotonic() >= end:
            raise unsettled(path, "it is locked by another process")
        time.sleep(0.002)
