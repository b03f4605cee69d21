"""The initial set of Elixir: samples of a Gaussian model of each class, from five cheap answers.

Means are taken around a common centre and clipped at the records' mean distance from it. Principal components are sought
among the low frequencies of an image only, where they stand out of the noise. All these values are bought, none is a setting.
Rows of a table are then moved to agree with the linear classifier that follows from the same values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from limbeck.methods.base import TrainedGenerator
from limbeck.nets.features.cosines import low_frequencies as frequencies
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Ask, Residual

PARTS = {
    "centre": 4,
    "distance": 2,
    "means": 20,
    "spread": 2,
    "moments": 72,
}  # per cent of the budget of the initial set
GAUSSIAN = "gaussian"  # the model as a generator
ABOVE_NOISE = 1.1  # of the largest eigenvalue of pure noise
FLAT = 0.1  # of the mean variance: directions flatter than this are not worth the few rows of a set


def initial_queries(noise_multiplier: float) -> tuple[Query, ...]:
    """Together they cost as much as one answer with this noise, because the squares of 1 / noise add up."""
    return tuple(
        ClippedSum(
            label=label,
            map="residual",
            clip=1.0,
            noise_multiplier=noise_multiplier / math.sqrt(part / 100),
            by_class=label in ("means", "moments"),
        )
        for label, part in PARTS.items()
    )


@dataclass(frozen=True)
class ClassModel:
    """Mean and components of a class; a component is a row of `axes`, as long as its standard deviation."""

    mean: Tensor
    axes: Tensor

    def sample(self, count: int, rng: torch.Generator) -> Tensor:
        return self.mean + balanced_normal(count, len(self.axes), rng) @ self.axes


def balanced_normal(count: int, dimension: int, rng: torch.Generator) -> Tensor:
    """Normal rows whose mean is 0 and whose covariance is the identity, as nearly as so few rows allow: a small set then has
    its model's own mean and components, not those of a lucky draw."""
    drawn = torch.randn(count, dimension, generator=rng)
    if count < 2 or not dimension:
        return drawn
    left, _, right = torch.linalg.svd(drawn - drawn.mean(0), full_matrices=False)
    # Centring took one dimension: the last direction of a wide table is rounding.
    kept = min(count - 1, dimension)
    rows: Tensor = left[:, :kept] @ right[:kept] * math.sqrt(max(count, dimension))
    return rows


@dataclass(frozen=True)
class Model:
    """All classes, their shares of the records, and `blur`: variances up to this one may be noise, or are too flat to matter."""

    classes: list[ClassModel]
    shares: Tensor
    blur: float

    def sample(self, labels: Tensor, rng: torch.Generator) -> Tensor:
        """Samples of each class's model, in the order of `labels`, which are sorted."""
        assert all(one <= other for one, other in pairwise(labels.tolist()))
        counts = torch.bincount(labels, minlength=len(self.classes)).tolist()
        return torch.cat([one.sample(count, rng) for one, count in zip(self.classes, counts, strict=True)])

    def lined_up(self, rows: Tensor, labels: Tensor) -> Tensor:
        """The rows, moved as little as needed for this model's best linear classifier to give each its own label exactly.

        A hundred rows cannot hold the covariance of a hundred columns: a model that learns from plain samples fits directions
        in which only these rows differ. The least-squares classifier follows from means and moments, which have been paid for.
        """
        means = torch.stack([one.mean for one in self.classes]).double()
        shares, centre = self.shares.double(), self.shares.double() @ means
        apart = (means - centre) * shares[:, None]
        spread = sum(share * (one.axes.T @ one.axes).double() for share, one in zip(shares, self.classes, strict=True))
        spread = spread + apart.T @ (means - centre) + self.blur * torch.eye(means.shape[1], dtype=torch.float64)
        rule = torch.linalg.solve(spread, apart.T)
        missing = torch.eye(len(means), dtype=torch.float64)[labels] - shares - (rows.double() - centre) @ rule
        moved: Tensor = rows + (missing @ torch.linalg.pinv(rule, rtol=1e-3)).float()
        return moved


