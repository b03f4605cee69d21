"""A generator as part of a release: its weights, and what somebody needs to draw more records. Everything here is public.

generator.safetensors    the weights, by the names of the network's parameters and buffers
generator.json           the network, its latents, the classes, and in which shares the set holds them

Of a table it may be a model that is no network: limbeck.release.table_generator. Either is made of answers that were paid for,
so records drawn from it cost nothing (post-processing).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from limbeck.errors import BadInput, NotAuthentic
from limbeck.files import write_atomic
from limbeck.methods import TrainedGenerator
from limbeck.methods.elixir import Elixir
from limbeck.methods.graphical.network import NetworkModel
from limbeck.methods.mosaic.model import TableModel
from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import GENERATOR_FILES, Certificate
from limbeck.release.conditions import Conditions, read_conditions
from limbeck.release.distilled import ANSWERS
from limbeck.release.drawing import Drawn, checked_count, gathered, seed_of
from limbeck.release.statement import read_certificate
from limbeck.release.table_generator import TableGenerator

WEIGHTS, DESCRIPTION = GENERATOR_FILES
FORMAT = 1
MADE_AT_ONCE = 500  # fixed, because the last bits of a product depend on how many rows it has
DRAWN_AT_ONCE = 10_000  # where not all of them are kept


def write_generator(folder: Path, made: TrainedGenerator, schema: Schema, counts: Sequence[int]) -> None:
    """`counts`: records of each class in the set; more records are drawn in the same shares."""
    weights = {name: value.detach().cpu().contiguous() for name, value in made.weights.items()}
    write_atomic(folder / WEIGHTS, save(weights))
    description = {
        "format": FORMAT,
        "generator": made.spec.to_dict(),
        "shape": list(schema.shape),
        "classes": list(schema.classes),
        "shares": list(counts),
        "input": _input_words(made.spec),
        "output": f"float32, (records, {', '.join(map(str, schema.shape))}), as the schema encodes records: the public "
        f"range [{schema.low:g}, {schema.high:g}] scaled to [-1, 1]",
    }
    write_atomic(folder / DESCRIPTION, (json.dumps(description, indent=1) + "\n").encode())


def _input_words(spec: GeneratorSpec | TableSpec | GraphSpec) -> str:
    if isinstance(spec, TableSpec):
        return "none: cells are drawn from the mixture, values evenly inside of them"
    if isinstance(spec, GraphSpec):
        return "none: cells are drawn step by step from tables, values evenly inside of them"
    return f"float32 latents (records, {spec.latent}), {spec.law}, and class indices"


@dataclass(frozen=True, eq=False)
class Generator:
    """A released generator read back: the network in evaluation mode, and what its release says."""

    spec: GeneratorSpec
    network: nn.Module
    shares: tuple[int, ...]
    certificate: Certificate
    schema: Schema

    @property
    def trained(self) -> TrainedGenerator:
        """Spec and weights, as they were released."""
        return TrainedGenerator(self.spec, dict(self.network.state_dict()))

    @property
    def fitted(self) -> int:
        """How many fixed latents per class it was trained on; 0 if they were drawn afresh."""
        return self.spec.fitted

    def sample(self, count: int, seed: int = 0, label: str | None = None, where: Sequence[str] = ()) -> Drawn:
        """`count` records and their class indices: in the shares of the set, all of the class named `label`, or those rows of a
        table that keep to every condition of `where`, such as "age>60".

        Guarantee: reads nothing but the release, so it costs no budget. The same arguments give the same records.
        """
        conditions = read_conditions(where, self.schema, label)
        generator = torch.Generator().manual_seed(seed_of(seed))
        if not conditions:
            return self._made(self._labels(checked_count(count), conditions), generator)

        def draw(most: int) -> Drawn:
            labels = self._labels(most, conditions)
            # Classes stand one after the other, and not all that is drawn is kept.
            return self._made(labels[torch.randperm(most, generator=generator).numpy()], generator)

        return gathered(checked_count(count), self.schema.shape, draw, conditions, DRAWN_AT_ONCE)

    @torch.no_grad()
    def draw(self, labels: Tensor, rng: torch.Generator) -> Tensor:
        """Pictures for these labels, from random numbers of the caller's own."""
        return torch.from_numpy(self._made(labels.cpu().numpy(), rng)[0])

    @torch.no_grad()
    def _made(self, labels: NDArray[np.int64], generator: torch.Generator) -> Drawn:
        made = np.empty((len(labels), *self.schema.shape), np.float32)
        for start in range(0, len(labels), MADE_AT_ONCE):
            part = slice(start, min(start + MADE_AT_ONCE, len(labels)))
            latents = self.spec.latents(part.stop - part.start, generator)
            records: Tensor = self.network(latents, torch.from_numpy(labels[part]))
            made[part] = records.numpy()
        return made, labels

    def _labels(self, count: int, conditions: Conditions) -> NDArray[np.int64]:
        if conditions.label is not None:
            return np.full(count, conditions.label, np.int64)
        bounds = count * np.cumsum((0, *self.shares), dtype=np.int64) // sum(self.shares)
        return np.repeat(np.arange(len(self.shares), dtype=np.int64), np.diff(bounds))


