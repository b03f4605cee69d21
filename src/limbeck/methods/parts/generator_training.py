"""The training of a generator on answers of teachers, and the set that it makes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from limbeck.methods.base import Method, SyntheticSet, TrainedGenerator
from limbeck.methods.parts.optimisers import Adam
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.schema import Schema

MADE_AT_ONCE = 500
SNAPSHOTS = "snapshots"
SERIES = ("size of the noised answer", "movement of the generator's records")  # root mean squares, by step
MEANS = "mean of the noised answer"  # by step; it has a sign, so it is no curve but a direction
WATCHED = 20  # records whose movement is measured


class GeneratorTraining:
    """A generator in training: its weights, Adam, and the sets that were kept."""

    def __init__(
        self,
        method: Method,
        spec: GeneratorSpec,
        schema: Schema,
        device: torch.device,
        *,
        steps: int,
        snapshots: int,
        eta: float,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self.spec, self.device = spec, device
        self.generator = self._built(method, schema)
        self._adam = Adam(list(self.generator.parameters()), eta, betas)
        self._labels = method.labels(schema)
        self._latents = spec.latents(len(self._labels), method.rng("set"))
        self._kept = torch.zeros(snapshots, len(self._labels), *schema.shape)
        self._after = [math.ceil((index + 1) * steps / snapshots) for index in range(snapshots)]
        self._series = torch.zeros(steps, len(SERIES), dtype=torch.float64)
        # A run that was begun before 0.6.0 has no means; they stay infinite then, and are left out.
        self._means = torch.full((steps,), math.inf, dtype=torch.float64)
        self._watched = slice(None, None, math.ceil(len(self._labels) / WATCHED))
        self._seen = self._shown()

    def _shown(self) -> Tensor:
        return self._made_by(self.generator, self._latents[self._watched], self._labels[self._watched])

    def _built(self, method: Method, schema: Schema) -> nn.Module:
        built = build_generator(self.spec, schema.shape, len(schema.classes), method.seed_at("generator"))
        return built.to(self.device)

    @property
    def released(self) -> nn.Module:
        """The generator that makes the set and goes into the release."""
        return self.generator

    @property
    def state(self) -> dict[str, Tensor]:
        kept = {SNAPSHOTS: self._kept} if len(self._kept) else {}
        return self._adam.state | kept | {"course": self._series, "seen": self._seen, "means": self._means}

    @property
    def luggage(self) -> dict[str, Tensor]:
        """What the steps need and change of the state: all but the sets that were kept."""
        return {name: value for name, value in self.state.items() if name != SNAPSHOTS}

    def descend(self, loss: Tensor) -> None:
        self._adam.move(torch.autograd.grad(loss, self._adam.parameters))

    def fit(self, latents: Tensor, labels: Tensor, target: Tensor, steps: int) -> None:
        """Learn to make `target` of these latents."""
        wanted = target.to(self.device)
        for _ in range(steps):
            self.descend((self.drawn(latents, labels) - wanted).square().mean())

    def follow(self, records: Tensor, slope: Tensor) -> None:
        """One step of Adam along `slope`, the gradient with respect to records that were `drawn`."""
        self._adam.move(torch.autograd.grad(records, self._adam.parameters, slope))

    def drawn(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Records that the generator can learn through."""
        records: Tensor = self.generator(latents.to(self.device), labels.to(self.device))
        return records

    def made(self, latents: Tensor, labels: Tensor) -> Tensor:
        """The same as finished records, on the CPU."""
        return self._made_by(self.generator, latents, labels)

    @torch.no_grad()
    def _made_by(self, generator: nn.Module, latents: Tensor, labels: Tensor) -> Tensor:
        parts = zip(torch.split(latents, MADE_AT_ONCE), torch.split(labels, MADE_AT_ONCE), strict=True)
        return torch.cat([generator(z.to(self.device), y.to(self.device)).cpu() for z, y in parts])

    def note(self, step: int, answer: Tensor) -> None:
        """Write down how large the answer was, which way it pushed on the whole, and how far some records moved."""
        moved = self._shown()
        self._series[step] = torch.stack([root_mean_square(answer), root_mean_square(moved - self._seen)])
        self._means[step] = answer.detach().cpu().double().mean()
        self._seen.copy_(moved)

    def next_snapshot(self, step: int) -> int | None:
        """After how many steps the set is kept the next time, once `step` steps are done."""
        return next((after for after in self._after if after > step), None)

    def keep(self, step: int) -> None:
        """After a step: keep the set, if a snapshot is due."""
        if step + 1 in self._after:
            self._kept[self._after.index(step + 1)] = self._made_by(self.released, self._latents, self._labels)

    def result(self) -> SyntheticSet:
        weights = {name: value.detach().cpu() for name, value in self.released.state_dict().items()}
        return SyntheticSet(
            self._made_by(self.released, self._latents, self._labels).numpy(),
            self._labels.numpy(),
            self._kept.numpy() if len(self._kept) else None,
            tuple(self._after),
            TrainedGenerator(self.spec, weights),
            self._course(),
        )

    def _course(self) -> dict[str, list[float]]:
        means = {MEANS: self._means.tolist()} if bool(self._means.isfinite().all()) else {}
        return {name: self._series[:, index].tolist() for index, name in enumerate(SERIES)} | means


def root_mean_square(numbers: Tensor) -> Tensor:
    return numbers.detach().cpu().double().square().mean().sqrt()
