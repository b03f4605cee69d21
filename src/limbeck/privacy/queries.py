"""The questions that may be put to a vault. Each is a frozen, public value that knows its price.

CONSTITUTION of the query format. Certificates outlive this code, so these lines bind every change to it:

 1. A query kind, once released, is never removed, and no field of it ever changes its meaning.
 2. A new field needs a default that means what its absence meant.
 3. A reader that meets an unknown kind, field or value refuses it. Unknown never means harmless.
 4. Every field is public. A query is built from the schema, from settings and from earlier answers, from nothing else.
 5. `event()` is the only statement of what a query costs (rule 1 of the walls): no caller may state another.
 6. One record, added or removed, moves the sum by at most `clip` in L2 norm over everything that the query returns
    (rule 2). A kind for which this cannot be proved is not a query kind. A kind that returns several parts, each drawn on
    its own, keeps this for each part and prices each part. A kind that chooses keeps it for the score of each candidate.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)

from limbeck.errors import BadInput
from limbeck.privacy.choice import Choice
from limbeck.privacy.grid import sampler_delta
from limbeck.privacy.noised import Noised, require_clip
from limbeck.privacy.numbers import SMALLEST_NORMAL, number_from, require_count, require_positive

__all__ = [
    "KINDS",
    "Choice",
    "ClippedSum",
    "Noised",
    "Query",
    "TeacherGradient",
    "TeacherVote",
    "query_from_dict",
    "sampler_delta_of",
]


@dataclass(frozen=True, kw_only=True)
class ClippedSum(Noised):
    """Poisson-sample the records, map each to a vector, clip it, add up, add Gaussian noise once.

    label             names the query inside its plan
    map               kind of the per-record map (limbeck.vault.maps.base)
    clip              bound on the L2 norm of what one record adds
    noise_multiplier  standard deviation of the noise / clip; 0 is not private and priced as infinite
    rate              chance of each record to be in the sample: one number, or one per class
    by_class          one row per class instead of one row; a record touches the row of its class only
    count             how often it may be asked, each time with fresh sample, noise and map parameters
    on_grid           sums and noise in whole steps; False only where an older version booked it

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
    on_grid: bool = True

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
            require_clip(self.clip)
        if math.isinf(self.clip):
            object.__setattr__(self, "on_grid", False)  # no clip, no grid: written and read back it must stay equal

    @property
    def chance(self) -> float:
        return max(self.rate)

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
        return {"kind": self.kind, **self._plain(), "rate": list(self.rate)}


@dataclass(frozen=True, kw_only=True)
class TeacherVote(Noised):
    """Every teacher of an ensemble inside the vault votes for given synthetic records; add up, add Gaussian noise once.

    label             names the query inside its plan
    map               kind of the vote (limbeck.vault.ensemble.votes)
    clip              bound on how far one record moves the sum, in L2 norm; a teacher's whole vote has at most half of it
    noise_multiplier  standard deviation of the noise / clip; 0 is not private and priced as infinite
    teachers          how many vote. A record is part of one of them, by a keyed hash of that record alone
    count             how often it may be asked: ticks of the ensemble's clock
    on_grid           as in ClippedSum

    Guarantee: one answer is the Gaussian mechanism with noise `noise_multiplier`. A record that is added or removed changes
    what one teacher learns and nothing about the others, so in the sum one vote of norm at most clip / 2 gives way to
    another: the sum moves by at most clip. (Votes of k signs for each of n records have norm sqrt(k n): clip = 2 sqrt(k n).)
    """

    label: str
    map: str
    clip: float
    noise_multiplier: float
    teachers: int
    count: int = 1
    on_grid: bool = True

    kind = "teacher_vote"

    def __post_init__(self) -> None:
        _check_teacher_query(self)

    def event(self) -> DpEvent:
        """What all `count` answers cost together. Guarantee: depends on the public fields only."""
        if not self.is_private:
            return NonPrivateDpEvent()
        return SelfComposedDpEvent(GaussianDpEvent(self.noise_multiplier), self.count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._plain()}


