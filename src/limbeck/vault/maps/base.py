"""A per-record map: what every one of them is, and how rows are clipped and added up.

To add a map: subclass `Map` in a file of its own, give it a `kind` that no other map ever had, write `rows`, and add it to the
list in `limbeck.vault.maps`. Override `clipped_sum` only where the clipped sum has a cheaper exact form, and prove its bound in
a `Guarantee:` line and a test. Private records pass through `limbeck.vault.maps.blocks`, so that a row is the same bits
whatever stands beside it (rule 12).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.nets import Augmentation, NetSpec
from limbeck.vault.maps.blocks import MOST, Rows, blocks, same_bits
from limbeck.vault.maps.bound import Bound, clip_rows


def outer_sums(vectors: Tensor, row: Tensor, count: int) -> Tensor:
    """Sums of the outer products of vectors with themselves, as one matrix product for each of `count` rows.

    Guarantee: |z z^T| in Frobenius norm is |z|^2, so vectors within `bound.root()` have outer products within `bound`. Products
    of whole numbers are whole, and a double adds them up exactly.
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

    @property
    def width(self) -> int | None:
        """How many numbers a row has, where that is known without passing a record."""
        return None

    def rows(self, x: Tensor, y: Tensor) -> Tensor:
        """(records, dimension): one row per record. Row i must depend on record i alone (rule 7)."""
        raise NotImplementedError

    def block_rows(self, x: Tensor, y: Tensor) -> Tensor:
        """The same for one block, where all that is done has the block's shape."""
        return self.rows(x, y)

    def trial(self, x: Tensor, y: Tensor) -> Tensor:
        """All values of a record whose bits must not depend on the rest of its block, for `steady_block` to compare."""
        return clip_rows(self.block_rows(x, y).flatten(1), 1.0)

    def clipped_sum(
        self, x: Tensor, row: Tensor, y: Tensor, count: int, bound: Bound, block: int | None = None
    ) -> Tensor:
        """Add up the clipped rows into `count` rows, record i into row `row[i]`, in double precision, in the bound's units.

        Guarantee: adding or removing one record moves the result by at most the clip in L2 norm. No other record's row moves,
        because every pass has the shape of one block. On the grid the sum is exact, whatever the order.
        """
        rows = self.clipped_rows(x, y, bound, block or self.block)
        total = torch.zeros(count, rows.shape[1], dtype=torch.float64, device=x.device)
        return total.index_add_(0, row, rows)

    def clipped_rows(self, x: Tensor, y: Tensor, bound: Bound, block: int) -> Tensor:
        """(records, dimension): each record's row within the bound, in its units. What `clipped_sum` adds up, or nearly so where
        that has a form of its own."""
        return in_blocks(self.block_rows, x, y, bound, block)

    def parameters(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def digest(self) -> str:
        """A fingerprint of kind and parameters: a resumed run must ask with the same map to get its stored answer."""
        text = json.dumps({"kind": self.kind, **self.parameters()}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def digest_of(tensor: Tensor) -> str:
    """Of its bits, for `parameters`; the same wherever it lies, and in whatever order it is held."""
    return hashlib.sha256(tensor.cpu().contiguous().numpy().tobytes()).hexdigest()


def in_blocks(rows: Rows, x: Tensor, y: Tensor, bound: Bound, block: int) -> Tensor:
    """(records, dimension) in double precision: every row of x, block by block, within the bound.

    Guarantee: that of `Bound.rows`; a row is made from its record by passes of one public shape.
    """
    parts = blocks(block, x, y)
    return torch.cat([bound.rows(rows(part, labels).flatten(1))[:real] for real, (part, labels) in parts])


def form_of(value: Any) -> str:
    """What decides which kernels a map runs: kinds and sizes of all that it is made of, not the values.

    >>> form_of(torch.zeros(3, 4)), form_of((1, 28)), form_of(0.7)
    ('(3, 4) torch.float32', "('1', '28')", 'float')
    """
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, NetSpec | Augmentation | str | int) or value is None:
        return str(value)
    if isinstance(value, dict):
        return str({name: form_of(part) for name, part in value.items()})
    if isinstance(value, tuple):
        return str(tuple(form_of(part) for part in value))
    if dataclasses.is_dataclass(value):
        # A whole number is a size, unless it is a seed: another one for every answer, and the same kernels.
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        parts = {name: "seed" if name == "seed" else form_of(part) for name, part in named.items()}
        return f"{type(value).__name__} {parts}"
    return type(value).__name__


def stand_in(value: Any) -> Any:
    """A map of the same form with public random numbers in place of its own.

    Kernels are tried with these. Whoever chooses a map's numbers could choose such as hide what its kernels do (a network of
    zeros, a scale of 1e300), have the form tried with them, and then ask with others.
    """
    if isinstance(value, Tensor):
        if not value.is_floating_point():
            return value
        drawn = torch.rand(value.shape, generator=torch.Generator().manual_seed(5), dtype=value.dtype) * 2 - 1
        # As a network starts: what comes out of a layer is about as large as what went in.
        return (drawn * math.sqrt(3 / max(math.prod(value.shape[1:]), 1))).to(value.device)
    if isinstance(value, NetSpec | Augmentation):
        return value
    if isinstance(value, float):
        return 0.5
    if isinstance(value, dict):
        return {name: stand_in(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(stand_in(part) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **{name: stand_in(getattr(value, name)) for name in fields})
    return value


def records_mix(mapping: Map, shape: tuple[int, ...], classes: int, device: torch.device | str = "cpu") -> bool:
    """Whether changing one record changes another record's row, tried on public random records (rule 7).

    It also does where there is not one row for each record, or where a row's length depends on how many there are.
    """
    rng = torch.Generator().manual_seed(7)
    x = (torch.rand((3, *shape), generator=rng) * 2 - 1).to(device)
    # The first and the last class, so that a map made for fewer classes fails here and not because of some record's label.
    y = torch.tensor([0, classes - 1, classes - 1], device=device)
    changed = x.clone()
    changed[1] = -changed[1] * 0.5
    with torch.no_grad():
        before, after, fewer = mapping.rows(x, y), mapping.rows(changed, y), mapping.rows(x[:2], y[:2])
    if before.dim() != 2 or len(before) != len(x) or fewer.shape != before[:2].shape:
        return True
    return not same_bits(before[[0, 2]], after[[0, 2]])
