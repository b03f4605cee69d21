"""Finer cells and groups of categories among the weights of a model: how they are stored, and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.inner import Inner
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Column

Forms = dict[str, tuple[tuple[int, ...], torch.dtype]]


def stored_counts(axes: Sequence[Axis]) -> dict[str, Any]:
    """The fields of a spec; none where no column has any."""
    inner = tuple(0 if axis.inner is None else len(axis.inner.owner) for axis in axes)
    groups = tuple(max(axis.groups) + 1 if axis.groups else 0 for axis in axes)
    return {**({"inner": inner} if any(inner) else {}), **({"groups": groups} if any(groups) else {})}


def stored_insides(axes: Sequence[Axis]) -> dict[str, Tensor]:
    """The weights, one column after the other."""
    inner = [axis.inner for axis in axes if axis.inner is not None]
    groups = [group for axis in axes for group in axis.groups]
    named = {}
    if inner:
        named["inner_edges"] = torch.from_numpy(np.concatenate([each.edges for each in inner]).astype(np.float64))
        named["inner_shares"] = torch.from_numpy(np.concatenate([each.shares for each in inner]))
    return named | ({"groups": torch.tensor(groups)} if groups else {})


def inside_forms(spec: TableSpec, columns: Sequence[Column]) -> Forms:
    """The weights that a spec asks for."""
    forms: Forms = {}
    if any(spec.inner):
        forms["inner_edges"] = ((sum(_inner_edges(spec, columns)),), torch.float64)
        forms["inner_shares"] = ((sum(spec.inner),), torch.float64)
    if any(spec.groups):
        listed = sum(len(column.categories) for column, count in zip(columns, spec.groups, strict=True) if count)
        forms["groups"] = ((listed,), torch.int64)
    return forms


def _inner_edges(spec: TableSpec, columns: Sequence[Column]) -> list[int]:
    counts = spec.inner or (0,) * len(columns)
    return [
        count - 1 if count and (column.numeric or column.ordinal) else 0
        for column, count in zip(columns, counts, strict=True)
    ]


def with_insides(axes: Sequence[Axis], spec: TableSpec, weights: Mapping[str, Tensor]) -> list[Axis]:
    """The axes with groups and finer cells.

    Guarantee: raises BadInput unless finer edges hold all edges, each cell has finer ones, and their shares add up to 1.
    """
    made, columns = [], [axis.column for axis in axes]
    edges = _parts(weights.get("inner_edges"), _inner_edges(spec, columns))
    shares = _parts(weights.get("inner_shares"), spec.inner or (0,) * len(axes))
    grouped = spec.groups or (0,) * len(axes)
    groups = _parts(
        weights.get("groups"), [len(column.categories) if n else 0 for column, n in zip(columns, grouped, strict=True)]
    )
    for axis, cuts, own, group in zip(axes, edges, shares, groups, strict=True):
        if len(group):
            axis = replace(axis, groups=tuple(group.tolist()))
        made.append(axis if not len(own) else replace(axis, inner=_inner(axis, cuts, own)))
        if axis.groups and not len(own):
            raise BadInput(f"The categories of '{axis.column.name}' share cells, and nothing says how.")
    return made


def _parts(weights: Tensor | None, counts: Sequence[int]) -> list[Any]:
    values = np.zeros(0) if weights is None else weights.numpy()
    return np.split(values, list(accumulate(counts))[:-1])


def _inner(axis: Axis, edges: Any, shares: Any) -> Inner:
    there = axis.cells - axis.column.missing
    if axis.is_cut:
        require_edges(replace(axis, edges=edges))
        owner = np.searchsorted(axis.edges, np.concatenate([[-np.inf], edges]), side="right")
    else:
        owner = np.array(axis.groups, dtype=np.int64)
    right = set(owner.tolist()) == set(range(there)) and (not axis.is_cut or bool(np.isin(axis.edges, edges).all()))
    if not (right and len(owner) == len(shares) and bool((shares >= 0).all())):
        raise BadInput(f"The finer cells of column '{axis.column.name}' do not fit its cells.")
    if not np.allclose(np.bincount(owner, weights=shares), 1, atol=1e-6):
        raise BadInput(f"The shares of finer cells of column '{axis.column.name}' do not add up.")
    return Inner(np.asarray(edges, dtype=np.float64), owner.astype(np.int64), shares)


def require_edges(axis: Axis) -> None:
    """Rising, inside the public range, and none for categories."""
    if not len(axis.edges):
        return
    low, high = axis.range if axis.is_cut else (0.0, 0.0)
    if not (low < axis.edges[0] and axis.edges[-1] < high and bool((np.diff(axis.edges) > 0).all())):
        raise BadInput(f"The edges of column '{axis.column.name}' must rise inside of its range.")
