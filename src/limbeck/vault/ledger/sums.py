"""Exact sums of epsilon and delta, and what counts as a spend.

A float means the decimal number that it prints as: ten bookings of 0.1 are 1.0, not 0.9999999999999999. Sums are exact;
only what is shown is rounded, and always against the data set: spent goes up, remaining goes down.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from numbers import Real
from typing import Literal

from limbeck.errors import BadInput

State = Literal["open", "finished", "void"]

# Doubles span 10^-308..10^308 with 17 digits, so 800 digits hold any sum; the Inexact trap proves it at every addition.
_EXACT = Context(prec=800, Emin=-9999, Emax=9999, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
INFINITE = Decimal("Infinity")


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
    number: int = 0
    plan: str = field(default="", repr=False)
    counts: str = field(default="", repr=False)

    @property
    def counted(self) -> bool:
        """Guarantee: every booking counts in full, unless it is void, which means that nothing was ever answered for it."""
        return self.state != "void"


def exact(value: float) -> Decimal:
    """The decimal number that the float prints as."""
    return Decimal(repr(value))


def total(values: Iterable[float]) -> Decimal:
    """Guarantee: the sum is exact, so no order of bookings and no rounding ever gains budget."""
    result = Decimal(0)
    for value in values:
        result = _EXACT.add(result, exact(value))
    return result


def added(first: Decimal, second: Decimal) -> Decimal:
    return _EXACT.add(first, second)


def less(first: Decimal, second: Decimal) -> Decimal:
    return _EXACT.subtract(first, second)


def left(budget: float, used: Decimal) -> Decimal:
    """What remains of a budget; an infinite budget is never used up."""
    return INFINITE if math.isinf(budget) else max(Decimal(0), _EXACT.subtract(exact(budget), used))


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
