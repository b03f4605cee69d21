"""The questions that may be put to a vault. Each is a frozen, public value that knows its price.

CONSTITUTION of the query format. Certificates outlive this code, so these lines bind every change to it:

 1. A query kind, once released, is never removed, and no field of it ever changes its meaning.
 2. A new field needs a default that means what its absence meant.
 3. A reader that meets an unknown kind, field or value refuses it. Unknown never means harmless.
 4. Every field is public. A query is built from the schema, from settings and from earlier answers, from nothing else.
 5. `event()` is the only statement of what a query costs (rule 1 of the walls): no caller may state another.
 6. One record, added or removed, moves the sum by at most `clip` in L2 norm over everything that the query returns
    (rule 2). A kind for which this cannot be proved is not a query kind.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from dp_accounting import DpEvent, GaussianDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent

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


@dataclass(frozen=True, kw_only=True)
class ClippedSum:
    """Poisson-sample the records, map each to a vector, clip it, add up, add Gaussian noise once.

    label             names the query inside its plan
    map               kind of the per-record map (limbeck.vault.maps)
    clip              bound on the L2 norm of what one record adds
    noise_multiplier  standard deviation of the noise / clip; 0 is not private and priced as infinite
    rate              chance of each record to be in the sample: one number, or one per class
    by_class          one row per class instead of one row; a record touches the row of its class only
    count             how often it may be asked, each time with fresh sample, noise and map parameters

    Guarantee: one answer is the Poisson-sampled Gaussian mechanism with noise `noise_multiplier` and sampling rate
    max(rate). Classes are disjoint, so a table with one row per class is one mechanism and not one per class; the
    price rises with the rate (Corollary III.5 of the DPDC paper), so the largest rate covers every class.
    """

    label: str
    map: str
    clip: float
    noise_multiplier: float
    rate: tuple[float, ...] = (1.0,)
    by_class: bool = True
    count: int = 1

    kind = "clipped_sum"

    def __post_init__(self) -> None:
        if not self.label or not self.map:
            raise BadInput("A query needs a label and the kind of its map.")
        if not self.rate or not all(SMALLEST_NORMAL <= rate <= 1 for rate in self.rate):
            raise BadInput(f"rate must lie in (0, 1], got rate={self.rate} in query '{self.label}'.")
        require_count("count", self.count)
        if self.noise_multiplier == 0:
            if not self.clip > 0:
                raise BadInput(f"clip must be positive, got clip={self.clip} in query '{self.label}'.")
        else:
            require_positive("noise_multiplier", self.noise_multiplier)
            require_positive("clip", self.clip)

    @property
    def is_private(self) -> bool:
        return self.noise_multiplier > 0

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on each number of the answer."""
        return self.noise_multiplier * self.clip if self.is_private else 0.0

    def rate_of(self, classes: int) -> tuple[float, ...]:
        """The sampling rate of each class."""
        if len(self.rate) == 1:
            return self.rate * classes
        if len(self.rate) != classes:
            raise BadInput(f"Query '{self.label}' has {len(self.rate)} rates for {classes} classes.")
        return self.rate

    def event(self) -> DpEvent:
        """What all `count` answers cost together.

        Guarantee: depends on the public fields only, never on data, and on every field that matters for privacy.
        """
        if not self.is_private:
            return NonPrivateDpEvent()
        once: DpEvent = GaussianDpEvent(self.noise_multiplier)
        if max(self.rate) < 1:
            once = PoissonSampledDpEvent(max(self.rate), once)
        return SelfComposedDpEvent(once, self.count)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **dataclasses.asdict(self),
            "clip": finite_or_word(self.clip),
            "rate": list(self.rate),
        }


Query = ClippedSum


def query_from_dict(values: dict[str, Any]) -> Query:
    """Read a query back from a certificate or a ledger; refuse whatever is not known (article 3)."""
    fields = {field.name for field in dataclasses.fields(ClippedSum)}
    if values.get("kind") != ClippedSum.kind:
        raise BadInput(f"Unknown query kind {values.get('kind')!r}; this version knows '{ClippedSum.kind}'.")
    if set(values) - fields - {"kind"}:
        raise BadInput(f"Unknown query fields: {', '.join(sorted(set(values) - fields - {'kind'}))}.")
    try:
        plain = {key: value for key, value in values.items() if key != "kind"}
        return ClippedSum(**{**plain, "rate": tuple(plain["rate"]), "clip": number_from(plain["clip"])})
    except (TypeError, KeyError, ValueError) as error:
        raise BadInput(f"A query does not have the right form: {error}.") from None


def finite_or_word(value: float) -> float | str:
    """JSON knows no infinity: write the word instead."""
    return "infinity" if math.isinf(value) else value


def number_from(value: float | str) -> float:
    return math.inf if value == "infinity" else float(value)
