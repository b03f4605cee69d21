"""DM: distribution matching, without privacy. The ceiling that private feature matching is measured against.

Zhao and Bilen, "Dataset Condensation with Distribution Matching". It asks the vault like any other method, with noise 0 and
no clip, so its price is infinite: the ledger books it only for a data set whose budget is infinite, and its release is
marked as not private.

Where we differ: the set starts from noise, as in the DPDC paper's "DM with Rand Init"; batches are Poisson samples. The mean
is over the realised batch, which only a method without privacy may ask for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from limbeck.methods.base import Logbook, SyntheticSet, group_rates
from limbeck.methods.parts.matching import FeatureMatching, class_means
from limbeck.methods.settings import setting
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask


@dataclass(frozen=True, kw_only=True)
class DM(FeatureMatching):
    """L: mean sample per class."""

    name: ClassVar[str] = "dm"
    title: ClassVar[str] = "Distribution matching (not private)"
    paper: ClassVar[str] = "Zhao and Bilen, Dataset Condensation with Distribution Matching"
    needs: ClassVar[str] = "an infinite budget: its release is not private; hours on two cores"
    private: ClassVar[bool] = False

    image_iterations: ClassVar[int] = 20_000

    L: int = setting(256, least=1)

    @property
    def fixed_noise(self) -> float | None:
        return 0.0

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        return (
            ClippedSum(
                label="features",
                map="random_features",
                clip=math.inf,
                noise_multiplier=0.0,
                rate=group_rates(schema, self.L),
                count=self.chosen(schema).I,
            ),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        sizes = None if schema.class_sizes is None else torch.tensor(schema.class_sizes)
        descent = self.descent(schema, self.set_labels(schema, sizes), logbook, device)
        for i in descent.steps("features"):
            features = self.features(schema, i, with_count=True)
            sums = ask("features", i, features).tensor(device)
            means = class_means(features.rows(descent.x, descent.labels), descent.labels, len(schema.classes))
            descent.move((sums / sums[:, -1:].clamp_min(1) - means).square().sum())
        return descent.result()
