"""What Elixir asks at a step: the class sums of residuals against the set, in the features of a network of the pool.

A residual is a record's features minus the set's own class mean, divided by the median norm of the set's own residuals, so
that a record spends its whole clip on how it differs from the set. Beside the residual stand random Fourier features of it:
means of residuals say where a class lies, means of Fourier features say how it is spread. All images are seen under one
random affine change. Everything here is made of the set and of public random numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.methods.elixir.replay_buffer import Replay
from limbeck.methods.parts.matching import class_means
from limbeck.nets import NetSpec
from limbeck.nets.training.warp import draw_change
from limbeck.privacy.schema import Schema
from limbeck.vault.api import FeatureResidual, ResidualFourier

SMALLEST_SCALE = 1e-3
Weights = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Questions:
    """How the questions of one run are made.

    residuals  subtract the set's own class means; false asks for features as they are
    fourier    random Fourier features beside a residual, or 0
    angle, scale, shift, mirror
               of the affine change
    rng        the method's public random numbers at a point of the algorithm
    size       what pictures are averaged down to; `schema` has it then
    """

    schema: Schema
    net: NetSpec
    residuals: bool
    fourier: int
    angle: float
    scale: float
    shift: float
    mirror: bool
    rng: Callable[[str, int], torch.Generator]
    size: tuple[int, ...] | None = None

    def new(self, step: int, weights: Weights, images: Tensor, labels: Tensor) -> FeatureResidual:
        """Centred on the set's own class means and scaled by its own residuals."""
        classes = len(self.schema.classes)
        bare = self._question(step, weights, torch.zeros(0, 0), 1.0, None)
        with torch.no_grad():
            features = bare.embed(images)
            centre = class_means(features, labels, classes)
            centre = centre if self.residuals else torch.zeros_like(centre)
            residuals = features - centre[labels]
            scale = usual_norm(residuals)
            fourier = self._new_fourier(step, residuals / scale, labels) if self.fourier else None
        return dataclasses.replace(bare, centre=centre, scale=scale, waves=fourier)

    def again(self, replay: Replay, weights: Weights) -> FeatureResidual:
        """The question of an earlier step, as it was asked."""
        features = replay.centre.shape[1]
        fourier = self._fourier(replay.step, features, replay.fourier_centre, replay.fourier_scale)
        return self._question(replay.step, weights, replay.centre, replay.scale, fourier if self.fourier else None)

    def change(self, step: int) -> tuple[float, ...] | None:
        """The affine change under which images are seen; none for tables."""
        if not self.schema.is_image:
            return None
        return draw_change(self.rng("change", step), self.angle, self.scale, self.shift, self.mirror)

    def _question(
        self, step: int, weights: Weights, centre: Tensor, scale: float, fourier: ResidualFourier | None
    ) -> FeatureResidual:
        return FeatureResidual(
            net=self.net,
            shape=self.schema.shape,
            weights=weights,
            centre=centre,
            scale=scale,
            change=self.change(step),
            waves=fourier,
            size=self.size,
        )

    def _new_fourier(self, step: int, residuals: Tensor, labels: Tensor) -> ResidualFourier:
        """Centred and scaled like the residuals, so that both have the same share of the clip."""
        classes = len(self.schema.classes)
        bare = self._fourier(step, residuals.shape[1], torch.zeros(classes, self.fourier), 1.0)
        features = bare.features(residuals)
        centre = class_means(features, labels, classes)
        centre = centre if self.residuals else torch.zeros_like(centre)
        return dataclasses.replace(bare, centre=centre, scale=usual_norm(features - centre[labels]))

    def _fourier(self, step: int, features: int, centre: Tensor, scale: float) -> ResidualFourier:
        """Normal directions: residuals have a norm near 1, so a class is neither flat nor a blur along them."""
        rng, count = self.rng("waves", step), centre.shape[1]
        directions = torch.randn(features, count, generator=rng)
        phases = torch.rand(count, generator=rng) * 2 * math.pi
        return ResidualFourier(directions=directions, phases=phases, centre=centre, scale=scale)


def usual_norm(rows: Tensor) -> float:
    """The median norm of the rows, but never so small that a division by it blows up rounding errors."""
    return max(float(rows.norm(dim=1).median()), SMALLEST_SCALE)
