"""A mixture of products: within a component columns are independent, and each component belongs to a class.

Its marginals of one and two columns are matrix products, so it is fitted to noised ones by plain descent, and rows are drawn
from it one by one. It is the relaxed projection of RAP (Aydore et al. 2021) with components in place of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from limbeck.methods.mosaic.measured import Measured

SPREAD = 0.3  # of the logits at the start: components have to differ to become different
LEAST = 1e-5  # a share that noise has made negative, at the start


class Mixture(nn.Module):
    """logits: (classes, components, W); weights: (classes, components), both before their softmax."""

    def __init__(self, sizes: tuple[int, ...], single: Tensor, components: int, rng: torch.Generator) -> None:
        super().__init__()
        self.sizes = sizes
        shares = single.clamp_min(LEAST)
        spread = torch.randn(len(single), components, single.shape[1], generator=rng) * SPREAD
        self.logits = nn.Parameter(shares.log()[:, None] + spread)
        self.weights = nn.Parameter((shares.sum(1) / len(sizes)).log()[:, None].repeat(1, components))

    @staticmethod
    def of(sizes: tuple[int, ...], logits: Tensor, weights: Tensor) -> Mixture:
        """One that was fitted before."""
        made = Mixture(sizes, torch.ones(len(logits), logits.shape[2]), logits.shape[1], torch.Generator())
        made.load_state_dict({"logits": logits, "weights": weights})
        return made

    def of_classes(self, classes: int) -> Mixture:
        """The same rows by so many classes: all components are of one class if there is one, and there were parts of a target."""
        if classes == len(self.weights):
            return self
        cells = self.logits.shape[2]
        return Mixture.of(
            self.sizes, self.logits.detach().view(classes, -1, cells), self.weights.detach().view(classes, -1)
        )

    def forward(self) -> tuple[Tensor, Tensor]:
        """Chances of cells, (classes, components, W), and shares of components, (classes, components)."""
        chances = torch.cat([F.softmax(part, 2) for part in torch.split(self.logits, list(self.sizes), 2)], 2)
        return chances, F.softmax(self.weights.flatten(), 0).view_as(self.weights)

    def loss(self, measured: Measured, pull: float) -> Tensor:
        """How unlikely the noise would be, and a pull of components towards their mean, which holds where noise says nothing."""
        chances, shares = self()
        weighted = chances * shares[:, :, None]
        single = (weighted.sum(1) - measured.single).square() / measured.single_variance
        pairs = torch.bmm(weighted.mT, chances)
        if not measured.by_class:
            pairs = pairs.sum(0, keepdim=True)
        squares = (pairs - measured.pairs).square() * measured.precision
        apart = (self.logits - self.logits.mean(1, keepdim=True)).square().sum() / self.weights.numel()
        total: Tensor = squares.sum() / 4 + single.sum() / 2 + pull * apart
        return total

    @torch.no_grad()
    def pairs(self) -> NDArray[np.float64]:
        """(W, W): the share of rows that each pair of cells has, of all classes together."""
        chances, shares = self()
        found: NDArray[np.float64] = torch.bmm((chances * shares[:, :, None]).mT, chances).sum(0).double().cpu().numpy()
        return found

    @torch.no_grad()
    def drawn(
        self, count: int, rng: np.random.Generator, label: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rows, columns) cells, and the class of each row's component; of one class only if `label` is given."""
        chances, shares = (part.double().cpu().numpy() for part in self())
        if label is not None:
            shares = shares * (np.arange(len(shares)) == label)[:, None]
        edges = edges_of(chances.reshape(shares.size, -1), self.sizes)
        cells, chosen = drawn_cells(edges, shares, count, rng)
        return cells, chosen // shares.shape[1]

    @torch.no_grad()
    def log_chances(self, hot: Tensor) -> Tensor:
        """(rows, classes): of one-hot rows together with each class."""
        chances, shares = self()
        by_class = [
            torch.logsumexp(hot @ part.clamp_min(1e-12).log().T + share.clamp_min(1e-30).log(), 1)
            for part, share in zip(chances, shares, strict=True)
        ]
        return torch.stack(by_class, 1)


def edges_of(chances: NDArray[np.float64], sizes: Sequence[int]) -> list[NDArray[np.float64]]:
    """For each column (components, cells): chances added up to 1. A column without any chance stays at 0."""
    found = []
    for part in np.split(chances, np.cumsum(sizes)[:-1], axis=1):
        edges = part.cumsum(1)
        edges /= np.where(edges[:, -1:] > 0, edges[:, -1:], 1.0)
        found.append(edges)
    return found


def drawn_cells(
    edges: Sequence[NDArray[np.float64]], shares: NDArray[np.float64], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows, columns) cells, and the component of each row among all."""
    # Every component gets its share of the rows, up to one: that noise is not needed.
    total = np.cumsum(shares)
    bounds = np.floor(total / total[-1] * count + rng.random()).astype(np.int64)
    chosen = np.repeat(np.arange(shares.size), np.diff(np.minimum(bounds, count), prepend=0))
    rng.shuffle(chosen)
    return np.stack([places_in(part, chosen, rng.random(count)) for part in edges], axis=1), chosen


def places_in(edges: NDArray[np.float64], chosen: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each row the first place of its component whose edge is not below its number; a part of the rows at a time."""
    found = np.empty(len(chosen), dtype=np.int64)
    at_once = max((1 << 22) // edges.shape[1], 1)
    for begin in range(0, len(chosen), at_once):
        part = slice(begin, begin + at_once)
        found[part] = (edges[chosen[part]] < uniform[part, None]).sum(1)
    np.minimum(found, edges.shape[1] - 1, out=found)
    return found
