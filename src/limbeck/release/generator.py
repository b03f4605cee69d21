"""A generator as part of a release: its weights, and what somebody needs to draw more records. Everything here is public.

generator.safetensors    the weights, by the names of the network's parameters and buffers
generator.json           the network, its latents, the classes, and in which shares the set holds them

The generator is made of answers that were paid for, so records drawn from it cost nothing (post-processing).
"""

from __future__ import annotations

import hashlib
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
from limbeck.nets.generators.spec import GeneratorSpec, build_generator
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import GENERATOR_FILES, Certificate
from limbeck.release.statement import read_certificate

WEIGHTS, DESCRIPTION = GENERATOR_FILES
FORMAT = 1
MADE_AT_ONCE = 500  # fixed, because the last bits of a product depend on how many rows it has
MOST_RECORDS = 10_000_000


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
        "input": f"float32 latents (records, {made.spec.latent}), {made.spec.law}, and class indices",
        "output": f"float32, (records, {', '.join(map(str, schema.shape))}), as the schema encodes records: the public "
        f"range [{schema.low:g}, {schema.high:g}] scaled to [-1, 1]",
    }
    write_atomic(folder / DESCRIPTION, (json.dumps(description, indent=1) + "\n").encode())


@dataclass(frozen=True, eq=False)
class Generator:
    """A released generator read back: the network in evaluation mode, and what its release says."""

    spec: GeneratorSpec
    network: nn.Module
    shares: tuple[int, ...]
    certificate: Certificate
    schema: Schema

    @torch.no_grad()
    def sample(
        self, count: int, seed: int = 0, label: str | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """`count` records and their class indices, in the shares of the set, or all of the class named `label`.

        Guarantee: reads nothing but the release, so it costs no budget. The same count, seed and label give the same
        records.
        """
        labels = torch.from_numpy(self._labels(count, label))
        # By way of a digest, so that neighbouring seeds have nothing in common.
        digest = hashlib.sha256(f"sample {_checked_seed(seed)}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
        made = np.empty((count, *self.schema.shape), np.float32)
        for start in range(0, count, MADE_AT_ONCE):
            part = slice(start, min(start + MADE_AT_ONCE, count))
            latents = self.spec.latents(part.stop - part.start, generator)
            records: Tensor = self.network(latents, labels[part])
            made[part] = records.numpy()
        return made, labels.numpy()

    def _labels(self, count: int, label: str | None) -> NDArray[np.int64]:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_RECORDS:
            raise BadInput(f"count must lie in 1 ... {MOST_RECORDS}, got count={count!r:.40}.")
        if label is not None:
            if label not in self.schema.classes:
                known = ", ".join(self.schema.classes[:20]) + (", ..." if len(self.schema.classes) > 20 else "")
                raise BadInput(f"The release has no class '{label}'; its classes are: {known}.")
            return np.full(count, self.schema.classes.index(label), np.int64)
        bounds = count * np.cumsum((0, *self.shares), dtype=np.int64) // sum(self.shares)
        return np.repeat(np.arange(len(self.shares), dtype=np.int64), np.diff(bounds))


def load_generator(folder: str | Path) -> Generator:
    """The generator of a release, ready to sample. `limbeck verify` checks it; this only needs it to be whole.

    folder: of a release by a method that makes a generator, such as DP-MERF.

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
        raise BadInput(
            f"The release in {folder} holds a set but no generator (method '{certificate.method}' makes none), so no "
            "more records can be drawn; set.npz has all there are.",
            "limbeck methods",
        )
    schema = certificate.public_assumptions
    try:
        described = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if described["format"] != FORMAT or described["classes"] != list(schema.classes):
            raise ValueError(described["format"])
        spec, shares = GeneratorSpec.from_dict(described["generator"]), _checked_shares(described["shares"], schema)
        network = build_generator(spec, schema.shape, len(schema.classes), seed=0)
        network.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError, BadInput):
        raise NotAuthentic(
            f"The release in {folder} is damaged: its generator cannot be read.", f"limbeck verify {folder}"
        ) from None
    return Generator(spec, network.eval().requires_grad_(False), shares, certificate, schema)


def _checked_shares(shares: Any, schema: Schema) -> tuple[int, ...]:
    if len(shares) != len(schema.classes) or not all(isinstance(share, int) and 0 <= share < 2**31 for share in shares):
        raise ValueError("shares")
    if not sum(shares):
        raise ValueError("shares")
    return tuple(shares)


def _checked_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise BadInput(f"seed must lie in 0 ... 2^31 - 1, got seed={seed!r:.40}.")
    return seed
