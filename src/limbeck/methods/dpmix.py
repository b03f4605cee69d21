"""DPMix: noised means of records of all classes, with noised means of their labels.

Lee, Kim, Lee, Suh and Ramchandran, "Synthesizing Differentially Private Datasets using Random Mixing", as Zheng and Li
describe and reproduce it in "Differentially Private Dataset Condensation", Section IV: groups of L records,
sigma_X = sigma_Y = 1.

Where we differ, and why:
- Records are Poisson-sampled, and their sum is divided by the expected L; the papers divide by the size of a fixed sample.
- A record and its label are one row, clipped together, so sigma_X and sigma_Y are one noise on both, in units of the clip of
  each: the label's vector is weighed as `label` times the record's clip.
- A set has one class per record, so the class of a mixture is the one with the largest noised share. A mixture of L records of
  all classes has hardly a class; that is the method, and a reason for its accuracy.
- Pixels are summed in [0, 1], as in LDPDC (see `ldpdc.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from limbeck.methods.base import Logbook, Method, SyntheticSet
from limbeck.methods.settings import setting
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, Labelled

MIXTURES = "mixtures"


@dataclass(frozen=True, kw_only=True)
class DPMix(Method):
    """L: mean size of a group. sigma: noise std / sensitivity. clip: bound on a record / sqrt(d). label: length of the label's
    vector beside the record's clip."""

    name: ClassVar[str] = "dpmix"
    title: ClassVar[str] = "DPMix: noised mixtures of records and labels"
    paper: ClassVar[str] = "Lee et al., DPMix, as described by Zheng and Li, DPDC, Section IV"
    needs: ClassVar[str] = "seconds on a CPU; images or tables"

    L: int = setting(50, least=1)
    sigma: float | None = setting(None, above=0)
    clip: float = setting(0.4, above=0, most=1, note="in units of sqrt(d)")
    label: float = setting(1.0, above=0)

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def _clip(self, schema: Schema) -> float:
        return self.clip * math.sqrt(schema.numbers)

    def _rate(self, schema: Schema) -> float:
        return min(1.0, self.L / schema.records)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        return (
            ClippedSum(
                label=MIXTURES,
                map=Labelled.kind,
                clip=math.hypot(1, self.label) * self._clip(schema),
                noise_multiplier=noise_multiplier,
                rate=(self._rate(schema),),
                by_class=False,
                count=self.per_class * len(schema.classes),
            ),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        count, numbers = self.per_class * len(schema.classes), schema.numbers
        weight = self.label * self._clip(schema)
        record = Labelled(classes=len(schema.classes), weight=weight, shift=1.0, scale=0.5)
        expected = self._rate(schema) * schema.records
        means = torch.zeros(count, numbers + len(schema.classes))
        for index in logbook.steps(count, {"means": means}, MIXTURES):
            means[index] = ask(MIXTURES, index, record).tensor().flatten() / expected
        x = (2 * means[:, :numbers] - 1).view(-1, *schema.shape)
        return SyntheticSet(x.numpy(), means[:, numbers:].argmax(1).numpy())
