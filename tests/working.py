"""The calls that plan, make and resume a run, under one name for tests, and a short way to write a request."""

from __future__ import annotations

from typing import Any

from limbeck.runs.condense import condense
from limbeck.runs.planning import make_plan, plan_for
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.runs.resume import resume
from limbeck.vault.ledger import Ledger

__all__ = ["DataReference", "Request", "RunOptions", "asked", "condense", "make_plan", "plan_for", "resume", "spend"]


def asked(data: str | None = "digits", part: str | None = None, **options: Any) -> Request:
    """A request for a data set by name, with the options of a run."""
    return Request(data=DataReference(data=data, part=part), options=RunOptions(**options))


def spend(dataset: str = "digits") -> tuple[float, int]:
    """What is booked of a data set in the default ledger: epsilon, and in how many runs."""
    with Ledger.open() as ledger:
        account = ledger.account(dataset)
    return (account.spent_epsilon, len(account.bookings)) if account else (0.0, 0)
