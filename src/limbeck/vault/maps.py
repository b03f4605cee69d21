"""The per-record maps that a query may name. All run inside the vault; their parameters are public values.

To add a map: subclass `Map`, give it a `kind` that no other map ever had, and write `rows`. Override `clipped_sum` only
where the clipped sum has a cheaper exact form, and prove its bound in a `Guarantee:` line and a test. Private records pass
through `limbeck.vault.blocks`, so that a row is the same bits whatever stands beside it (rule 12).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from limbeck.errors import BadInput
from limbeck.nets import Augmentation, FrozenEmbedding, NetSpec, apply, build
from limbeck.nets.augment import NUMBERS, AugmentationDraw
from limbeck.nets.embedding import records_at_once
from limbeck.vault.blocks import MOST, Rows, block_size, blocks
from limbeck.vault.gradients import ClippedGradients

# A clipped vector is a rounded product, so its norm may pass the bound by a few units in the last place of a float.
# Clipping to a hair less keeps the sensitivity a true bound.
SAFE = 1 - 1e-6


def clip_rows(rows: Tensor, clip: float) -> Tensor:
    """Scale each row down to norm `clip`, in double precision.

    Guarantee: every returned row has an L2 norm of at most `clip`, whatever the row holds (rule 8): numbers that are not
    finite count as 0.
    """
    rows = torch.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64)
    factor = (clip * SAFE / norms.clamp_min(torch.finfo(torch.float64).tiny)).clamp(max=1.0)
    # In double precision: the factor of a huge row or a tiny clip is no normal single-precision number, and would be rounded
    # by more than SAFE allows for.
    clipped: Tensor = rows.double() * factor
    return clipped


def outer_sums(vectors: Tensor, row: Tensor, count: int) -> Tensor:
    """Sums of the outer products of vectors with themselves, as one matrix product for each of `count` rows.

    Guarantee: |z z^T| in Frobenius norm is |z|^2, so vectors that are clipped to sqrt(clip) have outer products within `clip`.
    """
    parts = [vectors[row == index] for index in range(count)]
    return torch.stack([(part.T @ part).flatten() for part in parts])


@dataclass(frozen=True, kw_only=True)
class Map:
    """A function of one record (and its label) to a vector."""

    kind: ClassVar[str] = ""
    chunk: ClassVar[int] = 4096  # records that the vault hands over at a time

    @property
    def block(self) -> int:
        """How many records pass together, if the machine's kernels allow it: a function of public numbers."""
        return MOST

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        """(records, numbers): one row per record. Row i must depend on record i alone (rule 7)."""
        raise NotImplementedError

    def block_rows(self, x: Tensor, y: Tensor) -> Tensor:
        """The same for one block, where all that is done has the block's shape."""
        return self.rows(x, y)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        """All of a record's numbers whose bits must not depend on the rest of its block, for `steady_block` to compare."""
        return clip_rows(self.block_rows(x, y).flatten(1), 1.0)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, clip: float, block: int | None = None
    ) -> Tensor:
        """Add up the clipped rows into `count` rows, record i into row `row[i]`, in double precision.

        Guarantee: adding or removing one record moves the result by at most `clip` in L2 norm. No other record's row moves,
        because every pass has the shape of one block.
        """
        rows = in_blocks(self.block_rows, x, y, clip, block or self.block)
        total = torch.zeros(count, rows.shape[1], dtype=torch.float64, device=x.device)
        return total.index_add_(0, row, rows)

    def parameters(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def digest(self) -> str:
        """A fingerprint of kind and parameters: a resumed run must ask with the same map to get its stored answer."""
        text = json.dumps({"kind": self.kind, **self.parameters()}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def in_blocks(rows: Rows, x: Tensor, y: Tensor, clip: float, block: int) -> Tensor:
    """(records, numbers) in double precision: every row of x, block by block, clipped.

    Guarantee: that of `clip_rows`; a row is made from its record by passes of one public shape.
    """
    made = []
    for real, (part, labels) in blocks(block, x, y):
        flat = rows(part, labels).flatten(1)
        made.append((flat.double() if math.isinf(clip) else clip_rows(flat, clip))[:real])
    return torch.cat(made)


@dataclass(frozen=True, kw_only=True)
class Identity(Map):
    """The record itself, as scale * (x + shift)."""

    kind: ClassVar[str] = "identity"
    shift: float = 0.0
    scale: float = 1.0

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return (x.flatten(1) + self.shift) * self.scale


@dataclass(frozen=True, kw_only=True)
class OneHot(Map):
    """The class of the record; its sum is the class counts."""

    kind: ClassVar[str] = "one_hot"
    classes: int

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.one_hot(y, self.classes).to(x.dtype)


@dataclass(frozen=True, kw_only=True)
class SecondMoment(Map):
    """The outer product of the record with itself, after subtracting a public centre."""

    kind: ClassVar[str] = "second_moment"
    chunk: ClassVar[int] = 1024
    centre: tuple[float, ...] = ()

    def _centred(self, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        return flat - torch.tensor(self.centre, dtype=x.dtype, device=x.device) if self.centre else flat

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        centred = self._centred(x)
        return torch.einsum("bi,bj->bij", centred, centred).flatten(1)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return clip_rows(self._centred(x), 1.0)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, clip: float, block: int | None = None
    ) -> Tensor:
        """One matrix product per row instead of an outer product per record. Guarantee: that of `outer_sums`."""
        vectors = in_blocks(lambda part, _: self._centred(part), x, y, math.sqrt(clip), block or self.block)
        return outer_sums(vectors, row, count)


@dataclass(frozen=True, kw_only=True)
class RandomFeatures(Map):
    """The embedding of the record by a freshly initialised network, after an augmentation drawn per class.

    `with_count` appends a 1 to every row, so that the sum tells how many records it is over. The 1 is clipped together
    with the features, like everything that one record touches (rule 2).
    """

    kind: ClassVar[str] = "random_features"
    chunk: ClassVar[int] = 256
    net: NetSpec
    shape: tuple[int, ...]
    seed: int
    augmentation: Augmentation | None = None
    with_count: bool = False

    @functools.cached_property
    def _embeddings(self) -> dict[torch.device, FrozenEmbedding]:
        return {}

    @property
    def block(self) -> int:
        return block_size(records_at_once(self.net, self.shape))

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        """Of records that are sorted by class."""
        return self._embedded(augmented_by_class(x, y, self.augmentation, self.seed, self.shape))

    def block_rows(self, x: Tensor, y: Tensor) -> Tensor:
        return self._embedded(augmented_block(x, y, self.augmentation, self.seed, self.shape))

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([super().trial(x, y), changed_by_each(x, self.augmentation)], dim=1)

    def _embedded(self, x: Tensor) -> Tensor:
        if x.device not in self._embeddings:
            self._embeddings[x.device] = FrozenEmbedding(self.net, self.shape, self.seed, device=x.device)
        embedded = self._embeddings[x.device](x)
        return torch.cat([embedded, embedded.new_ones(len(embedded), 1)], dim=1) if self.with_count else embedded


def augmented_by_class(
    x: Tensor, y: Tensor, augmentation: Augmentation | None, seed: int, shape: tuple[int, ...]
) -> Tensor:
    """Records of one class share their parameters, and the synthetic set gets the same ones. Sorted by class."""
    if augmentation is None or not len(x):
        return x
    classes, sizes = torch.unique_consecutive(y, return_counts=True)
    parts = zip(classes.tolist(), torch.split(x, sizes.tolist()), strict=True)
    return torch.cat([apply(part, augmentation.draw(seed * 1009 + c, shape)) for c, part in parts])


def augmented_block(
    x: Tensor, y: Tensor, augmentation: Augmentation | None, seed: int, shape: tuple[int, ...]
) -> Tensor:
    """The same for one block, in any order: the whole block is changed for each class in it, and each record takes its own.

    Guarantee: every change has the block's shape. Means over a picture would else round by how many of its class stand there.
    """
    if augmentation is None:
        return x
    made = torch.zeros_like(x)
    for c in sorted(set(y.tolist())):
        made = torch.where(
            (y == c).view(-1, *[1] * (x.dim() - 1)), apply(x, augmentation.draw(seed * 1009 + c, shape)), made
        )
    return made


def changed_by_each(x: Tensor, augmentation: Augmentation | None) -> Tensor:
    """(records, numbers): under every family of the augmentation, whichever a run will draw."""
    families = augmentation.families if augmentation is not None and x.dim() == 4 else ()
    draws = [AugmentationDraw(family, (0.3, 0.7, 0.2)[: NUMBERS[family]]) for family in families]
    return torch.cat([x.new_zeros(len(x), 0), *(apply(x, draw).flatten(1) for draw in draws)], dim=1).double()


@dataclass(frozen=True, kw_only=True)
class NetworkGradient(Map):
    """The gradient of the cross-entropy of one record with respect to all parameters of a network.

    clipping      'joint': all parameters together; 'per_layer': each weight tensor to an equal share of the bound
    augmentation  drawn per class from `seed`, before the network sees the record
    """

    kind: ClassVar[str] = "network_gradient"
    chunk: ClassVar[int] = 1024  # the engine takes as few of them at a time as the cache holds
    net: NetSpec
    shape: tuple[int, ...]
    classes: int
    weights: dict[str, Tensor]
    clipping: str = "joint"
    augmentation: Augmentation | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.clipping not in ("joint", "per_layer"):
            raise BadInput(f"clipping must be 'joint' or 'per_layer', got clipping={self.clipping!r}.")

    @functools.cached_property
    def _engines(self) -> dict[torch.device, ClippedGradients]:
        return {}

    def _engine(self, device: torch.device) -> ClippedGradients:
        if device not in self._engines:
            network = build(self.net, self.shape, self.classes, seed=0)
            self._engines[device] = ClippedGradients(network, self.shape, self.weights, device)
        return self._engines[device]

    @property
    def block(self) -> int:
        return _gradient_block(self.net, self.shape, self.classes)

    def augmented(self, x: Tensor, y: Tensor) -> Tensor:
        return augmented_block(x, y, self.augmentation, self.seed, self.shape)

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        return self._engine(x.device).rows(self.augmented(x, y), y)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        rows = self._engine(x.device).measured_rows(self.augmented(x, y), y)
        return torch.cat([rows, changed_by_each(x, self.augmentation)], dim=1)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, clip: float, block: int | None = None
    ) -> Tensor:
        """Without a row for every record.

        Guarantee: `ClippedGradients.add_clipped` bounds each record's part by `clip`; a record is in one row.
        """
        engine, per_layer = self._engine(x.device), self.clipping == "per_layer"
        total = engine.zeros(count)
        for real, (part, labels, rows) in blocks(block or self.block, x, y, row):
            engine.add_clipped(total, self.augmented(part, labels), labels, rows, real, clip, per_layer)
        return total

    def parameters(self) -> dict[str, Any]:
        hashes = {
            name: hashlib.sha256(value.cpu().numpy().tobytes()).hexdigest() for name, value in self.weights.items()
        }
        plain = {"net": self.net.to_dict(), "shape": self.shape, "classes": self.classes, "weights": hashes}
        return plain | {"clipping": self.clipping, "augmentation": self.augmentation, "seed": self.seed}


@functools.cache
def _gradient_block(net: NetSpec, shape: tuple[int, ...], classes: int) -> int:
    return ClippedGradients.block_of(build(net, shape, classes, seed=0), shape)


MAPS: dict[str, type[Map]] = {
    mapping.kind: mapping for mapping in (Identity, OneHot, SecondMoment, RandomFeatures, NetworkGradient)
}


def form_of(value: Any) -> str:
    """What decides which kernels a map runs: kinds and sizes of all that it is made of, not its numbers."""
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, NetSpec | Augmentation | str) or value is None:
        return str(value)
    if isinstance(value, dict):
        return str({name: form_of(part) for name, part in value.items()})
    if dataclasses.is_dataclass(value):
        parts = {field.name: form_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return f"{type(value).__name__} {parts}"
    return type(value).__name__


def records_mix(mapping: Map, shape: tuple[int, ...], classes: int, device: torch.device | str = "cpu") -> bool:
    """Whether changing one record changes another record's row, tried on public random records (rule 7)."""
    generator = torch.Generator().manual_seed(7)
    x = (torch.rand((3, *shape), generator=generator) * 2 - 1).to(device)
    # The first and the last class, so that a map made for fewer classes fails here and not because of some record's label.
    y = torch.tensor([0, classes - 1, classes - 1], device=device)
    changed = x.clone()
    changed[1] = -changed[1] * 0.5
    with torch.no_grad():
        before, after = mapping.rows(x, y), mapping.rows(changed, y)
    return not torch.equal(before[[0, 2]], after[[0, 2]])
