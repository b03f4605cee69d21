"""What goes wrong with the ledger's file, as sentences for a data owner."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from limbeck.errors import LedgerFault
from limbeck.vault.ledger.address import shown

_RESTORE = (
    "The file was left exactly as it is. Restore it from a backup that is as new as the last run; "
    "do not delete it, or the spent budget would be forgotten."
)


@contextlib.contextmanager
def faults(path: Path) -> Iterator[None]:
    """Turn every failure of SQLite and of the file system into a LedgerFault that a data owner understands."""
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerFault(_sentence(path, error)) from error
    except UnicodeDecodeError as error:  # Python could not even read what SQLite said about it
        raise damaged(path, "a text in it cannot be read") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LedgerFault(full(path)) from error
        raise LedgerFault(
            f"The ledger {path} cannot be used ({error.strerror or error}). Nothing was changed. "
            "Make its folder exist and be writable for this user, then run the same command again."
        ) from error


def full(path: Path) -> str:
    return (
        f"The disk that holds the ledger {path} is full. Nothing was changed and every earlier booking is intact. "
        "Free some space and run the same command again."
    )


def locked(path: Path) -> str:
    return (
        f"The ledger {path} is locked by another process for too long. Nothing was changed. "
        "Wait until that process has finished and run the same command again."
    )


def unsettled(path: Path, why: str) -> LedgerFault:
    """The step is in the write-ahead file: on record, but confirmed to nobody."""
    return LedgerFault(
        f"The last step is recorded in {path}-wal, but it could not be brought into the ledger {path} ({why}). Remove "
        "neither of them. Check the disk and its free space, wait for other processes, and run the same command again."
    )


def newly_made(path: Path) -> str:
    """Said wherever a ledger is made: the owner may have meant another one, or a disk may be missing."""
    return f"There was no ledger at {shown(path)}; a new one was made, with nothing spent."


def missing(path: Path) -> LedgerFault:
    return LedgerFault(
        f"There is no ledger at {path}. Nothing was created. If it is on a disk that is not connected, connect it; name "
        "another one with --ledger or LIMBECK_LEDGER.",
        "limbeck budget show --ledger FILE",
    )


def _sentence(path: Path, error: sqlite3.Error) -> str:
    if isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode"):
        return damaged(path, "a text in it cannot be read").message  # Python's own word for bytes that are no UTF-8
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return full(path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return locked(path)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error) == "unsupported file format":
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


def damaged(path: Path, what: str) -> LedgerFault:
    return LedgerFault(f"The ledger {path} is damaged ({what}). {_RESTORE}")