def load_generator(folder: str | Path) -> Generator | TableGenerator:
    """The generator of a release, ready to sample. `limbeck verify` checks it; this only needs it to be whole.

    folder: of a release by a method that makes a generator, such as DP-MERF, or a model of a table, as Mosaic does.

    >>> x, y = load_generator("digits-generator").sample(20, seed=1)
    >>> x.shape
    (20, 1, 8, 8)
    """
    folder = Path(folder)
    certificate = read_certificate(folder)
    if certificate.is_model:
        raise BadInput(
            f"The release in {folder} is a trained model, not a set; there is nothing to sample from. In Python "
            "limbeck.load_model opens it."
        )
    if not certificate.has_generator:
        raise without_generator(folder, certificate)
    schema = certificate.public_assumptions
    try:
        described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if described["format"] != FORMAT or described["classes"] != list(schema.classes):
            raise ValueError(described["format"])
        shares, weights = _checked_shares(described["shares"], schema), load_file(folder / WEIGHTS)
        if described["generator"]["kind"] == TableSpec.kind:
            model = TableModel.of(TableSpec.from_dict(described["generator"]), weights, schema)
            return TableGenerator(model, shares, certificate, schema)
        if described["generator"]["kind"] == GraphSpec.kind:
            network_model = NetworkModel.of(GraphSpec.from_dict(described["generator"]), weights, schema)
            return TableGenerator(network_model, shares, certificate, schema)
        spec = GeneratorSpec.from_dict(described["generator"])
        network = build_generator(spec, schema.shape, len(schema.classes), seed=0)
        network.load_state_dict(weights)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError, BadInput):
        raise NotAuthentic(
            f"The release in {folder} is damaged: its generator cannot be read.", f"limbeck verify {folder}"
        ) from None
    return Generator(spec, network.eval().requires_grad_(False), shares, certificate, schema)


def without_generator(folder: Path, certificate: Certificate) -> BadInput:
    """Why nothing can be drawn from a set, and what can be done."""
    said = f"The release in {folder} holds a set but no generator"
    if ANSWERS in certificate.files:
        return BadInput(
            f"{said}. It keeps its answers, so you can have one, for nothing.",
            f"limbeck distil {folder} --generator auto --out NEW",
        )
    if certificate.distilled is not None:
        return BadInput(
            f"{said}: it was distilled without one. The release that its certificate cites keeps the answers, and has a "
            "generator or gives you one for nothing.",
            "limbeck distil --help",
        )
    if certificate.joined is not None:
        return BadInput(f"{said}: it was joined from others, each of which may have one.", "limbeck sample --help")
    if certificate.method == Elixir.name and not certificate.public_assumptions.is_image:
        return BadInput(
            f"{said}: '{certificate.method}' makes one for pictures only, so no more rows can be drawn; set.npz has all there "
            "are. Sets of method mosaic, the default for tables, carry a model that rows are drawn from.",
            "limbeck methods",
        )
    if certificate.method == Elixir.name:
        return BadInput(
            f"{said}, nor the answers that one is matched to: it was made without them, as generator=0 and answers=false say, or "
            "before version 0.8.0. So no more records can be drawn; set.npz has all there are."
        )
    return BadInput(
        f"{said} (method '{certificate.method}' makes none), so no more records can be drawn; set.npz has all there are.",
        "limbeck methods",
    )


def _checked_shares(shares: Any, schema: Schema) -> tuple[int, ...]:
    if len(shares) != len(schema.classes) or not all(isinstance(share, int) and 0 <= share < 2**31 for share in shares):
        raise ValueError("shares")
    if not sum(shares):
        raise ValueError("shares")
    return tuple(shares)
