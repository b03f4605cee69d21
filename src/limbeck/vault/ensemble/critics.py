"""Teachers that are Wasserstein critics: those of GS-WGAN, with their warm start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from limbeck.errors import BadInput
from limbeck.nets.architectures.critic import VECTORS, critic_score, critic_weights, turn_vectors
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.numbers import require_count, require_positive
from limbeck.vault.ensemble.teachers import Batch, Pupils, Teacher, Weights, balanced


@dataclass(frozen=True, kw_only=True)
class Critic(Teacher):
    """Lowers mean score of fakes - mean score of records + penalty * mean (|gradient between them| - 1)^2.

    width, hidden     filters of the first layer; 0: a template for each class, and so many hidden units, instead of them
    penalty           weight of the gradient penalty
    warm              steps of the warm start (0: none), each of warm_steps critic steps and one of a throw-away generator
    latent, generator_width, generator_eta     of that generator
    """

    kind: ClassVar[str] = "critic"
    fixed: ClassVar[tuple[str, ...]] = VECTORS

    eta: float = 1e-4
    beta2: float = 0.9
    width: int = 64
    hidden: int = 0
    penalty: float = 10.0
    warm: int = 0
    warm_steps: int = 5
    latent: int = 10
    generator_width: int = 64
    generator_eta: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("warm_steps", "latent", "generator_width"):
            require_count(name, getattr(self, name))
        for name in ("width", "hidden"):
            if getattr(self, name):
                require_count(name, getattr(self, name))
        require_positive("penalty", self.penalty)
        require_positive("generator_eta", self.generator_eta)
        if self.warm < 0:
            raise BadInput(f"warm must be at least 0, got warm={self.warm}.")

    def start(self, seeds: Sequence[int]) -> Weights:
        return critic_weights(self.shape, self.classes, self.width, seeds, self.hidden)

    def loss(self, weights: Weights, real: Batch, fake: Batch, random: torch.Generator) -> Tensor:
        turn_vectors(weights)
        critics, records = real.y.shape
        fakes = fake.x.expand(critics, *fake.x.shape[1:])
        x, y = torch.cat([real.x, fakes], dim=1), torch.cat([real.y, fake.y.expand(critics, -1)], dim=1)
        scores = critic_score(weights, x, y)
        as_fake = (scores[:, records:] * balanced(real, fake, self.classes)).mean(1)
        apart = as_fake - (scores[:, :records] * real.weight).mean(1)
        share = torch.rand((1, records, 1, 1, 1), generator=random).to(real.x.device)
        between = (share * real.x + (1 - share) * fakes[:, :records]).requires_grad_(True)
        # Every score depends on its own critic and image alone, so one pass gives all the gradients.
        (slope,) = torch.autograd.grad(critic_score(weights, between, real.y).sum(), between, create_graph=True)
        # A gradient of exactly 0 has a norm without a derivative.
        norms = (slope.flatten(2).square().sum(2) + 1e-12).sqrt()
        return apart + self.penalty * ((norms - 1).square() * real.weight).mean(1)

    def score(self, weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return critic_score(weights, x, y)

    def warm_up(self, pupils: Pupils, reals: Callable[[int], Batch]) -> None:
        """Every critic against a generator of its own, which is forgotten.

        Guarantee: generator i sees critic i alone, so what one record changes stays with its critic; nothing leaves.
        """
        any_weight = next(iter(pupils.weights.values()))
        rivals = Rivals(self, len(any_weight), any_weight.device) if self.warm else None
        for step in range(self.warm):
            assert rivals is not None
            for turn in range(self.warm_steps):
                real = reals(step * self.warm_steps + turn)
                random = torch.Generator().manual_seed(2 * (step * self.warm_steps + turn))
                fake = rivals.made(real.y.shape[1], random)
                still = Batch(fake.x.detach(), fake.y, fake.weight)
                pupils.move(self.loss(pupils.weights, real, still, random))
            fake = rivals.made(real.y.shape[1], torch.Generator().manual_seed(2 * step + 1))
            rivals.move(-self.score(pupils.weights, fake.x, fake.y).mean(1))


class Rivals:
    """Throw-away generators, one for each critic, over stacked weights. All start alike, from a public seed."""

    def __init__(self, critic: Critic, critics: int, device: torch.device) -> None:
        self._classes, self._critics, self._device = critic.classes, critics, device
        self._spec = GeneratorSpec(
            kind="dcgan", latent=critic.latent, law="bernoulli", width=critic.generator_width
        )  # fmt: skip
        self._net = build_generator(self._spec, critic.shape, critic.classes, seed=0).to(device)
        self._weights = {
            name: value.detach().expand(critics, *value.shape).clone().requires_grad_(True)
            for name, value in self._net.named_parameters()
        }
        # Adam works number by number, so a generator's moments are its own.
        self._adam = torch.optim.Adam(self._weights.values(), critic.generator_eta, (critic.beta1, critic.beta2))

    def made(self, count: int, random: torch.Generator) -> Batch:
        """Labels and latents are public and the same for all."""
        z = self._spec.latents(count, random).to(self._device)
        y = torch.randint(0, self._classes, (count,), generator=random).to(self._device)

        def one(weights: Weights) -> Tensor:
            made: Tensor = functional_call(self._net, weights, (z, y))
            return made

        weight = torch.ones(1, count, device=self._device)
        return Batch(vmap(one)(self._weights), y.expand(self._critics, -1), weight)

    def move(self, loss: Tensor) -> None:
        gradients = torch.autograd.grad(loss.sum(), list(self._weights.values()))
        for value, gradient in zip(self._weights.values(), gradients, strict=True):
            value.grad = torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)
        self._adam.step()
