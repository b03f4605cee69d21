"""The account of a data set or of a part, as it is shown: its budget, what is spent of it and what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from limbeck.vault.ledger.database import Database
from limbeck.vault.ledger.family import Budget, Family, Rule, delta_of, epsilon_of, read_family, read_root
from limbeck.vault.ledger.renyi_filter import gaussian_room, order_for, overhead
from limbeck.vault.ledger.rules import budget_of, committed, divergence_at, filtered, has_filter, sum_fits
from limbeck.vault.ledger.splits import Kind
from limbeck.vault.ledger.sums import Booking, exact, left, less, rounded_down, rounded_up


@dataclass(frozen=True)
class SplitCost:
    """What the parts of one split cost their parent: the dearest of them if they are disjoint, else their sum."""

    name: str
    kind: Kind
    parts: int
    disjoint: bool
    spent_epsilon: float
    spent_delta: float


@dataclass(frozen=True)
class Account:
    """The budget of one data set, or of a part of one, and everything that was booked on it.

    epsilon, delta       the budget; of a part without one of its own, that of the data set it belongs to
    spent_epsilon        at the budget's delta, composed by the account's rule; rounded up
    spent_delta          by the plain sum; by the filter it is the budget's delta, which all plans share
    bookings             of the account itself; what its parts cost it is in `splits`
    spent_epsilon_sum    the plain sum of the booked epsilons
    spent_delta_sum      the plain sum of the booked deltas
    remaining_epsilon    what a plan on this account may still cost, also for everything it is a part of. By the filter: the
                         epsilon of a plan of plain Gaussian answers, at the delta of the last booking
    remaining_delta      by the filter any delta up to the budget's, because the plans' own deltas are not added up
    rule, order          "sum", or "renyi" with its order; None until the first booking under this budget
    parent               what it is a part of; None for a whole data set
    own_budget           whether the owner has set a budget for this very account

    Guarantee: what remains is never more than what book() would still accept.
    """

    dataset: str
    epsilon: float
    delta: float
    spent_epsilon: float
    spent_delta: float
    bookings: tuple[Booking, ...]
    spent_epsilon_sum: float = 0.0
    spent_delta_sum: float = 0.0
    remaining_epsilon: float = 0.0
    remaining_delta: float = 0.0
    rule: Rule | None = None
    order: int | None = None
    parent: str | None = None
    own_budget: bool = True
    splits: tuple[SplitCost, ...] = ()


def account_in(family: Family, name: str) -> Account | None:
    """None while no budget is set, and nothing that still counts is booked, on the account and what it is a part of."""
    budget = budget_of(family, name)
    own, bound = budget, next((found for each in family.path(name) if (found := budget_of(family, each))), None)
    if bound is None:
        return None
    used_epsilon, used_delta = spent(family, name)
    rule, order = standing(family, name, own) if own else (None, 0)
    total, shown_delta = used_epsilon, used_delta
    if own and order and _by_filter(family, name, own, rule):
        by_filter = filtered(family, name, own, order)
        if by_filter is not None and family.below(name):
            plain = used_epsilon if used_delta <= exact(own.delta) else by_filter
            total, shown_delta = min(plain, by_filter), exact(own.delta)
    remaining_epsilon, remaining_delta = remaining(family, name)
    place = family.place(name)
    return Account(
        dataset=name,
        epsilon=bound.epsilon,
        delta=bound.delta,
        spent_epsilon=rounded_up(total),
        spent_delta=rounded_up(shown_delta),
        bookings=family.bookings.get(name, ()),
        spent_epsilon_sum=rounded_up(used_epsilon),
        spent_delta_sum=rounded_up(used_delta),
        remaining_epsilon=remaining_epsilon,
        remaining_delta=remaining_delta,
        rule=rule,
        order=order if rule == "renyi" else None,
        parent=None if place is None else place.dataset,
        own_budget=name in family.budgets,
        splits=tuple(_split_costs(family, name)),
    )


def spent(family: Family, name: str) -> tuple[Decimal, Decimal]:
    """Plain sums over the bookings of an account, with its parts."""
    epsilon, delta = family.cost(name, epsilon_of), family.cost(name, delta_of)
    assert epsilon is not None and delta is not None
    return epsilon, delta


def standing(family: Family, name: str, budget: Budget) -> tuple[Rule | None, int]:
    """The rule that is committed to, and the order of the budget's filter; order 0 where there is none."""
    if budget.number == 0:
        return "sum", 0
    found = committed(family, name, budget)
    if found is not None:
        return found.rule, found.order
    return None, order_for(budget.epsilon, budget.delta) if has_filter(budget) else 0


def _by_filter(family: Family, name: str, budget: Budget, rule: Rule | None) -> bool:
    """Before a rule is committed to, the filter speaks only where the sum already says more than the budget."""
    return rule == "renyi" or (rule is None and not sum_fits(family, name, budget.epsilon, budget.delta))


def remaining(family: Family, name: str) -> tuple[float, float]:
    """What a plan on this account may still cost: the least of what it and everything it is a part of have left."""
    rooms = [_room(family, each, found, name) for each in family.path(name) if (found := budget_of(family, each))]
    return min(epsilon for epsilon, _ in rooms), min(delta for _, delta in rooms)


def _room(family: Family, holder: str, budget: Budget, name: str) -> tuple[float, float]:
    """What the budget of `holder` leaves for a plan on `name`, which is the holder itself or a part of it."""
    along = family.path(name)
    rule, order = standing(family, holder, budget)
    if order and _by_filter(family, holder, budget, rule):
        total, used = filtered(family, holder, budget, order), family.cost(holder, divergence_at(order), along)
        if total is None or used is None or total > exact(budget.epsilon):
            return 0.0, 0.0
        spare = less(less(exact(budget.epsilon), overhead(order, budget.delta)), used)
        return gaussian_room(spare, order, _usual_delta(family, name, budget.delta)), budget.delta
    if not sum_fits(family, holder, budget.epsilon, budget.delta):
        return 0.0, 0.0
    used_epsilon, used_delta = family.cost(holder, epsilon_of, along), family.cost(holder, delta_of, along)
    assert used_epsilon is not None and used_delta is not None
    return rounded_down(left(budget.epsilon, used_epsilon)), rounded_down(left(budget.delta, used_delta))


def _usual_delta(family: Family, name: str, most: float) -> float:
    """The delta of the last booking, which the next plan most likely has, too."""
    booked = [booking.delta for booking in family.below(name) if booking.delta > 0]
    return min(booked[-1], most) if booked else most


def _split_costs(family: Family, name: str) -> list[SplitCost]:
    """Each split by itself, as if nothing else were booked on its parent."""
    found = []
    for split in family.splits.get(name, ()):
        alone = replace(
            family,
            bookings={each: bookings for each, bookings in family.bookings.items() if each != name},
            splits={**family.splits, name: (split,)},
        )
        epsilon, delta = spent(alone, name)
        found.append(
            SplitCost(split.name, split.kind, len(split.parts), split.disjoint, rounded_up(epsilon), rounded_up(delta))
        )
    return found


def read_accounts(db: Database) -> list[Account]:
    """All accounts that have a budget, a booking or parts; a whole data set comes before its parts."""
    names = db.execute(
        "SELECT dataset FROM budgets UNION SELECT dataset FROM bookings UNION SELECT dataset FROM splits"
    )
    found = []
    for root in sorted({read_root(db, str(name)) for (name,) in names.fetchall()}):
        family = read_family(db, root)
        for name in family.accounts():
            used = name in family.budgets or name in family.bookings or name in family.splits
            if used and (account := account_in(family, name)) is not None:
                found.append(account)
    return found
