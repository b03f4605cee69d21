"""Blocks: every pass over private records has one fixed, public shape.

A matrix product rounds differently for batches of another size, and in a batch of odd size differently at different positions.
A ReLU's derivative, or a choice of the largest coordinates, turns the last bit of a number into a jump; so one more record
could move what the *others* add, and no clip bounds that. Here records pass in blocks of one size, the last one filled up with
zeros, and a record's row is the same bits at every position of a block and among any neighbours (rule 12).

Whether it really is depends on the kernels of this machine. `steady_block` tries them, and takes smaller blocks where it is not;
in a block of one record there is nothing to try.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

# Matrix kernels work in tiles of up to 16 rows. A block of whole tiles has no odd rows at its end.
TILE = 16
MOST = 256
ENOUGH, MOST_ROUNDS = 20_000, 50  # numbers that a trial compares, and how often it tries at most
MOST_HEAVY = 64  # of records that take their time: what fills up the last block should not cost much

Rows = Callable[[Tensor, Tensor], Tensor]


def block_size(at_once: int) -> int:
    """The block for a pass that had better not take many more than `at_once` records: whole tiles, unless they are huge.

    >>> [block_size(at_once) for at_once in (0, 1, 3, 4, 16, 47, 200, 10_000)]
    [1, 1, 2, 16, 16, 32, 64, 256]
    """
    if at_once >= MOST:
        return MOST
    if at_once >= TILE // 4:
        return min(max(at_once // TILE, 1) * TILE, MOST_HEAVY)
    return 2 if at_once >= 2 else 1


def next_smaller(size: int) -> int:
    """Half of the tiles; below one tile, one record: there is little to win, and few numbers to try it on."""
    return size // 2 // TILE * TILE if size >= 2 * TILE else 1


def blocks(size: int, *tensors: Tensor) -> Iterator[tuple[int, list[Tensor]]]:
    """How many records a block really has, and the block: exactly `size` of them, filled up with zeros.

    Guarantee: the shape is public. No record at all gives one block without any, so that its sum has a shape, too. A block is
    a fresh copy, because a product may also round by where in memory its numbers begin.
    """
    count = len(tensors[0])
    for start in range(0, max(count, 1), size):
        real = min(size, count - start)
        block = [tensor.new_zeros(size, *tensor.shape[1:]) for tensor in tensors]
        for filled, tensor in zip(block, tensors, strict=True):
            filled[:real] = tensor[start : start + real]
        yield real, block


def steady_block(
    rows: Rows, preferred: int, shape: tuple[int, ...], classes: int, device: torch.device | str = "cpu"
) -> int:
    """The largest block, from `preferred` down, in which every record has the same bits at every position tried.

    Guarantee: reads public random records only. In the block it returns, the kernels of this machine gave each of them the
    same row wherever it stood and whatever stood beside it; a block of one is that by itself.
    """
    size = preferred
    while size > 1 and not is_steady(rows, size, shape, classes, device):
        size = next_smaller(size)
    if size < preferred:
        logger.warning(
            "This machine's kernels round a record by its position among %d records, so %d pass at a time. Nothing else changes; "
            "another number of threads (OMP_NUM_THREADS) may be faster.", preferred, size,
        )  # fmt: skip
    return size


@torch.no_grad()
def is_steady(rows: Rows, size: int, shape: tuple[int, ...], classes: int, device: torch.device | str = "cpu") -> bool:
    """Whether a record's row keeps its bits when the block is turned round, and when its neighbours change.

    Two ways of rounding agree for most numbers, so short rows are tried often.
    """
    rng = torch.Generator().manual_seed(12)
    compared = 0
    for _ in range(MOST_ROUNDS):
        x = (torch.rand((size, *shape), generator=rng) * 2 - 1).to(device)
        y = torch.randint(0, classes, (size,), generator=rng).to(device)
        expected = rows(x, y).clone()
        if not (_keeps_when_turned(rows, x, y, expected) and _keeps_among_others(rows, x, y, expected)):
            return False
        compared += expected.numel()
        if compared >= ENOUGH:
            break
    return True


def _keeps_when_turned(rows: Rows, x: Tensor, y: Tensor, expected: Tensor) -> bool:
    steps = {1, len(x) // 3, len(x) // 2, len(x) - 1} - {0}
    return all(same_bits(rows(x.roll(by, 0), y.roll(by, 0)).roll(-by, 0), expected) for by in steps)


def _keeps_among_others(rows: Rows, x: Tensor, y: Tensor, expected: Tensor) -> bool:
    """Each half among zeros, and among neighbours whose rows are no numbers."""
    middle = len(x) // 2
    for half in (slice(0, middle), slice(middle, len(x))):
        for other in (0.0, torch.nan):
            beside, labels = torch.full_like(x, other), torch.zeros_like(y)
            beside[half], labels[half] = x[half], y[half]
            if not same_bits(rows(beside, labels)[half], expected[half]):
                return False
    return True


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal, where two numbers that are both not finite count as equal: they add nothing anyway (rule 8)."""
    return bool(((a == b) | (~a.isfinite() & ~b.isfinite())).all())
