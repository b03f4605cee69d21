"""budget set, budget show, budget void."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.options import Json, LedgerPath, epsilon_value
from limbeck.cli.output import emit, table
from limbeck.privacy.numbers import finite_or_word
from limbeck.privacy.schema import ADD_REMOVE

Dataset = Annotated[str, typer.Argument(help="The data set's name: a named set, or the name in its schema.")]
budget = typer.Typer(help="Set and show the privacy budget of each data set.", pretty_exceptions_enable=False)


def register(app: typer.Typer) -> None:
    app.add_typer(budget, name="budget")


@budget.command("set")
def set_budget(
    dataset: Dataset,
    epsilon: Annotated[
        str, typer.Option("--epsilon", help="Total epsilon; 'inf' allows releases that are not private.")
    ],
    delta: Annotated[float, typer.Option("--delta", help="Total delta.")] = 1e-5,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Set what a data set may spend in all. Never below what it has spent; there is no reset."""
    from limbeck.vault.ledger import Ledger
    from limbeck.vault.ledger.faults import newly_made

    value = epsilon_value(epsilon)
    assert value is not None
    with Ledger.open(ledger) as book:
        if book.created:
            print(newly_made(book.path), file=sys.stderr)
        account = book.set_budget(dataset, value, delta)
        answers = book.answers()
    emit(as_json, {**_values(account, answers), "ledger_created": book.created}, _lines([account], answers))


@budget.command("show")
def show_budget(
    dataset: Annotated[str | None, typer.Argument(help="One data set; all if left out.")] = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Show budgets, what is spent and what is left, and the bookings that are still open. Changes nothing."""
    from limbeck.errors import DataNotFound
    from limbeck.vault.ledger import Ledger

    accounts, answers, path = [], {}, _not_yet_made(ledger)
    is_there = path is None
    if path is None:
        with Ledger.open_to_read(ledger) as book:
            accounts, answers, path = book.accounts(), book.answers(), book.path
            chosen = None if dataset is None else book.account(dataset)
    if dataset is None:
        lines = (
            []
            if is_there
            else [f"There is no ledger yet at {path}. The first run, or 'limbeck budget set', makes one."]
        )
        values = [_values(account, answers) for account in accounts]
        emit(
            as_json,
            {"ledger": str(path), "ledger_exists": is_there, "accounts": values},
            [*lines, *_lines(accounts, answers)],
        )
        return
    if not is_there or chosen is None:
        raise DataNotFound(
            f"The ledger has no budget for '{dataset}'."
            if is_there
            else f"There is no ledger yet at {path}: no budget.",
            f"limbeck budget set {shlex.quote(dataset)} --epsilon 1 --delta 1e-5",
        )
    emit(as_json, _values(chosen, answers), _lines([chosen], answers))


@budget.command("void")
def void_booking(
    dataset: Dataset,
    booking: Annotated[str, typer.Argument(help="The booking, as 'limbeck budget show' lists it.")],
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Give back an open booking of which nothing was ever answered, such as one whose run folder is lost.

    A booking with an answer, or a finished one, is refused: it stays spent. A run that is still at work on the booking
    ends without a result. The booking stays on record, as void.
    """
    from limbeck.vault.ledger import Ledger

    with Ledger.open(ledger, create=False) as book:
        book.give_back(dataset, booking)
        account, answers = book.account(dataset), book.answers()
    values = None if account is None else _values(account, answers)
    emit(
        as_json,
        {"dataset": dataset, "booking": booking, "state": "void", "account": values},
        [
            f"Booking {booking} was given back; nothing had been answered.",
            *(_lines([account], answers) if account else []),
        ],
    )


def _not_yet_made(ledger: Path | None) -> Path | None:
    """The default place if there is no ledger yet; None if there is one, or one was named that has to be there."""
    from limbeck.vault.ledger import default_path

    path = default_path()
    if ledger is not None or path.exists() or ("LIMBECK_LEDGER" in os.environ and not path.parent.is_dir()):
        return None
    return path


def _values(account: Any, answers: Mapping[str, int]) -> dict[str, Any]:
    remaining = math.inf if math.isinf(account.epsilon) else account.remaining_epsilon
    return {
        "dataset": account.dataset,
        "epsilon": finite_or_word(account.epsilon),
        "delta": account.delta,
        "adjacency": ADD_REMOVE,
        "spent_epsilon": finite_or_word(account.spent_epsilon),
        "spent_delta": account.spent_delta,
        "remaining_epsilon": finite_or_word(remaining),
        "remaining_delta": account.remaining_delta,
        "bookings": [
            {
                "grant": b.grant,
                "method": b.method,
                "epsilon": finite_or_word(b.epsilon),
                "delta": b.delta,
                "created": b.created,
                "state": b.state,
                "answers": answers.get(b.grant, 0),
            }
            for b in account.bookings
        ],
    }


def _lines(accounts: list[Any], answers: Mapping[str, int]) -> list[str]:
    if not accounts:
        return ["No data set has a budget yet. Set one with: limbeck budget set DATA --epsilon 1 --delta 1e-5"]
    rows: list[tuple[object, ...]] = [("data set", "epsilon", "spent", "left", "delta", "delta spent", "runs")]
    waiting: list[tuple[object, ...]] = [("open booking", "data set", "method", "epsilon", "answers", "booked at")]
    for values in (_values(account, answers) for account in accounts):
        rows.append(
            (
                values["dataset"],
                values["epsilon"],
                values["spent_epsilon"],
                values["remaining_epsilon"],
                values["delta"],
                values["spent_delta"],
                len(values["bookings"]),
            )
        )
        for b in values["bookings"]:
            if b["state"] == "open":
                waiting.append((b["grant"], values["dataset"], b["method"], b["epsilon"], b["answers"], b["created"]))
    lines = [*table(rows), f"adjacency of every epsilon: {ADD_REMOVE}"]
    if len(waiting) > 1:
        lines += table(waiting)
        if any(not row[4] for row in waiting[1:]):
            lines.append("An open booking without answers whose run is lost: limbeck budget void DATA BOOKING")
    return lines
