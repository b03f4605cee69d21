"""What every query has in common: noise in proportion to how far one unit moves what is asked for."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from limbeck.errors import BadInput
from limbeck.privacy.grid import LEAST_CLIP, step_of
from limbeck.privacy.numbers import apart, finite_or_word, require_positive


class Noised:
    """What every query has in common: noise in proportion to its clip. The fields are its own.

    In a file a query on the grid states its `step`. One without that entry is from before 0.4.0: its sums and noise are doubles.
    """

    clip: float
    noise_multiplier: float
    count: int
    on_grid: bool

    @property
    def step(self) -> float:
        """What sums and noise are whole multiples of (limbeck.privacy.grid); 0 for doubles."""
        return step_of(self.clip, self.noise_multiplier) if self.on_grid else 0.0

    def _plain(self) -> dict[str, Any]:
        """All fields for JSON. The step stands for the grid."""
        assert dataclasses.is_dataclass(self) and not isinstance(self, type)
        values = {key: value for key, value in dataclasses.asdict(self).items() if key != "on_grid"}
        step = {"step": self.step} if self.step else {}
        return {**values, "clip": finite_or_word(self.clip), **step}

    @property
    def is_private(self) -> bool:
        return self.noise_multiplier > 0

    @property
    def chance(self) -> float:
        """The chance that one record has a part in one draw of an answer, at most."""
        return 1.0

    @property
    def weight(self) -> float:
        """What all answers weigh in the price, next to other queries: squares of chance / noise add up over Gaussian answers."""
        return self.count * (self.chance / self.noise_multiplier) ** 2 if self.is_private else math.inf

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on each number of the answer."""
        return self.noise_multiplier * self.clip if self.is_private else 0.0


def require_clip(clip: float) -> None:
    """Guarantee: a clip that is paid for is one that the maps can keep to (limbeck.privacy.grid)."""
    require_positive("clip", clip)
    if clip < LEAST_CLIP:
        shown, least = apart(clip, LEAST_CLIP)
        raise BadInput(f"clip={shown} is below {least}, where answers in single precision are 0; use a larger clip.")
