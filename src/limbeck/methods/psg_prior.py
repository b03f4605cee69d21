"""PSG with a generator prior: the set is what a small generator makes of fixed latents.

Chen, Kerkouche and Fritz, supplement, Algorithm 2. As PSG, but the step goes to the generator's parameters: pictures that
look like pictures, for somewhat less accuracy.

Where we differ: as in PSG, and in Adam's step: with the supplement's .01 our generator gets stuck and learns nothing
(`--set eta=0.01` tries it), with .001 it learns steadily. The generator is released too; it was trained on the set's own
latents only, and its description says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch

from limbeck.errors import BadSettings
from limbeck.methods.base import Logbook, SyntheticSet, TrainedGenerator
from limbeck.methods.parts.gradients import distance
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.psg import PSG
from limbeck.methods.settings import setting
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask


@dataclass(frozen=True, kw_only=True)
class PSGPrior(PSG):
    """eta: step size of Adam on the generator. latent: dimension of a picture's latents. generator_width: of its last map."""

    name: ClassVar[str] = "psg-prior"
    title: ClassVar[str] = "Private set generation with a generator prior"
    paper: ClassVar[str] = "Chen, Kerkouche and Fritz, Private Set Generation, supplement, Algorithm 2"

    eta: float = setting(0.001, above=0)
    latent: int = setting(10, least=1)
    generator_width: int = setting(64, least=1)

    def check(self, schema: Schema) -> None:
        super().check(schema)
        if not schema.is_image:
            raise BadSettings(f"The prior makes pictures, and '{schema.name}' is a table; use --method psg.")

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        labels = self.labels(schema).to(device)
        walk = self.walk(schema, labels, logbook, device)
        spec = GeneratorSpec(kind="dcgan", latent=self.latent, width=self.generator_width, fitted=self.per_class)
        latents = spec.latents(len(labels), self.rng("latents")).to(device)
        prior = build_generator(spec, schema.shape, len(schema.classes), self.seed_at("generator")).to(device)
        adam = Adam(list(prior.parameters()), self.eta)
        images = prior(latents, labels).detach()
        for i in walk.steps(adam.state | {"images": images}, "gradients", images):
            noisy = walk.by_name(ask("gradients", i, self.real_gradient(schema, walk)).tensor(device))
            made = prior(latents, labels)
            _, slope = walk.gradients.pull_back(walk.weights, made.detach(), labels, partial(distance, other=noisy))
            adam.move(torch.autograd.grad(made, adam.parameters, slope))
            if (i + 1) % self.K == 0:  # the network trains on them now, or they are the result
                with torch.no_grad():
                    images.copy_(prior(latents, labels))
        return replace(walk.result(images), generator=TrainedGenerator(spec, prior.state_dict()))
