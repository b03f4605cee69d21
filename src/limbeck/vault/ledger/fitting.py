"""Whether plans fit a budget, and the sentence if they do not: what was requested, what remains, and the next command."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from limbeck.errors import BudgetRefused
from limbeck.vault.ledger.accounts import account_in, spent
from limbeck.vault.ledger.family import Budget, Commitment, Family, delta_of, epsilon_of
from limbeck.vault.ledger.rules import (
    budget_of,
    commitment_for,
    committed,
    filter_fits,
    filtered,
    sum_fits,
)
from limbeck.vault.ledger.sums import (
    INFINITE,
    Booking,
    added,
    budget_command,
    exact,
    left,
    less,
    rounded_down,
    rounded_up,
)

MEASURES = (epsilon_of, delta_of)
# How far to look for an epsilon whose own order lets everything fit, in steps of a hundredth.
_STEPS, _STEP = 400, 1.01
# The number of a budget that nobody has set yet: no rule on record belongs to it.
_NEW = 2**62


def check_fits(family: Family, tried: Sequence[Booking]) -> list[Commitment]:
    """The rules that these bookings commit their accounts to, or a refusal by each account that cannot pay for them.

    Guarantee: returns only if all counted bookings plus these stay within the budget of every account that they touch:
    their own, that of what it is a part of, and so on up to the whole data set.
    """
    after = family.with_bookings(tried)
    made: list[Commitment] = []
    refused: list[tuple[str, str | None]] = []
    touched = dict.fromkeys(name for booking in tried for name in family.path(booking.dataset))
    for name in touched:
        budget = budget_of(family, name)
        if budget is None:
            if name == family.root and any(math.isinf(booking.epsilon) for booking in tried):
                refused.append(_never_private(name, tried[0]))
            continue
        bound, lacks = _lacks(family, after, name, budget, tried)
        if lacks:
            refused.append((_sentence(family, name, budget, tried, lacks), enough(family, name, budget, tried)))
        elif budget.number and committed(family, name, budget) is None:
            made.append(bound)
    if refused:
        _refuse(refused)
    return made


def _lacks(
    family: Family, after: Family, name: str, budget: Budget, tried: Sequence[Booking]
) -> tuple[Commitment, list[str]]:
    """The rule that the account is bound to, now or by these plans, and what it lacks to pay for them."""
    mine = [booking for booking in tried if name in family.path(booking.dataset)]
    bound = committed(family, name, budget) or commitment_for(family, name, budget, mine[0])
    if bound.rule == "renyi":
        return bound, _lacks_of_filter(family, after, name, budget, bound.order, mine)
    return bound, _lacks_of_sum(family, after, name, budget, mine)


def _refuse(refused: Sequence[tuple[str, str | None]]) -> None:
    commands = [command for _, command in refused if command]
    possible = len(commands) == len(refused)
    closing = (
        "A larger budget is the data owner's decision." if possible else "No budget can allow it: delta would reach 1."
    )
    raise BudgetRefused(
        f"{' '.join(sentence for sentence, _ in refused)} Nothing was booked. {closing}",
        " && ".join(commands) if possible else None,
    )


def _never_private(name: str, plan: Booking) -> tuple[str, str | None]:
    """Giving up privacy is the owner's explicit word, never the side effect of a first run."""
    return (
        f"This plan is not private (epsilon requested inf), and data set {name!r} has no budget that allows it "
        "(remaining 0.0, difference inf).",
        budget_command(name, math.inf, plan.delta),
    )


def _sentence(family: Family, name: str, budget: Budget, tried: Sequence[Booking], lacks: Sequence[str]) -> str:
    parts = dict.fromkeys(booking.dataset for booking in tried if name in family.path(booking.dataset)[1:])
    of_it = f", of which {', '.join(map(repr, parts))} is a part," if parts else ""
    plans = "this plan" if len(tried) == 1 else f"these {len(tried)} plans"
    sentence = f"The budget of data set {name!r}{of_it} does not cover {plans}: {'; '.join(lacks)}."
    account = account_in(family, name)
    if account and not _fits_now(family, name, budget):
        sentence += (
            f" It is overspent already: with its parts it has booked epsilon {account.spent_epsilon!r} and delta "
            f"{account.spent_delta!r} of {budget.epsilon!r} and {budget.delta!r}."
        )
    return sentence


def _fits_now(family: Family, name: str, budget: Budget) -> bool:
    bound = committed(family, name, budget)
    if bound is not None and bound.rule == "renyi":
        now = filtered(family, name, budget, bound.order)
        return now is not None and now <= exact(budget.epsilon)
    return sum_fits(family, name, budget.epsilon, budget.delta) or (bound is None and filter_fits(family, name, budget))


def _lacks_of_sum(family: Family, after: Family, name: str, budget: Budget, tried: Sequence[Booking]) -> list[str]:
    wanted, limits = spent(after, name), (budget.epsilon, budget.delta)
    return [
        _lack(kind, *_asked(family, after, name, measure, tried, limit), limit)
        for kind, measure, want, limit in zip(("epsilon", "delta"), MEASURES, wanted, limits, strict=True)
        if want > exact(limit)
    ]


