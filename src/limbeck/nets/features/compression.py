"""Public linear maps that make votes shorter or rounder: a random rotation, a count sketch, a random projection.

Each is fixed by a seed, so that whoever asked can undo it after the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """A random rotation of `dimension` coordinates, padded to a power of two: random signs, then the Hadamard matrix."""

    dimension: int
    seed: int

    @property
    def padded(self) -> int:
        return 1 << max(self.dimension - 1, 0).bit_length()

    def _signs(self, like: Tensor) -> Tensor:
        random = torch.Generator().manual_seed(self.seed)
        return (torch.randint(0, 2, (self.padded,), generator=random) * 2 - 1).to(like)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., dimension) to (..., padded), lengths kept."""
        return _hadamard(torch.nn.functional.pad(x, (0, self.padded - self.dimension)) * self._signs(x))

    def back(self, x: Tensor) -> Tensor:
        return (_hadamard(x) * self._signs(x))[..., : self.dimension]


def _hadamard(x: Tensor) -> Tensor:
    """Times the Hadamard matrix / sqrt(n), which is its own inverse."""
    shape, half = x.shape, 1
    while half < shape[-1]:
        pairs = x.reshape(-1, shape[-1] // (2 * half), 2, half)
        x = torch.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], dim=2)
        half *= 2
    return x.reshape(shape) / math.sqrt(shape[-1])


@dataclass(frozen=True, kw_only=True)
class CountSketch:
    """`rows` hash tables of `columns` cells; each coordinate goes, with a random sign, into one cell of every table."""

    dimension: int
    rows: int
    columns: int
    seed: int

    def _cells(self, device: torch.device) -> tuple[Tensor, Tensor]:
        random = torch.Generator().manual_seed(self.seed)
        cells = torch.randint(0, self.columns, (self.rows, self.dimension), generator=random)
        signs = torch.randint(0, 2, (self.rows, self.dimension), generator=random) * 2.0 - 1
        return (cells + torch.arange(self.rows)[:, None] * self.columns).to(device), signs.to(device)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., dimension) to (..., rows * columns)."""
        cells, signs = self._cells(x.device)
        table = x.new_zeros(*x.shape[:-1], self.rows * self.columns)
        for row in range(self.rows):
            table.index_add_(x.dim() - 1, cells[row], x * signs[row].to(x))
        return table

    def back(self, table: Tensor) -> Tensor:
        """The median over the tables of what each says about a coordinate."""
        cells, signs = self._cells(table.device)
        said = torch.stack([table[..., cells[row]] * signs[row].to(table) for row in range(self.rows)])
        return said.median(dim=0).values


@dataclass(frozen=True, kw_only=True)
class Projection:
    """A random projection of `dimension` coordinates to `kept` of them, by independent normal numbers."""

    dimension: int
    kept: int
    seed: int

    def _matrix(self, like: Tensor) -> Tensor:
        random = torch.Generator().manual_seed(self.seed)
        return (torch.randn((self.dimension, self.kept), generator=random) / math.sqrt(self.kept)).to(like)

    def __call__(self, x: Tensor) -> Tensor:
        return x @ self._matrix(x)

    def back(self, x: Tensor) -> Tensor:
        return x @ self._matrix(x).T
