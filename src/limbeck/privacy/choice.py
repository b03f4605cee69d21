"""The query kind for choosing: which of several public candidates scores highest, told with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dp_accounting import DpEvent, NonPrivateDpEvent, SelfComposedDpEvent

from limbeck.errors import BadInput
from limbeck.privacy.bounded_range import BoundedRangeDpEvent
from limbeck.privacy.noised import Noised, require_clip
from limbeck.privacy.numbers import require_count, require_positive


@dataclass(frozen=True, kw_only=True)
class Choice(Noised):
    """Score every candidate on all records, and draw one with a chance in proportion to exp(score / (noise_multiplier * clip)).

    label             names the query inside its plan
    map               kind of the scores (limbeck.vault.choices)
    clip              bound on how far one record moves the score of any candidate
    noise_multiplier  what scores are divided by / clip; 0 takes the highest one, which is not private and priced as infinite
    count             how often it may be asked, each time with candidates and scores of its own
    on_grid           scores are whole steps, and the draw is exact; there is no other way

    This is the exponential mechanism (McSherry and Talwar 2007), or the highest score after Gumbel noise of scale
    noise_multiplier * clip on each. The answer is one number, the place of the candidate that was drawn.

    Guarantee: one answer has a bounded range of 2 / noise_multiplier (limbeck.privacy.bounded_range), whatever the candidates
    are. In zero-concentrated privacy that is (2 / noise_multiplier)^2 / 8 = 1 / (2 noise_multiplier^2): a choice weighs as much
    as a Gaussian answer of the same multiplier.
    """

    label: str
    map: str
    clip: float
    noise_multiplier: float
    count: int = 1
    on_grid: bool = True

    kind = "choice"

    def __post_init__(self) -> None:
        if not self.label or not self.map:
            raise BadInput("A query needs a label and the kind of its scores.")
        require_count("count", self.count)
        require_clip(self.clip)
        if self.noise_multiplier != 0:
            require_positive("noise_multiplier", self.noise_multiplier)
        if self.on_grid is not True:
            raise BadInput(f"Query '{self.label}' chooses by scores in doubles; scores are whole steps.")

    def event(self) -> DpEvent:
        """What all `count` answers cost together. Guarantee: depends on the public fields only."""
        if not self.is_private:
            return NonPrivateDpEvent()
        return SelfComposedDpEvent(BoundedRangeDpEvent(2 / self.noise_multiplier), self.count)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **self._plain()}
