"""GS-WGAN: a generator that follows noised gradients of critics, each of which knows a small part of the records.

Chen, Orekondy and Fritz, "GS-WGAN: A Gradient-Sanitized Approach for Learning Differentially Private Generators", Algorithm 1.
K critics live in the vault. At every step the generator makes B images, learns in which direction a critic would change
them, clipped and noised, and passes that on to its weights.

Where we differ, and why:
- The paper draws one critic for all B images of a step, and its accountant counts B releases that each look at a random
  critic. They all look at the same one, so at its settings the 9.99 that it claims is really about 330. Two forms are sound:
  variant A draws a critic of its own for every image, variant B clips the gradient of the whole batch, one release a step.
- The paper trains the critic that it has drawn. Which critic has learned would then tell which one answered, and later
  steps would not be independent draws. Here a block of critics learns at every step, in turn, by a public clock.
- Records lie in [-1, 1], not in [0, 1].
- The EMA of the generator's weights decays faster in the first steps, or it would hold on to the start.
- The generator is the paper's DCGAN, not its ResNet.
- To a critic, each class of fakes has the weight of that class among its own records; otherwise it would learn which labels
  it lacks.
- The defaults are for two cores, not the paper's: critics of a template for each class and 24 hidden units learn in a few
  steps, so all of them can keep up with the generator and need no warm start. The paper's: K=1000 block=1 T=20000 B=32 n_dis=5
  M=32 T_w=2000 eta_G=0.0001 eta_D=0.0001 ema=0.999 latent=10 width=64 critic_width=64 smooth=0.
- Below epsilon 3 there are four times as many critics, each asked a quarter as often, which pays for half as many answers of a
  fifth of the noise; a quarter of them learn at a step, and answers are smoothed, which is free: neighbouring pixels share what
  a critic wants, and not the noise.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from limbeck.errors import BadInput, BadSettings
from limbeck.methods.base import Chosen, given
from limbeck.methods.parts.averaged import BETAS, AveragedTraining
from limbeck.methods.parts.generator_training import GeneratorTraining
from limbeck.methods.parts.smoothing import smoothed
from limbeck.methods.parts.stepped import SteppedMethod
from limbeck.methods.parts.teaching import LITTLE_NOISE
from limbeck.methods.settings import setting
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.privacy.queries import Query, TeacherGradient
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, Critic, CriticGradient, EnsembleSpec, check_ensemble


@dataclass(frozen=True, kw_only=True)
class CriticSteps(Chosen):
    """The critics, the steps, and how far answers are smoothed; the names are those of the settings."""

    K: int
    T: int
    block: int
    smooth: float


ALL = 2**31  # more than there are
LARGE_BUDGET = CriticSteps(K=500, T=500, block=ALL, smooth=0.0)
# More critics are asked less often each, so T answers of less noise; of so many only some learn at a step, which is as fast.
SMALL_BUDGET = CriticSteps(K=2000, T=250, block=500, smooth=1.0)
LEAST_KNOWN = 30  # records of a critic


@dataclass(frozen=True, kw_only=True)
class GSWGAN(SteppedMethod):
    """Symbols are the paper's where it has one. K, T, block and smooth, left out, suit the budget (`chosen`).

    variant                A: a critic of its own for every image. B: one critic for the batch, which is clipped as a whole
    K, block               critics; how many of them learn at a step, in turn (none: all)
    T, B                   steps of the generator, images in a step
    C, sigma               clip on the gradient of an image (A) or a batch (B); noise std / 2C, none lets epsilon decide
    n_dis, M, T_w          steps of a critic when it learns, records in each; steps of the warm start
    penalty, eta_D, eta_G  on critics' gradients; Adam's steps of critics and generator
    ema                    how much of the averaged generator stays at a step
    latent, width          coin flips that an image is made from; filters of the generator's last hidden map
    critic_width           filters of a critic's first layer; 0: a template for each class, which is many times as fast,
    critic_hidden          and so many hidden units beside the templates
    smooth                 std, in pixels, of the Gaussian that answers are smoothed with; 0 for none
    snapshots              how many sets are kept during the run
    """

    name: ClassVar[str] = "gswgan"
    title: ClassVar[str] = "Gradient-sanitised Wasserstein GAN"
    paper: ClassVar[str] = "Chen, Orekondy and Fritz, GS-WGAN, Algorithm 1"
    needs: ClassVar[str] = "images; minutes on two cores, days at the paper's size"
    label: ClassVar[str] = "gradients"

    variant: str = setting("A", choices=("A", "B"), note="a critic for every image or a clip on the whole batch")
    K: int | None = setting(None, least=1)
    T: int | None = setting(None, least=1)
    B: int = setting(300, least=1)
    C: float = setting(1.0, above=0)
    sigma: float | None = setting(None, above=0)
    block: int | None = setting(None, least=1)
    n_dis: int = setting(2, least=1)
    M: int = setting(15, least=1)
    T_w: int = setting(0, least=0)
    penalty: float = setting(10.0, above=0)
    eta_G: float = setting(7e-4, above=0)
    eta_D: float = setting(5e-3, above=0)
    ema: float = setting(0.97, least=0, below=1)
    latent: int = setting(6, least=1)
    width: int = setting(16, least=1)
    critic_width: int = setting(0, least=0)
    critic_hidden: int = setting(24, least=0)
    # A run that was booked before there was one smooths nothing.
    smooth: float | None = setting(None, least=0)
    snapshots: int = setting(10, least=0, most=1000)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.K is not None and self.block is not None and self.block > self.K:
            raise BadSettings(f"block={self.block} critics cannot learn at a step, there are K={self.K}.")
        if self.T is not None and self.snapshots > self.T:
            raise BadSettings(
                f"With T={self.T} steps choose snapshots in 0 ... {self.T}, got snapshots={self.snapshots}."
            )

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def chosen(self, schema: Schema, epsilon: float | None = None) -> CriticSteps:
        usual = LARGE_BUDGET
        if epsilon is not None and epsilon < LITTLE_NOISE:
            most = max(schema.privacy_units // LEAST_KNOWN, 1)
            usual = dataclasses.replace(SMALL_BUDGET, K=min(SMALL_BUDGET.K, most))
        critics = given(self.K, usual.K)
        return CriticSteps(
            K=critics,
            T=given(self.T, usual.T),
            block=given(self.block, min(usual.block, critics)),
            smooth=given(self.smooth, usual.smooth),
        )

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if not schema.is_image:
            raise BadSettings(f"GS-WGAN makes pictures, and '{schema.name}' is a table; use --method dpmerf.")
        try:
            check_ensemble(self._ensemble(schema), schema)
        except BadInput as refused:
            raise BadSettings(refused.message.replace("teachers=", "K=")) from None

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        return (
            TeacherGradient(
                label=self.label,
                map=CriticGradient.kind,
                # One record may turn a critic's gradient from one end of the ball of radius C to the other.
                clip=2 * self.C,
                noise_multiplier=noise_multiplier,
                teachers=self.chosen(schema).K,
                draws=self.B if self.variant == "A" else 1,
                count=self.rounds(schema),
            ),
        )

    def rounds(self, schema: Schema) -> int:
        return self.chosen(schema).T

    def training(self, schema: Schema, device: torch.device) -> GeneratorTraining:
        return AveragedTraining(
            self,
            self.spec(),
            schema,
            device,
            steps=self.rounds(schema),
            snapshots=self.snapshots,
            eta=self.eta_G,
            decay=self.ema,
        )

    def take_step(self, training: GeneratorTraining, schema: Schema, ask: Ask, step: int) -> None:
        z, y = self.drawn(schema, self.B, "images", step)
        images = training.drawn(z, y)
        fake_z, fake_y = self.drawn(schema, self.n_dis * self.M, "fakes", step)
        question = CriticGradient(
            teacher=self._critic(schema),
            ensemble=self._ensemble(schema),
            fakes=training.made(fake_z, fake_y),
            fake_labels=fake_y,
            x=images.detach().cpu(),
            y=y,
        )
        uphill = ask(self.label, step, question).tensor(training.device).view(images.shape)
        # Of the setting itself: a run that was booked before there was one smooths nothing.
        if self.smooth:
            uphill = smoothed(uphill, self.smooth)
        training.follow(images, -uphill / self.B)
        training.note(step, uphill)

    def spec(self) -> GeneratorSpec:
        return GeneratorSpec(kind="dcgan", latent=self.latent, law="bernoulli", width=self.width)

    def drawn(self, schema: Schema, count: int, *point: int | str) -> tuple[Tensor, Tensor]:
        """Latents and labels for one point of the algorithm."""
        rng = self.rng(*point)
        return self.spec().latents(count, rng), torch.randint(len(schema.classes), (count,), generator=rng)

    def _ensemble(self, schema: Schema) -> EnsembleSpec:
        return EnsembleSpec(
            teachers=self.chosen(schema).K,
            batch=self.M,
            steps=self.n_dis,
            block=self.block,  # of the setting itself, for runs that were booked with none: all learn
            seed=self.seed_at("critics"),
        )

    def _critic(self, schema: Schema) -> Critic:
        return Critic(
            shape=schema.shape,
            classes=len(schema.classes),
            eta=self.eta_D,
            beta1=BETAS[0],
            beta2=BETAS[1],
            width=self.critic_width,
            hidden=0 if self.critic_width else self.critic_hidden,
            penalty=self.penalty,
            warm=self.T_w,
            warm_steps=self.n_dis,
            latent=self.latent,
            generator_width=self.width,
            generator_eta=self.eta_G,
        )
