"""A record together with its label: what a mixture of records of all classes is a sum of (DPMix)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.vault.maps.base import Map


@dataclass(frozen=True, kw_only=True)
class Labelled(Map):
    """scale * (x + shift), and after it weight * (the label's one-hot vector), zeros for a label beyond `classes`.

    Guarantee: record and label are one row, so the vault clips them together (rule 2); apart, each would need its own noise.
    """

    kind: ClassVar[str] = "labelled"
    classes: int
    weight: float = 1.0
    shift: float = 0.0
    scale: float = 1.0

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        label = (y[:, None] == torch.arange(self.classes, device=y.device)).to(x.dtype)
        return torch.cat([(x.flatten(1) + self.shift) * self.scale, self.weight * label], dim=1)
