"""The largest coordinates of a record's gradient (TopAgg for DP-SGD: DataLens, Algorithm 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.vault.maps.base import Map
from limbeck.vault.maps.bound import clip_rows
from limbeck.vault.maps.network_gradient import NetworkGradient

NORM, DIMENSION = "norm", "dimension"


@dataclass(frozen=True, kw_only=True)
class TopGradient(Map):
    """The gradient of one record, clipped to `clip`, of which the largest coordinates are kept and the others set to 0.

    keep = "norm"       as many as have squares that add up to at most `share` of the squared norm
    keep = "dimension"  the `share` of all coordinates that are largest

    Guarantee: the choice looks at the record's own gradient alone, and that is the same bits whatever stands beside it.
    After "norm" the squares of a row add up to at most share * clip^2, so its norm is at most sqrt(share) * clip, and noise
    for that bound suffices. "dimension" has no such bound: a gradient may have all of its norm in the coordinates that are
    kept, so its sensitivity stays `clip` and there is nothing to save on the noise. The vault clips every row once more to
    the query's own bound, so the sensitivity that is paid for holds even if this map were wrong.
    """

    kind: ClassVar[str] = "top_gradient"
    chunk: ClassVar[int] = 32  # the gradient of every record is held, and sorted

    gradient: NetworkGradient
    clip: float
    share: float
    keep: str = NORM

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise BadInput(f"The share of the gradient that is kept must lie in (0, 1], got share={self.share}.")
        if self.keep not in (NORM, DIMENSION):
            raise BadInput(f"A gradient is kept by '{NORM}' or '{DIMENSION}', got keep={self.keep!r}.")

    @property
    def block(self) -> int:
        return min(self.gradient.block, self.chunk)

    @property
    def width(self) -> int:
        return self.gradient.width

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        clipped = clip_rows(self.gradient.rows(x, y), self.clip)
        if self.share == 1:
            return clipped
        return top_by_norm(clipped, self.share) if self.keep == NORM else top_by_dimension(clipped, self.share)

    def parameters(self) -> dict[str, Any]:
        return {"gradient": self.gradient.parameters(), "clip": self.clip, "share": self.share, "keep": self.keep}


def top_by_norm(rows: Tensor, share: float) -> Tensor:
    """Keep the largest coordinates of each row while their squares add up to at most `share` of the row's squared norm.

    Guarantee: a row's choice is made from that row alone.

    >>> top_by_norm(torch.tensor([[1.0, -3.0, 2.0, 0.0]]), 13 / 14).tolist()
    [[0.0, -3.0, 2.0, 0.0]]
    """
    largest_value = rows.abs().amax(1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    # Relative, so that no square is too small or too large for a float.
    squares = (rows / largest_value).float().square()
    target = share * squares.sum(1, dtype=torch.float64)
    first_out, open_rows, count = torch.zeros_like(squares[:, :1]), torch.arange(len(rows), device=rows.device), 1
    while len(open_rows):  # a few coordinates mostly suffice, and finding them is cheaper than sorting all
        count = min(max(count, rows.shape[1] // 8), rows.shape[1])
        largest = squares[open_rows].topk(count, dim=1).values
        within = (largest.cumsum(1, dtype=torch.float64) <= target[open_rows, None]).sum(1, keepdim=True)
        # A row that needs more looks again by itself: how far it looks never depends on its neighbours.
        done = (within[:, 0] < count) | (count == rows.shape[1])
        # Keeping what is larger than the first value that would pass the target leaves out all of several equal ones: which
        # of them `topk` lists first is no property of the record.
        first_out[open_rows[done]] = largest.gather(1, within.clamp(max=count - 1))[done]
        open_rows, count = open_rows[~done], 4 * count
    return torch.where(squares > first_out, rows, 0.0)


def top_by_dimension(rows: Tensor, share: float) -> Tensor:
    """Keep the `share` of each row's coordinates that are largest, at least one.

    >>> top_by_dimension(torch.tensor([[1.0, -3.0, 2.0, 0.0]]), 0.25).tolist()
    [[0.0, -3.0, 0.0, 0.0]]
    """
    indices = rows.abs().topk(max(1, int(share * rows.shape[1])), dim=1).indices
    return torch.zeros_like(rows).scatter_(1, indices, rows.gather(1, indices))
