"""The second question: all pairs of columns, and what its answer says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from limbeck.methods.mosaic.aimed import Parts
from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.measured import Measured, as_matrix, pairs_of
from limbeck.methods.mosaic.zeros import set_faint_zeros, set_zeros
from limbeck.privacy.rules import Rules
from limbeck.vault.api import Ask, Cells

LEAST_NOISE = 0.5  # records: what a mixture need not fit more closely, where there is hardly any noise
LABELLED = 2.0  # how much a column with the label counts beside a pair of columns, where pairs are asked for all classes together


def ask_pairs(
    axes: Sequence[Axis], records: float, ask: Ask, measured: Measured, rules: Rules, parts: Parts | None
) -> None:
    """Put the answer into what was measured, in place."""
    sizes = measured.sizes
    cells = _question(axes, measured, parts)
    answer = ask("pairs", 0, cells)
    values = torch.from_numpy(np.atleast_2d(answer.values) / records).float()
    noise = answer.noise_std / records
    pairs = values[:, : values.shape[1] - _labelled(measured)] / cells.added[0]
    measured.pairs.copy_(as_matrix(pairs, sizes) if parts is None else parts.as_matrix(pairs[0], sizes))
    surely = max(noise / cells.added[0], LEAST_NOISE / records) ** -2
    measured.precision.copy_(as_matrix(torch.full((1, _pair_cells(sizes)), surely), sizes)[0])
    if measured.labelled is not None:
        shares, precision = measured.labelled
        shares.copy_(values[0, pairs.shape[1] :].view(-1, len(shares)).T / cells.added[-1])
        precision.fill_(max(noise / cells.added[-1], LEAST_NOISE / records) ** -2)
    set_faint_zeros(measured)
    set_zeros(measured, rules, axes)


def _question(axes: Sequence[Axis], measured: Measured, parts: Parts | None) -> Cells:
    if parts is not None:
        return parts.question(axes)
    cuts, pairs = tuple(axis.cut() for axis in axes), pairs_of(len(axes))
    if measured.labelled is None:
        return Cells(cuts=cuts, tuples=pairs)
    alone = tuple((place, len(axes)) for place in range(len(axes)))
    weights = (1.0,) * len(pairs) + (LABELLED,) * len(alone)
    return Cells(cuts=cuts, tuples=(*pairs, *alone), weights=weights, classes=len(measured.single))


def _labelled(measured: Measured) -> int:
    """How many numbers of the answer are about a column and the label."""
    return 0 if measured.labelled is None else measured.labelled[0].numel()


def _pair_cells(sizes: Sequence[int]) -> int:
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
