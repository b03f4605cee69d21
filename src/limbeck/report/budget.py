"""The account of a data set as a reader sees it: a bar of the budget, and its history. Prices of plans, never an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from limbeck.report.charts import Segment, bar
from limbeck.report.wording import exact
from limbeck.vault.ledger import Account, Booking

OWN, OTHER, VOID = "own", "other", "void"


@dataclass(frozen=True, kw_only=True)
class HistoryRow:
    created: str
    method: str
    epsilon: str
    delta: str
    state: str
    own: bool


@dataclass(frozen=True, kw_only=True)
class BudgetView:
    """`bar` is None where a budget has no end, so that no part of it can be drawn. `note` says how it was composed."""

    dataset: str
    budget: str
    spent: str
    left: str
    budget_delta: str
    spent_delta: str
    bar: Markup | None
    rows: tuple[HistoryRow, ...]
    has_own: bool
    note: str = ""


def budget_view(account: Account, own_grant: str | None = None) -> BudgetView:
    """`own_grant`: the booking of the release that the page is about; it stands out."""
    return BudgetView(
        dataset=account.dataset,
        budget=_epsilon(account.epsilon),
        spent=_epsilon(account.spent_epsilon),
        left=_epsilon(account.remaining_epsilon),
        budget_delta=exact(account.delta),
        spent_delta=exact(account.spent_delta),
        bar=_bar(account, own_grant),
        rows=tuple(_row(booking, own_grant) for booking in account.bookings),
        has_own=any(booking.grant == own_grant for booking in account.bookings),
        note=_note(account),
    )


def _note(account: Account) -> str:
    notes = []
    if account.rule == "renyi":
        notes.append(
            f"Composed by a Renyi filter of order {account.order}; the plain sum is epsilon {exact(account.spent_epsilon_sum)}."
        )
    if account.parent is not None:
        notes.append(f"A part of {account.parent}, and limited by its budget as well.")
    for split in account.splits:
        notes.append(f"Parts by split {split.name} cost epsilon {_epsilon(split.spent_epsilon)} of it.")
    return " ".join(notes)


def _bar(account: Account, own_grant: str | None) -> Markup | None:
    if math.isinf(account.epsilon):
        return None
    counted = [booking for booking in account.bookings if booking.counted]
    # Bookings that are composed by a filter, or that share the bar with parts, are shown in proportion.
    booked = sum(booking.epsilon for booking in counted)
    scale = min(1.0, account.spent_epsilon / booked) if booked else 1.0
    segments = [
        Segment(kind=OWN if booking.grant == own_grant else OTHER, share=scale * booking.epsilon / account.epsilon)
        for booking in counted
    ]
    if account.spent_epsilon > (rest := scale * booked) and account.splits:
        segments.append(Segment(kind=OTHER, share=min((account.spent_epsilon - rest) / account.epsilon, 1.0)))
    return bar(segments, f"Epsilon {exact(account.spent_epsilon)} of {exact(account.epsilon)} is spent.")


def _row(booking: Booking, own_grant: str | None) -> HistoryRow:
    return HistoryRow(
        created=booking.created.replace("T", " ").removesuffix("+00:00"),
        method=booking.method,
        epsilon=_epsilon(booking.epsilon),
        delta=exact(booking.delta),
        state={"void": "given back", "open": "open"}.get(booking.state, "spent"),
        own=booking.grant == own_grant,
    )


def _epsilon(value: float) -> str:
    return "∞" if math.isinf(value) else exact(value)