@dataclass(frozen=True, kw_only=True)
class TeacherGradient(Noised):
    """Secretly drawn teachers tell how to change given synthetic records; each part of the answer is clipped and noised.

    The synthetic records are shared out into `draws` equal parts. For each part one of the `teachers` is drawn, uniformly and
    independently, and gives the gradient of its score with respect to that part.

    label, noise_multiplier, count, on_grid   as in TeacherVote
    map               kind of the question (limbeck.vault.ensemble.votes)
    clip              bound on how far one record moves one part, in L2 norm; a part's gradient has at most half of it
    teachers          how many there are to draw from
    draws             parts of one answer, each with a teacher of its own

    Guarantee: one answer is `draws` mechanisms, each a Gaussian with noise `noise_multiplier` over a subset of one teacher
    out of `teachers`. A record that is added or removed changes what one teacher learns; a part shows that only if this
    teacher was drawn for it, and then a gradient of norm at most clip / 2 gives way to another. Draws are independent, and
    who learns when is public, so parts and answers compose as mechanisms of their own. One draw for many records is one part
    that is clipped as a whole; pricing its records one by one, each with the chance of one draw, would be unsound (rule 2).
    """

    label: str
    map: str
    clip: float
    noise_multiplier: float
    teachers: int
    draws: int
    count: int = 1
    on_grid: bool = True

    kind = "teacher_gradient"

    def __post_init__(self) -> None:
        _check_teacher_query(self)
        require_count("draws", self.draws)

    @property
    def chance(self) -> float:
        return 1 / self.teachers

    def event(self) -> DpEvent:
        """What all `count` answers cost together. Guarantee: depends on the public fields only."""
        if not self.is_private:
            return NonPrivateDpEvent()
        once: DpEvent = GaussianDpEvent(self.noise_multiplier)
        if self.teachers > 1:
            once = SampledWithoutReplacementDpEvent(self.teachers, 1, once)
        return SelfComposedDpEvent(once, self.count * self.draws)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._plain()}


def _check_teacher_query(query: TeacherVote | TeacherGradient) -> None:
    if not query.label or not query.map:
        raise BadInput("A query needs a label and the kind of its question.")
    require_count("count", query.count)
    require_count("teachers", query.teachers)
    require_positive("clip", query.clip)
    if query.noise_multiplier != 0:
        require_positive("noise_multiplier", query.noise_multiplier)
        require_clip(query.clip)


Query = ClippedSum | TeacherVote | TeacherGradient | Choice
KINDS: dict[str, type[Query]] = {kind.kind: kind for kind in (ClippedSum, TeacherVote, TeacherGradient, Choice)}


def sampler_delta_of(queries: Sequence[Query]) -> float:
    """What the sampler of noise adds to delta over all answers on the grid. Guarantee: an upper bound, of public fields only."""
    return sampler_delta(sum(query.count for query in queries if query.is_private and query.on_grid))


def query_from_dict(values: dict[str, Any]) -> Query:
    """Read a query back from a certificate or a ledger; refuse whatever is not known (article 3)."""
    kind = KINDS.get(str(values.get("kind")))
    if kind is None:
        raise BadInput(f"Unknown query kind {values.get('kind')!r}; this version knows {', '.join(KINDS)}.")
    fields = {field.name for field in dataclasses.fields(kind)} - {"on_grid"}
    if set(values) - fields - {"kind", "step"}:
        raise BadInput(f"Unknown query fields: {', '.join(sorted(set(values) - fields - {'kind', 'step'}))}.")
    try:
        plain = {key: value for key, value in values.items() if key in fields}
        if kind is ClippedSum:
            plain["rate"] = tuple(plain["rate"])
        query = kind(**{**plain, "clip": number_from(plain["clip"]), "on_grid": "step" in values})
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise BadInput(f"A query does not have the right form: {error}.") from None
    if "step" in values and (isinstance(values["step"], bool) or values["step"] != query.step):
        raise BadInput(
            f"Query '{query.label}' states step={values['step']!r:.40}, its clip and noise make {query.step}."
        )
    return query
