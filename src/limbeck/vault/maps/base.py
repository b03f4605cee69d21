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
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from limbeck.nets import Augmentation, NetSpec
from limbeck.vault.maps.blocks import MOST, Rows, blocks
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


def in_blocks(rows: Rows, x: Tensor, y: Tensor, bound: Bound, block: int) -> Tensor:
    """(records, dimension) in double precision: every row of x, block by block, within the bound.

    Guarantee: that of `Bound.rows`; a row is made from its record by passes of one public shape.
    """
    parts = blocks(block, x, y)
    return torch.cat([bound.rows(rows(part, labels).flatten(1))[:real] for real, (part, labels) in parts])


def form_of(value: Any) -> str:
    """What decides which kernels a map runs: kinds and sizes of all that it is made of, not the values."""
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
    rng = torch.Generator().manual_seed(7)
    x = (torch.rand((3, *shape), generator=rng) * 2 - 1).to(device)
    # The first and the last class, so that a map made for fewer classes fails here and not because of some record's label.
    y = torch.tensor([0, classes - 1, classes - 1], device=device)
    changed = x.clone()
    changed[1] = -changed[1] * 0.5
    with torch.no_grad():
        before, after = mapping.rows(x, y), mapping.rows(changed, y)
    return not torch.equal(before[[0, 2]], after[[0, 2]])
