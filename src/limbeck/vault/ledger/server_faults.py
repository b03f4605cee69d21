"""What goes wrong with a ledger on a server, as sentences for a data owner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from limbeck.errors import LedgerFault


@contextlib.contextmanager
def server_faults(url: str) -> Iterator[None]:
    """Turn every failure of the server and of the way to it into a LedgerFault."""
    try:
        import psycopg
    except ImportError:  # said where a connection is made
        yield
        return
    try:
        yield
    except psycopg.Error as error:
        raise LedgerFault(_sentence(url, error)) from error


def missing_on_server(url: str) -> LedgerFault:
    return LedgerFault(
        f"There is no ledger in the database {url}. Nothing was created. Name the right database, or make the ledger by "
        "setting a first budget.",
        f"limbeck budget set DATA --epsilon E --delta D --ledger {url}",
    )


def damaged_on_server(url: str, what: str) -> LedgerFault:
    return LedgerFault(
        f"The ledger {url} is damaged ({what}). It was left exactly as it is. Restore it from a backup that is as new as the "
        "last run; do not empty it, or the spent budget would be forgotten."
    )


def _sentence(url: str, error: Exception) -> str:
    from psycopg import errors

    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    match error:
        case errors.LockNotAvailable():
            return (
                f"The ledger {url} is locked by another process for too long. Nothing was changed. Wait until that process "
                "has finished and run the same command again."
            )
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return (
                f"Another process wrote to the ledger {url} at the same moment. Nothing was changed. Run the same command "
                "again."
            )
        case errors.InsufficientPrivilege():
            return (
                f"This user of the server may not do that in the ledger {url} ({said}). Nothing was changed. Budgets and splits "
                "are set by the ledger's owner; 'limbeck budget allow ROLE' lets another role book."
            )
        case errors.DiskFull():
            return (
                f"The disk of the server that holds the ledger {url} is full. Nothing was changed and every earlier booking is "
                "intact. Free some space and run the same command again."
            )
        case errors.RaiseException():
            return f"The ledger {url} refused a step ({said}). Nothing was changed. This is a defect; please report it."
        case errors.OperationalError() | errors.InterfaceError():
            # Also a commit whose confirmation was lost: what was asked for is on record whole, or not at all.
            return (
                f"The ledger {url} cannot be reached ({said}). Every confirmed booking is intact; the last step is recorded "
                "whole or not at all. Check the server and the way to it and run the same command again."
            )
        case _:
            return f"The ledger {url} refused a step ({said}). Nothing was changed. This is a defect; please report it."
