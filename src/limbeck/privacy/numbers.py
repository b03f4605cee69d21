"""Public numbers as they are checked, written to JSON, and shown in a refusal."""

from __future__ import annotations

import math

from limbeck.errors import BadInput

SMALLEST_NORMAL = 2.2250738585072014e-308


def require_positive(name: str, value: float) -> None:
    """Refuse what is no ordinary positive number; NaN and subnormal numbers defeat comparisons and products."""
    if not (isinstance(value, (int, float)) and SMALLEST_NORMAL <= value < math.inf):
        raise BadInput(f"{name} must be a positive finite number, got {name}={value}.")


def require_count(name: str, value: int) -> None:
    """Refuse what is no whole number from 1 on that a double holds exactly."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**53:
        raise BadInput(f"{name} must be a whole number from 1 to 2^53 - 1, got {name}={value!r:.40}.")


def finite_or_word(value: float) -> float | str:
    """JSON knows no infinity: write the word instead."""
    return "infinity" if math.isinf(value) else value


def number_from(value: float | str) -> float:
    return math.inf if value == "infinity" else float(value)


def apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers of a refusal, with as many digits as it takes to tell them apart, six at least.

    >>> apart(0.0499999999, 0.05), apart(2.0, 1.0)
    (('0.0499999999', '0.05'), ('2', '1'))
    """
    for digits in range(6, 18):
        texts = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts
