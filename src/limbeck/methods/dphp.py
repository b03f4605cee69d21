"""DP-HP: a generator whose records have the noised Hermite mean embedding of the private ones.

Vinaroz, Charusaie, Harder, Adamczewski and Park, "Hermite Polynomial Features for Private Data Generation", Section 4: the sum
kernel over all numbers of a record, and the product kernel over some. One answer is asked: per class, the sum of the features
over all records. Everything after it is free.

Where we differ, and why:
- One record is added or removed, not replaced, so the sensitivity of the sum is 1; nothing is sampled, so the price is that of
  one Gaussian, exactly. Both kernels are one vector of norm 1 and one answer, where the paper composes one for the sum kernel
  with one for every epoch's product kernel: a single Gaussian over both is cheaper than two that are composed.
- The product kernel, if any, is over many pairs of numbers, drawn once, of a picture at most `reach` pixels apart; the paper
  draws few numbers afresh in each epoch, and pays each time.
- Order and rate are public constants; the paper fits the length scale to the data. The defaults are the sum kernel alone
  (pairs=0), which is what was measured.
- Sums are divided by class sizes that are public or bought.
- Generator and descent are DP-MERF's (`parts/mean_embedding.py`), with one more batch norm before the last convolution. Without
  it the dark background of digits draws all pictures to one within 20 steps, and 300 steps may be too few to find the way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from limbeck.errors import BadSettings
from limbeck.methods.parts.mean_embedding import MeanEmbedding
from limbeck.methods.settings import setting
from limbeck.nets.features.hermite import MOST_ORDER, HermiteSpec
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Hermite

MOST_PAIRS = 100_000


@dataclass(frozen=True, kw_only=True)
class DPHP(MeanEmbedding):
    """C, rho: order and rate of the sum kernel. pairs, C_pair, rho_pair: how many pairs the product kernel is over, its order and
    rate; share: of the squared norm that it has; reach: how far apart the pixels of a pair are; 0 for any distance. The others:
    see MeanEmbedding."""

    name: ClassVar[str] = "dphp"
    title: ClassVar[str] = "DP mean embeddings with Hermite features"
    paper: ClassVar[str] = "Vinaroz et al., Hermite Polynomial Features for Private Data Generation"
    needs: ClassVar[str] = "minutes on two cores; images or tables; any number per class at the same price"
    map_kind: ClassVar[str] = "hermite"
    generator_kind: ClassVar[str] = "merf_normed"

    C: int = setting(5, least=0, most=MOST_ORDER)
    rho: float = setting(0.8, above=0, below=1)
    pairs: int = setting(0, least=0, most=MOST_PAIRS)
    C_pair: int = setting(3, least=0, most=20)
    rho_pair: float = setting(0.5, above=0, below=1)
    share: float = setting(0.0, least=0, below=1)
    reach: int = setting(0, least=0)

    T: int = setting(300, least=1)
    batch: int = setting(20, least=2, note="records of each class")

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if (self.share > 0) != (self.pairs > 0):
            raise BadSettings(f"share={self.share} is that of pairs={self.pairs}: both are 0 or neither is.")

    def embedding(self, schema: Schema) -> Hermite:
        height, width = schema.shape[1:] if schema.is_image else (0, 0)
        return Hermite(
            spec=HermiteSpec(
                numbers=schema.numbers,
                order=self.C,
                rho=self.rho,
                pairs=self.pairs,
                pair_order=self.C_pair,
                pair_rho=self.rho_pair,
                share=self.share,
                height=height,
                width=width,
                reach=self.reach if schema.is_image else 0,
                seed=self.seed_at("pairs"),
            )
        )
