"""What a client learns of a failure: a code from a closed list, and a fixed sentence for each, and nothing else.

Guarantee: no text of an error crosses the socket. An error's sentence may name files of the owner, and one that nobody foresaw
may quote a record. Which code is said depends on public facts: the plan, the question, the book, the bytes that were sent. The
exception is `data_unreadable` and `failed`: whether the owner's files can be read, and whether the vault works at all.
"""

from __future__ import annotations

from limbeck.errors import (
    BadInput,
    BudgetRefused,
    DataUnreadable,
    LedgerFault,
    LimbeckError,
    RunConflict,
    WallBreach,
)
from limbeck.vault.process.wire import Malformed

BUSY, MALFORMED, FAILED = "busy", "malformed", "failed"
# In this order: the first class that fits.
CODES: tuple[tuple[type[Exception], str], ...] = (
    (Malformed, MALFORMED),
    (BudgetRefused, "budget_refused"),
    (WallBreach, "wall_breach"),
    (RunConflict, "run_conflict"),
    (DataUnreadable, "data_unreadable"),
    (LedgerFault, "ledger_fault"),
    (BadInput, "bad_input"),
)
SENTENCES: dict[str, tuple[type[LimbeckError], str]] = {
    "budget_refused": (
        BudgetRefused,
        "The vault refused the plan: the budget of its data set does not cover it. Nothing was booked. What is left of the "
        "budget, and a larger one, are for the data owner to say ('limbeck budget show', on the owner's side).",
    ),
    "wall_breach": (
        WallBreach,
        "The vault refused this step: it is not what was booked. The plan or its price, the query, the number of answers, the "
        "kind of map or the certificate does not fit. Nothing was released by it.",
    ),
    "run_conflict": (
        RunConflict,
        "The vault refused this step: the booking was never made there, was given back, closed or made for another plan, or this "
        "answer was given for another question or forgotten. Resume the run where it was begun, or start a new one.",
    ),
    "data_unreadable": (
        DataUnreadable,
        "The vault could not read its records; why is in its own log, with their owner. If nothing was answered yet, the "
        "booking was given back.",
    ),
    "ledger_fault": (
        LedgerFault,
        "The vault's ledger, or a file beside it, cannot be used; why is in the vault's own log, with the data owner.",
    ),
    "bad_input": (BadInput, "The vault refused a value of the request: it cannot be right for its data set."),
    MALFORMED: (
        WallBreach,
        "The vault could not read the request: it is too large, damaged, or of another version of Limbeck.",
    ),
    BUSY: (RunConflict, "The vault has as many connections as it takes; try again when other runs are through."),
    FAILED: (
        LimbeckError,
        "The vault failed at this step; why is in its own log, with the data owner. What was answered before is kept.",
    ),
}


def code_of(error: BaseException) -> str:
    return next((code for kind, code in CODES if isinstance(error, kind)), FAILED)


def failure(code: str) -> LimbeckError:
    """The error that a client raises. An unknown code is a failure like any other."""
    kind, sentence = SENTENCES.get(code, SENTENCES[FAILED])
    return kind(sentence)
