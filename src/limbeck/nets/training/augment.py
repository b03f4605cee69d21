"""Differentiable siamese augmentation (Zhao and Bilen, 2021; used by DM and NDPDC).

One family is drawn, then its parameters. In the siamese form (`Augmentation.draw`, `apply`) all images share them, so
that real and synthetic records are compared under the same change; for downstream training (`augment_each`) every image
has its own. Values live in [-1, 1]; what moves in from outside, and what is cut out, is 0, the middle of that range,
as in DSA, which fills with 0 after normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets.architectures.network import Shape

FAMILIES = ("color", "crop", "cutout", "flip", "scale", "rotate")
SCALE_RATIO = 1.2
ROTATE_DEGREES = 15.0
CROP_RATIO = 1 / 8
CUTOUT_RATIO = 1 / 2
NUMBERS = {"color": 3, "crop": 2, "cutout": 2, "flip": 1, "scale": 2, "rotate": 1}


class AugmentationDraw(NamedTuple):
    """One family and its uniform numbers in [0, 1). An empty family changes nothing."""

    family: str
    numbers: tuple[float, ...]


@dataclass(frozen=True)
class Augmentation:
    """The families to draw from. No families, or flat records: no augmentation. Leave "flip" out for digits."""

    families: tuple[str, ...] = FAMILIES

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", tuple(self.families))
        _check(self.families)

    def to_dict(self) -> dict[str, list[str]]:
        return {"families": list(self.families)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> Augmentation:
        families = fields.get("families")
        if set(fields) != {"families"} or not isinstance(families, (list, tuple)):
            raise BadInput(f"Expected an augmentation with a list of families, got {dict(fields)}.")
        return cls(tuple(families))

    def draw(self, source: torch.Generator | int, shape: Shape) -> AugmentationDraw:
        """Family and parameters from a generator, or from a seed (the same seed, the same draw)."""
        if not self.families or len(shape) != 3:
            return AugmentationDraw("", ())
        rng = source if isinstance(source, torch.Generator) else torch.Generator().manual_seed(source)
        numbers = torch.rand(1 + max(NUMBERS.values()), generator=rng, device=rng.device).tolist()
        family = self.families[min(int(numbers[0] * len(self.families)), len(self.families) - 1)]
        return AugmentationDraw(family, tuple(numbers[1 : 1 + NUMBERS[family]]))


def apply(x: Tensor, draw: AugmentationDraw) -> Tensor:
    """The same change for every image of (B, C, H, W), differentiable in x.

    Guarantee: row i of the result depends on record i alone.
    """
    if not draw.family:
        return x
    numbers = torch.tensor(draw.numbers, dtype=x.dtype, device=x.device)
    return _change(x, draw.family, numbers.expand(x.shape[0], -1))


def augment_each(x: Tensor, families: Sequence[str], rng: torch.Generator) -> Tensor:
    """One family for the batch, parameters of its own for every image, as in DSA's evaluation code."""
    _check(families)
    if not families or x.dim() != 4 or x.shape[0] == 0:
        return x
    pick = int(torch.randint(len(families), (1,), generator=rng, device=rng.device))
    numbers = torch.rand(x.shape[0], NUMBERS[families[pick]], generator=rng, device=rng.device)
    return _change(x, families[pick], numbers.to(x.device, x.dtype))


def _check(families: Sequence[str]) -> None:
    for family in families:
        if family not in FAMILIES:
            raise BadInput(f"Unknown augmentation family {family!r}. Choose from {', '.join(FAMILIES)}.")


def _change(x: Tensor, family: str, u: Tensor) -> Tensor:
    """u: (B, k) uniform numbers, one row per image."""
    if family == "color":
        return _color(x, u)
    if family == "crop":
        return _crop(x, u)
    if family == "cutout":
        return x * _outside_cut(x, u)
    if family == "flip":
        return torch.where((u[:, 0] < 0.5)[:, None, None, None], x.flip(3), x)
    return _affine(x, _scaling(u) if family == "scale" else _rotation(u))


def _color(x: Tensor, u: Tensor) -> Tensor:
    brightness, saturation, contrast = (column[:, None, None, None] for column in u.unbind(1))
    x = x + (brightness - 0.5)
    grey = x.mean(1, keepdim=True)
    x = (x - grey) * (2 * saturation) + grey
    mean = x.mean((1, 2, 3), keepdim=True)
    return (x - mean) * (contrast + 0.5) + mean


def _whole(u: Tensor, count: int) -> Tensor:
    """Uniform whole numbers 0 .. count - 1."""
    return (u * count).long().clamp_max(count - 1)


def _crop(x: Tensor, u: Tensor) -> Tensor:
    height, width = x.shape[2:]
    reach_down, reach_right = int(height * CROP_RATIO + 0.5), int(width * CROP_RATIO + 0.5)
    padded = F.pad(x, (reach_right, reach_right, reach_down, reach_down))
    down, right = _whole(u[:, 0], 2 * reach_down + 1), _whole(u[:, 1], 2 * reach_right + 1)
    rows = down[:, None] + torch.arange(height, device=x.device)
    columns = right[:, None] + torch.arange(width, device=x.device)
    records = torch.arange(x.shape[0], device=x.device)[:, None, None]
    # Advanced indices around the channel slice put the channels last.
    return padded[records, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _outside_cut(x: Tensor, u: Tensor) -> Tensor:
    keep = []
    for axis, size in enumerate(x.shape[2:]):
        cut = int(size * CUTOUT_RATIO + 0.5)
        # The centre may be any pixel, so a square at the rim is cut smaller.
        start = _whole(u[:, axis], size + 1 - cut % 2)[:, None] - cut // 2
        position = torch.arange(size, device=x.device)
        keep.append((position >= start) & (position < start + cut))
    return ~(keep[0][:, None, :, None] & keep[1][:, None, None, :])


def _scaling(u: Tensor) -> Tensor:
    factor = u * (SCALE_RATIO - 1 / SCALE_RATIO) + 1 / SCALE_RATIO
    zero = torch.zeros_like(factor[:, 0])
    return torch.stack([factor[:, 0], zero, zero, zero, factor[:, 1], zero], 1).view(-1, 2, 3)


def _rotation(u: Tensor) -> Tensor:
    angle = (u[:, 0] - 0.5) * (2 * ROTATE_DEGREES * math.pi / 180)
    sine, cosine, zero = torch.sin(angle), torch.cos(angle), torch.zeros_like(angle)
    return torch.stack([cosine, -sine, zero, sine, cosine, zero], 1).view(-1, 2, 3)


def _affine(x: Tensor, theta: Tensor) -> Tensor:
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
