"""Which budget is in force for an account, and by which rule its bookings are composed.

Taking whichever of two rules fits at each booking would not be free: whoever chooses the rule after seeing answers gets the
deltas of both. So an account commits to one rule at the first booking under a budget, by public numbers alone, and keeps it.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal

from limbeck.vault.ledger.family import Budget, Commitment, Family, Measure, delta_of, epsilon_of
from limbeck.vault.ledger.renyi_filter import divergence, order_for, overhead
from limbeck.vault.ledger.sums import Booking, added, exact, less


def divergence_at(order: int) -> Measure:
    return lambda booking: divergence(booking.plan, booking.counts, order)


def budget_of(family: Family, account: str) -> Budget | None:
    """The budget in force; None for an account without one of its own.

    Guarantee: without an owner's budget the first counted booking of a whole data set, or of one of its parts, is the
    budget of the whole. A part is never given a budget by a booking.
    """
    if account in family.budgets:
        return family.budgets[account]
    first = next(iter(family.below(account)), None) if account == family.root else None
    return None if first is None else Budget(0, first.epsilon, first.delta)


def has_filter(budget: Budget) -> bool:
    """Whether a Renyi filter can stand for this budget at all."""
    return budget.number > 0 and math.isfinite(budget.epsilon) and budget.delta > 0


def committed(family: Family, account: str, budget: Budget) -> Commitment | None:
    """The rule that this account is bound to under its budget.

    Guarantee: it binds as long as a booking counts that was made under it, whatever became of the first one. When all of
    them were given back, nothing was ever answered under it.
    """
    found = [each for each in family.commitments.get(account, ()) if each.budget == budget.number]
    if not found:
        return None
    return found[-1] if any(booking.number >= found[-1].booking for booking in family.below(account)) else None


def commitment_for(family: Family, account: str, budget: Budget, plan: Booking) -> Commitment:
    """The rule to commit to, if `plan` is the first booking under this budget.

    Guarantee: follows from the budget, from what is booked and from this plan's price, and from no answer. The rule by
    which more copies of this very plan would fit; the plain sum where both are equal, or where there is no curve. A plan
    that fits by one of the two is never refused because of the other.
    """
    order = order_for(budget.epsilon, budget.delta) if has_filter(budget) else 0
    by_filter = _copies_by_filter(family, account, budget, plan, order) if order else 0
    if by_filter > _copies_by_sum(family, account, budget, plan):
        return Commitment(account, budget.number, 0, "renyi", order)
    return Commitment(account, budget.number, 0, "sum", order)


def _copies_by_sum(family: Family, account: str, budget: Budget, plan: Booking) -> float:
    if not sum_fits(family, account, budget.epsilon, budget.delta):
        return 0
    fits, along = math.inf, family.path(plan.dataset)
    for limit, measure in ((budget.epsilon, epsilon_of), (budget.delta, delta_of)):
        used, price = family.cost(account, measure, along), measure(plan)
        assert used is not None
        if price > 0 and math.isfinite(limit):
            fits = min(fits, _whole(less(exact(limit), used), price))
    return fits


def _copies_by_filter(family: Family, account: str, budget: Budget, plan: Booking, order: int) -> float:
    total, price = filtered(family, account, budget, order), divergence_at(order)(plan)
    if total is None or total > exact(budget.epsilon) or price is None or plan.delta > budget.delta:
        return 0
    # The other parts of a disjoint split leave room for this plan's own.
    used = family.cost(account, divergence_at(order), family.path(plan.dataset))
    assert used is not None
    return _whole(less(less(exact(budget.epsilon), overhead(order, budget.delta)), used), price)


def _whole(room: Decimal, price: Decimal) -> float:
    if room <= 0 or not price.is_finite():
        return 0
    return float((room / price).to_integral_value(ROUND_FLOOR))


def sum_fits(family: Family, account: str, epsilon: float, delta: float) -> bool:
    used_epsilon, used_delta = family.cost(account, epsilon_of), family.cost(account, delta_of)
    assert used_epsilon is not None and used_delta is not None
    return exact(epsilon) >= used_epsilon and exact(delta) >= used_delta


def filtered(family: Family, account: str, budget: Budget, order: int) -> Decimal | None:
    """The epsilon, at the budget's delta, of everything booked, by the filter; None where a booking has no curve."""
    if not has_filter(budget):
        return None
    used = family.cost(account, divergence_at(order))
    return None if used is None else added(used, overhead(order, budget.delta))


def filter_fits(family: Family, account: str, budget: Budget) -> bool:
    """Whether everything booked fits a new budget by the filter at that budget's own order."""
    if not has_filter(budget):
        return False
    total = filtered(family, account, budget, order_for(budget.epsilon, budget.delta))
    return total is not None and total <= exact(budget.epsilon)
