"""DP-Sinkhorn: a generator that learns from the semi-debiased Sinkhorn divergence between its records and private ones.

Cao, Bie, Vahdat, Fidler and Kreis, "Don't Generate Me: Training Differentially Private Generative Models with Sinkhorn
Divergence", Algorithm 1: entropic transport within each class, and the loss W(made, real) - debias * W(made, made).

Where we differ, and why:
- The paper's gradient with respect to the made records is a function of the whole real batch: in the primal every real record's
  shares depend on all others. So it is clipped as a whole to C, and one record may turn it round: its sensitivity is 2 C,
  whatever the size of the batch, and noise of that size meets a signal of at most C. (As one event of sensitivity 2 C with
  Poisson amplification that is sound; the paper's C is that of replacing a record in a batch of fixed size.)
- We solve the same problem in its semi-dual. For given potentials of the made records, which are public, each real record's
  best shares are its own affair, softmax(potential - cost / blur), and the gradient is a sum over real records. So it is an
  ordinary clipped sum: sensitivity C for a signal of up to C for every record of the batch. The potentials climb by noised
  masses: at the optimum of the semi-dual the plan is Sinkhorn's.
- The made records are those of fixed latents, as many per class as the set has, so that potentials have a meaning from step to
  step; the paper draws new latents each time, and computes their potentials from the real batch.
- Noised masses and sums are remembered and averaged (`memory`), and the generator takes `fit` steps after each answer; all of
  that is free.
- W(made, made) touches no record: it is computed in the log domain on public numbers, and needs no noise.
- Few answers about all records in place of many about small batches: at one price the noise of a sum grows with the root of the
  number of answers, and its signal with the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import Logbook, Method, SyntheticSet, TrainedGenerator, expected_groups, group_rates
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.parts.sinkhorn import self_transport
from limbeck.methods.settings import setting
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, Transport

SUMS = "transport"
MOST_NUMBERS = 1 << 25  # of an answer's row
LEAST_MASS = 0.25  # of a point, in even shares: noise may take more


@dataclass(frozen=True, kw_only=True)
class DPSinkhorn(Method):
    """T         answers
    L         expected batch of each class
    C         clip on what one record adds, in units of the root mean square of a record's numbers times sqrt(d)
    sigma     noise std / sensitivity
    blur      of the entropic transport, in units of the mean squared difference of two records
    debias    how much of W(made, made) is taken off: 0 is the transport cost alone, 1 the gradient of the debiased divergence
    memory    decay of the average over answers
    climb     how far the potentials go for each answer
    fit       steps of the generator for each answer
    eta       Adam's step size
    latent, width   of the generator
    turns     of Sinkhorn's iteration on made records
    """

    name: ClassVar[str] = "dpsinkhorn"
    title: ClassVar[str] = "DP-Sinkhorn: a generator from entropic optimal transport"
    paper: ClassVar[str] = "Cao, Bie, Vahdat, Fidler and Kreis, Don't Generate Me, Algorithm 1"
    needs: ClassVar[str] = "minutes on two cores for 50 per class; images or tables"

    T: int = setting(20, least=1)
    L: int = setting(10_000, least=1)
    C: float = setting(0.3, above=0)
    sigma: float | None = setting(None, above=0)
    blur: float = setting(0.02, above=0)
    debias: float = setting(0.4, least=0, most=1)
    memory: float = setting(0.8, least=0, below=1)
    climb: float = setting(0.2, least=0, most=1)
    fit: int = setting(60, least=1)
    eta: float = setting(2e-3, above=0)
    latent: int = setting(8, least=1)
    width: int = setting(16, least=1)
    turns: int = setting(20, least=1)

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if self.per_class * (schema.numbers + 1) > MOST_NUMBERS:
            raise BadSettings(
                f"per_class={self.per_class} points of {schema.numbers} numbers are too many for one answer. "
                f"Choose --per-class {MOST_NUMBERS // (schema.numbers + 1)} or less."
            )

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        return (
            ClippedSum(
                label=SUMS,
                map=Transport.kind,
                clip=self.C * schema.numbers**0.5,
                noise_multiplier=noise_multiplier,
                rate=group_rates(schema, self.L),
                count=self.T,
            ),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        classes, points = len(schema.classes), self.per_class
        spec = GeneratorSpec(kind="datalens", latent=self.latent, width=self.width, fitted=points)
        labels = self.labels(schema).to(device)
        latents = spec.latents(len(labels), self.rng("latents")).to(device)
        generator = build_generator(spec, schema.shape, classes, self.seed_at("generator")).to(device)
        adam = Adam(list(generator.parameters()), self.eta)
        memory = {
            "potentials": torch.zeros(classes, points, device=device),
            "masses": torch.zeros(classes, points, device=device),
            "sums": torch.zeros(classes, points, schema.numbers, device=device),
        }
        even = self._even_shares(schema).to(device)
        for step in logbook.steps(self.T, adam.state | memory, SUMS):
            with torch.no_grad():
                made = generator(latents, labels).view(classes, points, -1)
            mapping = Transport(
                points=made, potentials=memory["potentials"].clone(), blur=self.blur, weight=self._weight(schema)
            )
            self._remember(ask(SUMS, step, mapping).tensor(device), made, even, memory, step)
            for _ in range(self.fit):
                made = generator(latents, labels).view(classes, points, -1)
                adam.move(torch.autograd.grad(self._loss(made, memory), adam.parameters))
        with torch.no_grad():
            made = generator(latents, labels)
        released = TrainedGenerator(spec, generator.state_dict())
        return SyntheticSet(made.cpu().numpy(), labels.cpu().numpy(), generator=released)

    def _even_shares(self, schema: Schema) -> Tensor:
        """(classes, 1): how many records of a sample a point has, if all have as many; expected, and public (rule 3)."""
        classes = len(schema.classes)
        sizes = schema.class_sizes or (schema.records / classes,) * classes
        return expected_groups(schema, self.L, torch.tensor(sizes))[:, None] / self.per_class

    def _weight(self, schema: Schema) -> float:
        """A record that is one point's alone has shares of the length of its clip."""
        return float(self.C * schema.numbers**0.5)

    @torch.no_grad()
    def _remember(self, answer: Tensor, made: Tensor, even: Tensor, memory: dict[str, Tensor], step: int) -> None:
        """Shares of masses and sums in units of an even share, averaged over the answers; and the potentials' climb."""
        _, points, numbers = made.shape
        masses = answer[:, :points] / (self.C * numbers**0.5) / even
        sums = answer[:, points:].view(made.shape) / even[:, :, None] + masses[:, :, None] * made
        kept = min(self.memory, step / (step + 1))
        memory["masses"].mul_(kept).add_((1 - kept) * masses)
        memory["sums"].mul_(kept).add_((1 - kept) * sums)
        # A point with too much mass becomes dearer, as in Sinkhorn's iteration.
        share = memory["masses"].clamp_min(LEAST_MASS)
        memory["potentials"].sub_(self.climb * share.log()).sub_(memory["potentials"].mean(1, keepdim=True))

    def _loss(self, made: Tensor, memory: dict[str, Tensor]) -> Tensor:
        """The semi-debiased loss at the remembered plan: the parts that depend on what is made."""
        points = made.shape[1]
        masses = memory["masses"].clamp_min(LEAST_MASS)
        towards = masses * (made - memory["sums"] / masses[:, :, None]).square().mean(2)
        cost = towards.sum() / points
        return cost - self.debias * self_transport(made, self.blur, self.turns) if self.debias else cost
