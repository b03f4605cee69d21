"""budget set, budget show."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from limbeck.cli.options import Json, LedgerPath, epsilon_value
from limbeck.cli.output import emit, table
from limbeck.queries import finite_or_word
from limbeck.schema import ADD_REMOVE

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

    value = epsilon_value(epsilon)
    assert value is not None
    with Ledger.open(ledger) as book:
        account = book.set_budget(dataset, value, delta)
    emit(as_json, _values(account), _lines([account]))


@budget.command("show")
def show_budget(
    dataset: Annotated[str | None, typer.Argument(help="One data set; all if left out.")] = None,
    ledger: LedgerPath = None,
    as_json: Json = False,
) -> None:
    """Show budgets, what is spent and what is left."""
    from limbeck.errors import DataNotFound
    from limbeck.vault.ledger import Ledger

    with Ledger.open(ledger) as book:
        if dataset is None:
            accounts = book.accounts()
            emit(
                as_json,
                {"ledger": str(book.path), "accounts": [_values(account) for account in accounts]},
                _lines(accounts),
            )
            return
        account = book.account(dataset)
    if account is None:
        raise DataNotFound(
            f"The ledger has no budget for '{dataset}'.", f"limbeck budget set {dataset} --epsilon 1 --delta 1e-5"
        )
    emit(as_json, _values(account), _lines([account]))


def _values(account: Any) -> dict[str, Any]:
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
            }
            for b in account.bookings
        ],
    }


def _lines(accounts: list[Any]) -> list[str]:
    if not accounts:
        return ["No data set has a budget yet. Set one with: limbeck budget set DATA --epsilon 1 --delta 1e-5"]
    rows: list[tuple[object, ...]] = [("data set", "epsilon", "spent", "left", "delta", "delta spent", "runs")]
    for values in map(_values, accounts):
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
    return [*table(rows), f"adjacency of every epsilon: {ADD_REMOVE}"]
