"""How many rows of a table break a constraint that its schema declares. In a release it is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from limbeck.errors import NotAuthentic
from limbeck.privacy.column import Column
from limbeck.privacy.schema import Schema
from limbeck.privacy.values import numbers_by_name
from limbeck.release.certificate import Certificate
from limbeck.release.reader import read_release


def violations(x: NDArray[np.float32], y: NDArray[np.int64], schema: Schema, numbered: bool = True) -> int:
    """Rows that break a constraint when they are decoded; of rows with the same unique value all but one.

    numbered: whether unique values are looked at. Those of real rows may be nearer to each other than single precision tells.
    """
    rules = schema.rules
    rows = numbers_by_name(x, schema.columns, rules.names)
    for each in rules.derived:
        # Single precision may be a little off a sum; a Parquet file shows the sum.
        name, wanted = each.column.name, each.of(rows)
        near = np.abs(rows[name] - wanted) <= _blur(each.column)
        rows[name] = np.where(near, wanted, rows[name])
    if schema.has_label:
        rows[schema.label] = y.astype(np.float64)
    broken = ~rules.hold(rows) if rules.names else np.zeros(len(x), dtype=np.bool_)
    unique = numbers_by_name(x, schema.columns, [column.name for column in rules.unique if numbered])
    for values in unique.values():
        again = np.ones(len(values), dtype=np.bool_)
        again[np.unique(values, return_index=True)[1]] = False
        broken |= again
    return int(broken.sum())


def _blur(column: Column) -> float:
    return 0.0 if not column.numeric else 2.0**-22 * (column.range[1] - column.range[0])


def require_kept(release: Path, certificate: Certificate) -> None:
    """Guarantee: returns only if every row of a released set keeps to the constraints on its certificate."""
    schema = certificate.public_assumptions
    if certificate.is_model or not schema.rules:
        return
    found = read_release(release)
    broken = violations(found.x, found.y, schema)
    if broken:
        raise NotAuthentic(f"{broken} of {len(found.y)} rows break a constraint that the certificate declares.")
