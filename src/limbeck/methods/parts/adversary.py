"""What the GANs with a DP-SGD discriminator share: its noised steps, and the generator, which never meets a record.

A step of the discriminator has two parts: the clipped gradients of the real records, which is an answer of the vault, and
those of made records, which are public and cost nothing. The generator learns from the discriminator alone, so it is
post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.func import functional_call

from limbeck.methods.base import Logbook, Method, SyntheticSet, unflattened
from limbeck.methods.parts.averaged import AveragedTraining
from limbeck.methods.parts.optimisers import Adam
from limbeck.methods.settings import setting
from limbeck.nets import NetSpec, Network, build
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, NetworkGradient

GRADIENTS = "discriminator"
BETAS = (0.5, 0.999)


@dataclass(frozen=True, kw_only=True)
class Adversarial(Method):
    """T               steps of the discriminator, each with one answer
    B               expected batch: every record is in a step with chance B / N
    C               clip on the gradient of one record, real or made, over all weights together
    sigma           noise std / sensitivity
    n_dis           steps of the discriminator for each one of the generator
    batch           made records of a step
    eta_D, eta_G    Adam's step sizes
    net, hidden     the discriminator and its width
    latent, width   of the generator
    ema             decay of the average of the generator's weights, which is released
    snapshots       sets kept during the run, for the curve of accuracy against epsilon
    """

    map_kind: ClassVar[str] = ""

    T: int = setting(2000, least=1)
    B: int = setting(256, least=1)
    C: float = setting(1.0, above=0)
    sigma: float | None = setting(None, above=0)
    n_dis: int = setting(1, least=1)
    batch: int = setting(128, least=1)
    eta_D: float = setting(1e-3, above=0)
    eta_G: float = setting(1e-3, above=0)
    net: str = setting("mlp")
    hidden: int = setting(128, least=1)
    latent: int = setting(16, least=1)
    width: int = setting(16, least=1)
    ema: float = setting(0.99, least=0, below=1)
    snapshots: int = setting(0, least=0, most=1000)

    @property
    def fixed_noise(self) -> float | None:
        return self.sigma

    def check(self, schema: Schema) -> None:
        super().check(schema)
        build(self.discriminator(), schema.shape, self.outputs(schema), seed=0)  # refuses what it cannot read

    def discriminator(self) -> NetSpec:
        return NetSpec(kind=self.net, width=self.hidden, depth=2 if self.net == "mlp" else 3)

    def outputs(self, schema: Schema) -> int:
        """Of the discriminator."""
        raise NotImplementedError

    def gradient(self, schema: Schema, weights: dict[str, Tensor]) -> NetworkGradient:
        """The map whose rows are gradients of a real record's loss."""
        raise NotImplementedError

    def made_gradient(self, mapping: NetworkGradient, x: Tensor, y: Tensor, schema: Schema) -> Tensor:
        """The sum of the clipped gradients of made records: clipped like the real ones, or they would outweigh them."""
        raise NotImplementedError

    def generator_loss(self, outputs: Tensor, y: Tensor, schema: Schema) -> Tensor:
        raise NotImplementedError

    def moved(self, weights: list[torch.nn.Parameter]) -> None:
        """What is done to the discriminator after a step."""

    def rate(self, schema: Schema) -> float:
        return min(1.0, self.B / schema.records)

    def queries(self, schema: Schema, noise_multiplier: float) -> tuple[Query, ...]:
        return (
            ClippedSum(
                label=GRADIENTS,
                map=self.map_kind,
                clip=self.C,
                noise_multiplier=noise_multiplier,
                rate=(self.rate(schema),),
                by_class=False,
                count=self.T,
            ),
        )

    def run(self, schema: Schema, ask: Ask, logbook: Logbook, device: torch.device) -> SyntheticSet:
        spec = GeneratorSpec(kind="datalens", latent=self.latent, width=self.width)
        training = AveragedTraining(
            self,
            spec,
            schema,
            device,
            steps=self.T,
            snapshots=self.snapshots,
            eta=self.eta_G,
            decay=self.ema,
            betas=BETAS,
        )
        network = build(self.discriminator(), schema.shape, self.outputs(schema), self.seed_at("discriminator"))
        adam = Adam(list(network.to(device).parameters()), self.eta_D, BETAS)
        state = training.state | {f"discriminator.{name}": value for name, value in adam.state.items()}
        for step in logbook.steps(self.T, state, GRADIENTS):
            mapping = self.gradient(
                schema, {name: value.detach().clone() for name, value in network.named_parameters()}
            )
            # Divided by the expected size, which is public; that of a sample is not (rule 3).
            real = ask(GRADIENTS, step, mapping).tensor(device).flatten() / (self.rate(schema) * schema.records)
            z, y = self._drawn(spec, schema, "made", step)
            x, y = training.made(z, y).to(device), y.to(device)
            made = self.made_gradient(mapping, x, y, schema) / self.batch
            adam.move(tuple(unflattened(real + made, mapping.weights).values()))
            self.moved(adam.parameters)
            if (step + 1) % self.n_dis == 0:
                self._learn(training, network, spec, schema, step)
            training.note(step, real)
        return training.result()

    def _drawn(self, spec: GeneratorSpec, schema: Schema, purpose: str, step: int) -> tuple[Tensor, Tensor]:
        rng = self.rng(purpose, step)
        return spec.latents(self.batch, rng), torch.randint(len(schema.classes), (self.batch,), generator=rng)

    def _learn(
        self, training: AveragedTraining, network: Network, spec: GeneratorSpec, schema: Schema, step: int
    ) -> None:
        z, y = self._drawn(spec, schema, "learned from", step)
        weights = {name: value.detach() for name, value in network.named_parameters()}
        outputs = functional_call(network, weights, (training.drawn(z, y),))
        training.descend(self.generator_loss(outputs, y.to(training.device), schema))
