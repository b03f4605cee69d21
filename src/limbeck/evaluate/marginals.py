"""Count the marginals of a synthetic table and of the real one. Reads private records: for the owner alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck.data.records import Array
from limbeck.evaluate.bins import Axis, axes
from limbeck.evaluate.correlations import correlations
from limbeck.evaluate.table_marginals import ColumnMarginal, RareCategory, Shares, TableMarginals
from limbeck.privacy.schema import Schema
from limbeck.release.violations import violations

DIGITS = 6
RARE = 0.01
MOST_COUNTERS = 1 << 20

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Encoded rows with hard categories, and their classes."""

    x: Array
    y: Array


def table_marginals(synthetic: Rows, train: Rows, test: Rows, schema: Schema) -> TableMarginals:
    """The 1-way and 2-way marginals of all columns and the label, against the real training rows.

    The real test rows are compared in the same way, as a yardstick: they differ from the training rows by chance alone. A set
    may come nearer than that, since it was made from the training rows.
    """
    found = axes(schema, train.x)
    own, real, other = ([axis.codes(rows.x, rows.y) for axis in found] for rows in (synthetic, train, test))
    return TableMarginals(
        columns=tuple(_column(axis, *each) for axis, *each in zip(found, real, own, strict=True)),
        pairs=_pairs(found, real, own),
        real_one_way=_mean([_distance(a, b, len(axis.bins)) for axis, a, b in zip(found, real, other, strict=True)]),
        real_two_way=_mean([each for row in _pairs(found, real, other) for each in row]),
        rare=tuple(each for axis, *codes in zip(found, real, own, strict=True) for each in _rare(axis, *codes)),
        correlations=correlations(train.x, synthetic.x, schema),
        broken=violations(synthetic.x, synthetic.y, schema) if schema.rules else None,
        real_broken=violations(train.x, train.y, schema, numbered=False) if schema.rules else None,
    )


def total_variation(first: Codes, second: Codes, cells: int) -> float:
    """Half of the sum of what the shares of the cells differ by. Codes run from 0 to `cells` - 1.

    >>> total_variation(np.array([0, 0, 1, 1]), np.array([0, 2]), 3)
    0.5
    """
    if cells > MOST_COUNTERS:
        met, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
        first, second, cells = codes[: len(first)], codes[len(first) :], len(met)
    return 0.5 * float(np.abs(_shares(first, cells) - _shares(second, cells)).sum())


def _shares(codes: Codes, cells: int) -> NDArray[np.float64]:
    return np.bincount(codes, minlength=cells) / max(len(codes), 1)


def _distance(first: Codes, second: Codes, cells: int) -> float:
    return round(total_variation(first, second, cells), DIGITS)


def _pairs(found: Sequence[Axis], real: Sequence[Codes], other: Sequence[Codes]) -> tuple[tuple[float, ...], ...]:
    def distance(i: int, j: int) -> float:
        width = len(found[j].bins)
        return _distance(real[i] * width + real[j], other[i] * width + other[j], len(found[i].bins) * width)

    return tuple(tuple(distance(i, j) for j in range(i)) for i in range(len(found)))


def _column(axis: Axis, real: Codes, own: Codes) -> ColumnMarginal:
    shares = _both(axis, real, own)
    return ColumnMarginal(
        name=axis.name,
        numeric=axis.numeric,
        total_variation=_distance(real, own, len(axis.bins)),
        missing=shares[-1],
        bins=dict(zip(axis.bins[:-1], shares, strict=False)),
    )


def _rare(axis: Axis, real: Codes, own: Codes) -> list[RareCategory]:
    """Categories that some real rows have and at most one of a hundred, the rarest first."""
    if axis.numeric:
        return []
    named = zip(axis.bins[:-1], _both(axis, real, own), strict=False)
    found = [RareCategory(column=axis.name, category=name, shares=shares) for name, shares in named]
    return sorted(
        (each for each in found if 0 < (each.shares.real or 0) <= RARE), key=lambda each: each.shares.real or 0
    )


def _both(axis: Axis, real: Codes, own: Codes) -> list[Shares]:
    pairs = zip(_shares(real, len(axis.bins)), _shares(own, len(axis.bins)), strict=True)
    return [Shares(real=round(float(a), DIGITS), synthetic=round(float(b), DIGITS)) for a, b in pairs]


def _mean(found: Sequence[float]) -> float | None:
    return round(statistics.fmean(found), DIGITS) if found else None