def _asked(
    family: Family,
    after: Family,
    name: str,
    measure: Callable[[Booking], Decimal],
    tried: Sequence[Booking],
    limit: float,
) -> tuple[Decimal, Decimal]:
    """What these plans ask of an account, and what it has spent as far as it concerns them.

    Where all of them are on one account, the other parts of a disjoint split leave them room.
    """
    names = {booking.dataset for booking in tried}
    along = family.path(names.pop()) if len(names) == 1 else ()
    everything, used, wanted = (
        family.cost(name, measure),
        family.cost(name, measure, along),
        after.cost(name, measure),
    )
    assert everything is not None and used is not None and wanted is not None
    if not along:
        if used.is_infinite():  # cannot grow, so what they ask is what they cost by themselves
            alone = replace(family, bookings={}).with_bookings(tried).cost(name, measure)
            assert alone is not None
            return alone, used
        return less(wanted, used), used
    asked = Decimal(0)
    for booking in tried:
        asked = added(asked, measure(booking))
    return asked, used if everything <= exact(limit) else everything


def _lack(kind: str, requested: Decimal, used: Decimal, limit: float) -> str:
    remaining = left(limit, used)
    difference = INFINITE if requested.is_infinite() else less(requested, remaining)
    return (
        f"{kind} requested {rounded_up(requested)!r}, remaining {rounded_down(remaining)!r}, "
        f"difference {rounded_up(difference)!r}"
    )


def _lacks_of_filter(
    family: Family, after: Family, name: str, budget: Budget, order: int, tried: Sequence[Booking]
) -> list[str]:
    """In the filter's own currency, which adds up: Renyi divergence at the order that the account is bound to."""
    lacks = []
    largest = max(booking.delta for booking in tried)
    if largest > budget.delta:
        lacks.append(_lack("delta", exact(largest), Decimal(0), budget.delta))
    wanted = filtered(after, name, budget, order)
    if wanted is None:
        lacks.append(
            f"its plans are composed by a Renyi filter of order {order}, and one of them has no curve there, such as one "
            "that is not private; epsilon requested "
            f"{max(booking.epsilon for booking in tried)!r}, remaining 0.0 for such a plan"
        )
    elif wanted > exact(budget.epsilon):
        before = filtered(family, name, budget, order)
        assert before is not None
        lacks.append(
            _lack("epsilon", less(wanted, before), before, budget.epsilon)
            + f" (composed by the Renyi filter of order {order}, at delta {budget.delta!r})"
        )
    return lacks


def enough(family: Family, name: str, budget: Budget, tried: Sequence[Booking]) -> str | None:
    """The command that sets a budget under which all these plans can be booked, whichever rule it will bind the account to."""
    wanted_epsilon, wanted_delta = spent(family.with_bookings(tried), name)
    epsilon, delta = max(budget.epsilon, rounded_up(wanted_epsilon)), max(budget.delta, rounded_up(wanted_delta))
    bound = committed(family, name, budget)
    if bound is not None and bound.rule == "renyi":
        # The deltas of plans are not added up there, so the budget's may stay.
        largest = max(budget.delta, *(booking.delta for booking in tried))
        if (found := _grown(family, name, Budget(_NEW, budget.epsilon, largest), tried, budget)) is not None:
            return budget_command(name, found.epsilon, found.delta)
    found = _grown(family, name, Budget(_NEW, epsilon, delta), tried, budget)
    return budget_command(name, found.epsilon if found else epsilon, delta)


def _grown(family: Family, name: str, start: Budget, tried: Sequence[Booking], in_force: Budget) -> Budget | None:
    """The first budget from `start` on, in steps of a hundredth, that the owner can set and that covers these plans.

    To set the one in force again changes nothing, and its account stays bound to the rule that refuses them.
    """
    trial = start
    for _ in range(_STEPS):
        under = replace(family, budgets={**family.budgets, name: trial})
        covered = sum_fits(under, name, trial.epsilon, trial.delta) or filter_fits(under, name, trial)
        if in_force.number and (trial.epsilon, trial.delta) == (in_force.epsilon, in_force.delta):
            covered = False
        if covered and not _lacks(under, under.with_bookings(tried), name, trial, tried)[1]:
            return trial
        trial = replace(trial, epsilon=math.ceil(trial.epsilon * _STEP * 1e4) / 1e4)
    return None


def check_not_below_spent(family: Family, name: str, epsilon: float, delta: float) -> None:
    """Guarantee: returns only if the new budget covers everything that is already spent, by the plain sum or by the filter
    at the new budget's own order."""
    if sum_fits(family, name, epsilon, delta) or filter_fits(family, name, Budget(1, epsilon, delta)):
        return
    used_epsilon, used_delta = spent(family, name)
    account = account_in(family, name)
    assert account is not None
    raise BudgetRefused(
        f"The budget of data set {name!r} cannot be set to epsilon {epsilon!r} and delta {delta!r}, because "
        f"epsilon {account.spent_epsilon!r} and delta {account.spent_delta!r} are already spent. Nothing was changed.",
        budget_command(name, max(epsilon, rounded_up(used_epsilon)), max(delta, rounded_up(used_delta))),
    )
