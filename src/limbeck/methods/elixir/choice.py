"""What Elixir chooses for whoever leaves it open."""

from __future__ import annotations

from dataclasses import dataclass

from limbeck.methods.base import Chosen


@dataclass(frozen=True, kw_only=True)
class ElixirChoice(Chosen):
    """The settings of Elixir that may be left open, all of them set; without a generator it has no kind."""

    T: int
    first: float
    width: int
    mirror: bool
    waves: int
    size: int
    answers: bool
    generator: int
    generator_kind: str | None
