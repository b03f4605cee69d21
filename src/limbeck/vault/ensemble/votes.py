"""What an ensemble may be asked. The kinds of a TeacherVote turn a teacher's view of synthetic records into a bounded vote.

A kind need not be right to be private: `bounded` cuts every teacher's whole vote to half of the query's clip, so one teacher
that changes its mind moves the sum by at most the clip. It has to look at each teacher alone, which its code shows.

To add a kind: subclass `Vote` with a `kind` that no question ever had, write `votes`, and add it to QUESTIONS in
`limbeck.vault.ensemble.kinds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput, WallBreach
from limbeck.nets.features.compression import CountSketch, Projection, Rotation
from limbeck.privacy.numbers import apart, require_count, require_positive
from limbeck.vault.ensemble.teachers import Question
from limbeck.vault.maps.bound import Bound

Uniform = Callable[[tuple[int, ...]], Tensor]  # secret uniform numbers in [0, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Vote(Question):
    """A question that every teacher answers with a vector."""

    def votes(self, scores: Tensor, gradients: Tensor, uniform: Uniform) -> Tensor:
        """(teachers, ...) from scores (teachers, images) and gradients (teachers, images, dimension); each teacher alone."""
        raise NotImplementedError

    def bounded(self, votes: Tensor, bound: Bound) -> Tensor:
        """Guarantee: two rows of the result, whatever they are, lie at most the clip apart in L2 norm, in the bound's units."""
        return bound.half().rows(votes.flatten(1))


def top_signs(gradients: Tensor, k: int, c: float, stochastic: bool, uniform: Uniform) -> Tensor:
    """DataLens, Algorithm 2: the k largest coordinates, cut to c, scaled to [-1, 1], and rounded to signs by chance."""
    k = min(k, gradients.shape[-1])
    indices = gradients.abs().topk(k, dim=-1, sorted=False).indices
    chosen = gradients.gather(-1, indices).clamp(-c, c)
    scaled = chosen / chosen.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(chosen.dtype).tiny)
    if stochastic:
        scaled = torch.where(uniform(tuple(scaled.shape)).to(scaled) < (1 + scaled) / 2, 1.0, -1.0)
    return torch.zeros_like(gradients).scatter_(-1, indices, scaled)


@dataclass(frozen=True, kw_only=True, eq=False)
class SignVote(Vote):
    """DataLens: signs on the k largest coordinates of each image's gradient; a whole vote has norm sqrt(k images)."""

    kind: ClassVar[str] = "sign_vote"
    k: int
    c: float = 1e-5
    stochastic: bool = True

    def __post_init__(self) -> None:
        require_count("k", self.k)
        require_positive("c", self.c)

    def votes(self, scores: Tensor, gradients: Tensor, uniform: Uniform) -> Tensor:
        return top_signs(gradients, self.k, self.c, self.stochastic, uniform)


@dataclass(frozen=True, kw_only=True, eq=False)
class SketchVote(SignVote):
    """FetchSGD: the same signs, added into a count sketch; cut to the norm sqrt(rows k images) that it has without collisions."""

    kind: ClassVar[str] = "sketch_vote"
    rows: int
    columns: int
    sketch_seed: int

    def sketch(self) -> CountSketch:
        return CountSketch(
            dimension=math.prod(self.x.shape[1:]), rows=self.rows, columns=self.columns, seed=self.sketch_seed
        )

    def votes(self, scores: Tensor, gradients: Tensor, uniform: Uniform) -> Tensor:
        return self.sketch()(super().votes(scores, gradients, uniform))


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelVote(Vote):
    """D2P-Fed: all coordinates, rotated, cut to +-reach, rounded by chance to `levels` whole numbers from -(levels - 1) on."""

    kind: ClassVar[str] = "level_vote"
    c: float
    levels: int
    reach: float
    rotation_seed: int

    def __post_init__(self) -> None:
        require_positive("c", self.c)
        require_positive("reach", self.reach)
        if self.levels < 2:
            raise BadInput(f"levels must be at least 2, got levels={self.levels}.")

    def rotation(self) -> Rotation:
        return Rotation(dimension=math.prod(self.x.shape[1:]), seed=self.rotation_seed)

    def votes(self, scores: Tensor, gradients: Tensor, uniform: Uniform) -> Tensor:
        rotated = self.rotation()(top_signs(gradients, gradients.shape[-1], self.c, False, uniform))
        level = (rotated.clamp(-self.reach, self.reach) / self.reach + 1) / 2 * (self.levels - 1)
        rounded = level.floor() + (uniform(tuple(level.shape)).to(level) < level - level.floor())
        return rounded * 2 - (self.levels - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class BeliefVote(Vote):
    """PATE-GAN: is the image real? 1/2 for yes, -1/2 for no, by whether the score passes a public threshold."""

    kind: ClassVar[str] = "belief_vote"
    threshold: float

    def votes(self, scores: Tensor, gradients: Tensor, uniform: Uniform) -> Tensor:
        return torch.where(scores > self.threshold, 0.5, -0.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class BinVote(Vote):
    """G-PATE: the gradient of each image, projected to `kept` dimensions; for each of them one vote for one of `bins` bins."""

    kind: ClassVar[str] = "bin_vote"
    kept: int
    bins: int
    c: float
    projection_seed: int

    def __post_init__(self) -> None:
        require_count("kept", self.kept)
        require_positive("c", self.c)
        if self.bins < 2:
            raise BadInput(f"bins must be at least 2, got bins={self.bins}.")

    def projection(self) -> Projection:
        return Projection(dimension=math.prod(self.x.shape[1:]), kept=self.kept, seed=self.projection_seed)

    def votes(self, scores: Tensor, gradients: Tensor, uniform: Uniform) -> Tensor:
        projected = self.projection()(gradients)
        # Of huge gradients it may be no number, and the last bin's may be rounded up. That would be no bin, and fail because of
        # what teachers have learned.
        place = torch.nan_to_num((projected + self.c) / (2 * self.c) * self.bins, 0.0).clamp(0, self.bins - 1)
        return place.long().clamp(max=self.bins - 1)

    def bounded(self, votes: Tensor, bound: Bound) -> Tensor:
        """Guarantee: a teacher puts one vote for each number; at worst each moves to another bin, so two rows lie at most
        sqrt(2 numbers) apart."""
        numbers = votes[0].numel()
        if math.sqrt(2 * numbers) > bound.clip:
            moved, most = apart(math.sqrt(2 * numbers), bound.clip)
            raise WallBreach(f"{numbers} votes for bins move the sum by {moved}, more than {most}.")
        # A vote is 1, or as many whole steps as fit into it: steps are powers of 2, mostly far below 1.
        return F.one_hot(votes.flatten(1), self.bins).flatten(1).double() * math.floor(1 / bound.unit)


@dataclass(frozen=True, kw_only=True, eq=False)
class CriticGradient(Question):
    """GS-WGAN: the gradient of a secretly drawn teacher's score with respect to the images, for each of the query's `draws`
    equal parts of them another draw. The answer has the images' numbers, in order."""

    kind: ClassVar[str] = "critic_gradient"
