"""Random Fourier features: cosines and sines of random projections, whose inner product is close to a Gaussian kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class FourierSpec:
    """How records of dimension `numbers` become `features` features: half of them cosines, half sines.

    bandwidth is that of the Gaussian kernel, in units of sqrt(numbers): the root mean square difference of two values
    at which the kernel falls to exp(-1/2). It is a public constant, never a median of the data (rule 6).
    """

    numbers: int
    features: int
    bandwidth: float
    seed: int

    def __post_init__(self) -> None:
        if self.features < 2 or self.features % 2:
            raise BadInput(f"The number of Fourier features must be even and at least 2, got {self.features}.")
        if not 0 < self.bandwidth < math.inf:
            raise BadInput(f"The bandwidth must be positive, got bandwidth={self.bandwidth}.")

    def frequencies(self, device: torch.device | str = "cpu") -> Tensor:
        """(numbers, features / 2); the same seed gives the same ones on every device."""
        rng = torch.Generator().manual_seed(self.seed)
        drawn = torch.randn((self.numbers, self.features // 2), generator=rng)
        return (drawn / (self.bandwidth * math.sqrt(self.numbers))).to(device)


def fourier_features(x: Tensor, frequencies: Tensor) -> Tensor:
    """(records, features), every row of norm 1: each cosine and its sine have squares that add up to 1."""
    angles = x.flatten(1) @ frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=1) / math.sqrt(frequencies.shape[1])
