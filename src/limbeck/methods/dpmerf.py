"""DP-MERF: a generator whose records have the noised mean embedding of the private ones.

Harder, Adamczewski and Park, "DP-MERF: Differentially Private Mean Embeddings with Random Features", Algorithm 1 with
labels. One answer is asked: per class, the sum of random Fourier features over all records. Everything after it is free,
so the set may be as large as one likes.

Where we differ, and why:
- One record is added or removed, not replaced, so the sensitivity of the sum is 1; nothing is sampled, so the price is that
  of one Gaussian, exactly.
- The bandwidth is a public constant, not the median distance of the private records: one for grey pictures and tables, and a
  narrower one for pictures in colour, where the first tells hardly more than a class's mean, whatever the budget.
- Sums are divided by class sizes that are public or bought; the paper divides by the number of records, which its
  classes share evenly.
- The step size rises over the first hundred steps. With the paper's from the start, all units of the generator die on colour
  images, and every picture is the same grey.
- The generator ends in tanh, because records lie in [-1, 1] here. Tables take a generator of three linear layers and the
  same kernel for all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from limbeck.methods.base import Chosen, given
from limbeck.methods.parts.mean_embedding import MeanEmbedding
from limbeck.methods.settings import setting
from limbeck.nets.features.fourier import FourierSpec
from limbeck.privacy.schema import Schema
from limbeck.vault.api import RandomFourier

USUAL, COLOUR = 0.73, 0.3


@dataclass(frozen=True, kw_only=True)
class Kernel(Chosen):
    bandwidth: float


@dataclass(frozen=True, kw_only=True)
class DPMERF(MeanEmbedding):
    """features: how many. bandwidth: of the kernel, per sqrt(d) (see FourierSpec); left out, it suits the data (`chosen`). The
    others: see MeanEmbedding."""

    name: ClassVar[str] = "dpmerf"
    title: ClassVar[str] = "DP mean embeddings with random features"
    paper: ClassVar[str] = "Harder, Adamczewski and Park, DP-MERF, Algorithm 1"
    needs: ClassVar[str] = "minutes on two cores; images or tables; any number per class at the same price"
    map_kind: ClassVar[str] = "random_fourier"

    features: int = setting(4000, least=2, multiple_of=2)
    bandwidth: float | None = setting(None, above=0)

    def chosen(self, schema: Schema, epsilon: float | None = None) -> Kernel:
        in_colour = schema.is_image and schema.shape[0] > 1
        return Kernel(bandwidth=given(self.bandwidth, COLOUR if in_colour else USUAL))

    def embedding(self, schema: Schema) -> RandomFourier:
        return RandomFourier(
            spec=FourierSpec(
                numbers=schema.numbers,
                features=self.features,
                bandwidth=self.chosen(schema).bandwidth,
                seed=self.seed_at("frequencies"),
            )
        )
