"""Exact sums of epsilon and delta, what counts as a spend, and the account of one data set.

A float means the decimal number that it prints as: ten bookings of 0.1 are 1.0, not 0.9999999999999999. Sums are exact;
only what is shown is rounded, and always against the data set: spent goes up, remaining goes down.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from numbers import Real
from typing import Literal

from limbeck.errors import BadInput, BudgetRefused

State = Literal["open", "finished", "void"]

# Doubles span 10^-308..10^308 with 17 digits, so 800 digits hold any sum; the Inexact trap proves it at every addition.
_EXACT = Context(prec=800, Emin=-9999, Emax=9999, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
_INFINITE = Decimal("Infinity")


@dataclass(frozen=True)
class Booking:
    """One plan that was paid for. A void booking was given back before anything was answered."""

    grant: str
    dataset: str
    epsilon: float
    delta: float
    method: str
    created: str
    state: State


@dataclass(frozen=True)
class Account:
    """The budget of one data set and everything that was booked on it."""

    dataset: str
    epsilon: float
    delta: float
    spent_epsilon: float
    spent_delta: float
    bookings: tuple[Booking, ...]

    @property
    def remaining_epsilon(self) -> float:
        """Guarantee: never more than what book() would still accept."""
        return rounded_down(left(self.epsilon, spent(self.bookings)[0]))

    @property
    def remaining_delta(self) -> float:
        """Guarantee: never more than what book() would still accept."""
        return rounded_down(left(self.delta, spent(self.bookings)[1]))


def account_of(dataset: str, epsilon: float, delta: float, bookings: tuple[Booking, ...]) -> Account:
    """Join a budget and its bookings; spent is rounded up."""
    spent_epsilon, spent_delta = spent(bookings)
    return Account(dataset, epsilon, delta, rounded_up(spent_epsilon), rounded_up(spent_delta), bookings)


def exact(value: float) -> Decimal:
    """The decimal number that the float prints as."""
    return Decimal(repr(value))


def total(values: Iterable[float]) -> Decimal:
    """Guarantee: the sum is exact, so no order of bookings and no rounding ever gains budget."""
    result = Decimal(0)
    for value in values:
        result = _EXACT.add(result, exact(value))
    return result


def spent(bookings: Iterable[Booking]) -> tuple[Decimal, Decimal]:
    """Basic composition over plans: epsilons add up and deltas add up.

    Guarantee: every booking counts in full, unless it is void, which means that nothing was ever answered for it.
    """
    counted = [booking for booking in bookings if booking.state != "void"]
    return total(booking.epsilon for booking in counted), total(booking.delta for booking in counted)


def left(budget: float, used: Decimal) -> Decimal:
    """What remains of a budget; an infinite budget is never used up."""
    return _INFINITE if math.isinf(budget) else max(Decimal(0), _EXACT.subtract(exact(budget), used))


def rounded_up(value: Decimal) -> float:
    """The smallest float that does not print below the value."""
    near = float(value)
    return near if exact(near) >= value else math.nextafter(near, math.inf)


def rounded_down(value: Decimal) -> float:
    """The largest float that does not print above the value."""
    near = float(value)
    return near if exact(near) <= value else math.nextafter(near, -math.inf)


def _number(name: str, value: object) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise BadInput(f"Expected {name}={value!r} to be a number.")
    try:
        return float(value) + 0.0  # Turns -0.0 into 0.0, which would otherwise be stored as a second kind of zero.
    except OverflowError:
        raise BadInput(f"Expected {name} to fit a double precision number, but it is larger.") from None


def checked_epsilon(value: object) -> float:
    """Guarantee: positive, never NaN and never so small that arithmetic would lose it. Infinity means: not private."""
    epsilon = _number("epsilon", value)
    if not epsilon >= sys.float_info.min:  # Written so that NaN fails too.
        raise BadInput(f"Expected epsilon={epsilon!r} to be a positive normal number, such as 1.0.")
    return epsilon


def checked_delta(value: object) -> float:
    """Guarantee: zero (pure privacy) or a normal number below one, never NaN."""
    delta = _number("delta", value)
    if delta != 0.0 and not sys.float_info.min <= delta < 1.0:
        raise BadInput(f"Expected delta={delta!r} to be 0 or a positive normal number below 1, such as 1e-05.")
    return delta


def budget_command(dataset: str, epsilon: float, delta: float) -> str | None:
    """The command that sets this budget, or None where no budget can (a delta of one protects nobody)."""
    if delta >= 1.0:
        return None
    return f"limbeck budget set {shlex.quote(dataset)} --epsilon {epsilon!r} --delta {delta!r}"


def check_fits(account: Account, epsilon: float, delta: float) -> None:
    """Guarantee: returns only if all counted bookings plus this one stay within the budget, computed exactly."""
    used_epsilon, used_delta = spent(account.bookings)
    wanted_epsilon = _EXACT.add(used_epsilon, exact(epsilon))
    wanted_delta = _EXACT.add(used_delta, exact(delta))
    lacks = []
    if wanted_epsilon > exact(account.epsilon):
        lacks.append(_lack("epsilon", epsilon, left(account.epsilon, used_epsilon)))
    if wanted_delta > exact(account.delta):
        lacks.append(_lack("delta", delta, left(account.delta, used_delta)))
    if not lacks:
        return
    command = budget_command(
        account.dataset,
        max(account.epsilon, rounded_up(wanted_epsilon)),
        max(account.delta, rounded_up(wanted_delta)),
    )
    closing = (
        "A larger budget is the data owner's decision." if command else "No budget can allow it: delta would reach 1."
    )
    raise BudgetRefused(
        f"The budget of data set {account.dataset!r} does not cover this plan: {'; '.join(lacks)}. "
        f"Nothing was booked. {closing}",
        command,
    )


def _lack(name: str, requested: float, remaining: Decimal) -> str:
    difference = _INFINITE if math.isinf(requested) else _EXACT.subtract(exact(requested), remaining)
    return (
        f"{name} requested {requested!r}, remaining {rounded_down(remaining)!r}, difference {rounded_up(difference)!r}"
    )


def check_not_below_spent(account: Account, epsilon: float, delta: float) -> None:
    """Guarantee: returns only if the new budget covers everything that was already spent."""
    used_epsilon, used_delta = spent(account.bookings)
    if exact(epsilon) >= used_epsilon and exact(delta) >= used_delta:
        return
    raise BudgetRefused(
        f"The budget of data set {account.dataset!r} cannot be set to epsilon {epsilon!r} and delta {delta!r}, because "
        f"epsilon {account.spent_epsilon!r} and delta {account.spent_delta!r} are already spent. Nothing was changed.",
        budget_command(account.dataset, max(epsilon, account.spent_epsilon), max(delta, account.spent_delta)),
    )
