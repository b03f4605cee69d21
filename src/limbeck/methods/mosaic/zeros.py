"""Cells that no row can lie in, by the declared constraints: what is measured there is noise, and known to be 0."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.measured import Measured
from limbeck.privacy.condition import EQUALITY
from limbeck.privacy.rules import Literal, Rules

Mask = NDArray[np.bool_]
SURER = 25.0  # times the precision of what was measured: known, but no reason to fit nothing else


def set_zeros(measured: Measured, rules: Rules, axes: Sequence[Axis]) -> None:
    """Put what is known into what was measured, in place."""
    zeros = torch.from_numpy(impossible(rules, axes))
    if bool(zeros.any()):
        measured.pairs[:, zeros] = 0.0
        measured.precision[zeros] *= SURER


def impossible(rules: Rules, axes: Sequence[Axis]) -> Mask:
    """(W, W): pairs of cells all of whose values contradict a constraint."""
    ends = np.cumsum([axis.cells for axis in axes])
    blocks = {axis.column.name: (axis, slice(end - axis.cells, end)) for axis, end in zip(axes, ends, strict=True)}
    found = np.zeros((ends[-1], ends[-1]), dtype=np.bool_)
    for literals in rules.never:
        names = sorted({literal.column for literal in literals})
        if len(names) > 2 or not set(names) <= set(blocks):
            continue
        sure = []
        for name in names:
            axis, block = blocks[name]
            own = [surely(literal, axis) for literal in literals if literal.column == name]
            sure.append((block, np.logical_and.reduce(own)))
        (rows, one), (columns, two) = sure if len(sure) == 2 else (sure[0], (slice(None), np.ones(ends[-1], np.bool_)))
        found[rows, columns] |= one[:, None] & two
    for ordered in rules.orders:
        for first, second in itertools.combinations(ordered, 2):
            if {first, second} <= set(blocks):
                (one_axis, rows), (two_axis, columns) = blocks[first], blocks[second]
                found[rows, columns] |= _least(one_axis)[:, None] > _most(two_axis)
    return found | found.T


def _ends(axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the largest value of each cell with values, or of each category."""
    first, last = axis.spans()
    return first / axis.scale, last / axis.scale


def _least(axis: Axis) -> NDArray[np.float64]:
    return np.append(_ends(axis)[0], [np.nan] * axis.column.missing)


def _most(axis: Axis) -> NDArray[np.float64]:
    return np.append(_ends(axis)[1], [np.nan] * axis.column.missing)


def surely(literal: Literal, axis: Axis) -> Mask:
    """(cells,): whether it is true of every value of a cell."""
    first, last = _ends(axis)
    condition = literal.condition
    if condition.number is not None and condition.operator in EQUALITY:
        between = (first <= condition.number) & (condition.number <= last)
        is_equal = (condition.operator == "=") == literal.holds
        found = (first == last) & between if is_equal else ~between
    else:
        found = literal.of(first) & literal.of(last)
    if axis.groups:
        found = np.bincount(axis.groups, weights=~found) == 0
    return np.append(found, [bool(literal.of(np.array([np.nan]))[0])] * axis.column.missing).astype(np.bool_)
