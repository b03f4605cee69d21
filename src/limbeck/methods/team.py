"""How a method's own work on its set may be shared out over several processes, without the method knowing which.

A piece of work is a frozen value with a fixed number of parts. Each part is computed by itself, whoever computes it, and the
results come back in the order of the parts: so the set is the same for any number of processes. Work is made of answers and
public numbers, so it is free, and may travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """Base of all work that can be shared out. To add a kind: subclass it, and add it to `limbeck.methods.works`."""

    kind: ClassVar[str] = ""

    @property
    def parts(self) -> int:
        """How many parts there are: a function of the work alone, never of who is there to do it."""
        raise NotImplementedError

    def done(self, part: int, device: torch.device) -> Tensor:
        """The result of one part, computed on this device."""
        raise NotImplementedError


class Team(Protocol):
    """Who does the work."""

    def share(self, work: Work, device: torch.device) -> list[Tensor]:
        """The results of all parts, in their order."""
        ...


class Alone:
    """One process."""

    def share(self, work: Work, device: torch.device) -> list[Tensor]:
        return [work.done(part, device) for part in range(work.parts)]