def initial_set(model: Model, labels: Tensor, schema: Schema, rng: torch.Generator) -> Tensor:
    """Records of these labels, within the range."""
    rows = model.sample(labels, rng)
    if not schema.is_image:
        rows = model.lined_up(rows, labels)
    return rows.clamp(-1, 1).view(-1, *schema.shape)


def bought_model(schema: Schema, ask: Ask, sizes: Tensor, size: tuple[int, ...] | None = None) -> Model:
    """The Gaussian model of each class, from five answers. size: what pictures are averaged down to; `schema` has it then."""
    dimension, records = schema.numbers, float(sizes.sum())
    longest = math.sqrt(dimension)
    basis = low_frequencies(schema)

    def asked(label: str, centre: Tensor, scale: float, form: str, among: Tensor | None = None) -> Tensor:
        return ask(label, 0, Residual(centre=centre, scale=scale, basis=among, form=form, size=size)).tensor() * (
            scale**2 if form == "outer" else scale
        )

    centre = (asked("centre", torch.zeros(1, dimension), longest, "vector") / records).clamp(-1, 1)[None]
    distance = float(asked("distance", centre, 2 * longest, "length")[0]) / records
    distance = min(max(distance, 0.01 * longest), 2 * longest)
    means = centre + asked("means", centre, distance, "vector") / sizes[:, None]
    spread = float(asked("spread", means, 2 * distance, "length", basis)[0]) / records
    spread = min(max(spread, 0.01 * longest), 2 * distance)
    moments = asked("moments", means, spread, "outer", basis).view(len(sizes), len(basis), len(basis))
    own = [components(moment / size) for moment, size in zip(moments, sizes, strict=True)]
    common = moments.sum(0) / records
    shared, spectrum = components(common), torch.linalg.eigvalsh((common + common.T).double() / 2)
    classes = [ClassModel(mean, _joined(axes, shared) @ basis) for mean, axes in zip(means, own, strict=True)]
    return Model(classes, sizes / records, max(noise_edge(spectrum), FLAT * float(spectrum.sum()) / dimension))


def components(moment: Tensor) -> Tensor:
    """Those principal components of a noisy second moment that stand above its noise, as long as their true deviation.

    Without noise no eigenvalue is negative, and those of the noise lie evenly around 0: the lowest one tells how far they
    reach. They also push a component's own value up, by an amount that is known (spiked random matrices).
    """
    values, vectors = torch.linalg.eigh((moment + moment.T).double() / 2)
    edge = noise_edge(values)
    kept = values > max(ABOVE_NOISE * edge, 1e-9)
    seen = values[kept]
    true = (seen + (seen.square() - edge**2).clamp_min(0).sqrt()) / 2
    axes: Tensor = (vectors[:, kept] * true.sqrt()).T.float()
    return axes


def noise_edge(values: Tensor) -> float:
    """The largest eigenvalue that noise alone gives a second moment with these: as far above 0 as the lowest lies below."""
    return max(0.0, -float(values.min()))


def _joined(own: Tensor, shared: Tensor) -> Tensor:
    """A class's own components, and what all classes share outside of them."""
    if not len(own):
        return shared
    directions = own / own.norm(dim=1, keepdim=True)
    return torch.cat([own, shared - (shared @ directions.T) @ directions])


def low_frequencies(schema: Schema) -> Tensor:
    """(coordinates, dimension), orthonormal: cosines of low frequency for images, the columns themselves for tables."""
    return frequencies(schema.shape) if schema.is_image else torch.eye(schema.numbers)


def generator_of(model: Model, schema: Schema, size: int) -> TrainedGenerator:
    """The model itself, for more pictures than the set has. schema: of the size that pictures are modelled at; size: its longer
    side, 0 where pictures have that size themselves."""
    basis = low_frequencies(schema)
    latent = max(1, *(len(one.axes) for one in model.classes))
    axes = torch.zeros(len(model.classes), latent, len(basis))
    for own, one in zip(axes, model.classes, strict=True):
        own[: len(one.axes)] = one.axes @ basis.T
    spec = GeneratorSpec(kind=GAUSSIAN, latent=latent, size=size)
    return TrainedGenerator(spec, {"means": torch.stack([one.mean for one in model.classes]), "axes": axes})
