"""The private records as a reader hands them to the vault, and the checks that every reader shares.

A check looks at the form of a file (shapes, lengths, the set of labels) and names the file, never the content of a
record. Values are not checked: the vault clamps them, because an error that depends on a value would tell about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from limbeck.errors import DataUnreadable
from limbeck.schema import Schema

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Records:
    """x: raw values, (N, *schema.shape), uint8 or float32. y: int64 class indices, (N,)."""

    x: Array
    y: Array

    def __len__(self) -> int:
        return len(self.y)


def as_records(x: Array, labels: Array | Sequence[Any], schema: Schema, where: str) -> Records:
    """Bring raw arrays of a file to the form that the vault expects, or say what is wrong with the file."""
    x = as_raw(fit_shape(x, schema, where), where)
    y = class_indices(labels, schema, where)
    if len(x) != len(y):
        raise DataUnreadable(f"{where} holds {len(x)} records but {len(y)} labels; there must be one label per record.")
    if not len(x):
        raise DataUnreadable(f"{where} holds no record.")
    return Records(x, y)


def fit_shape(x: Array, schema: Schema, where: str) -> Array:
    """Accept (N, C, H, W), (N, H, W, C) and, for one channel, (N, H, W); for other records (N, numbers)."""
    shape = schema.shape
    if x.ndim >= 1 and x.shape[1:] == shape:
        return x
    if len(shape) == 3:
        channels, height, width = shape
        if x.shape[1:] == (height, width, channels):
            return np.ascontiguousarray(np.moveaxis(x, -1, 1))
        if channels == 1 and x.shape[1:] == (height, width):
            return x[:, None]
    raise DataUnreadable(f"{where} holds records of shape {x.shape[1:]}, but the schema says {shape}.")


def as_raw(x: Array, where: str) -> Array:
    """uint8 stays as it is, every other number becomes float32 (NaN and infinity are left to the vault)."""
    if x.dtype == np.uint8 or x.dtype == np.bool_:
        return x.astype(np.uint8, copy=False)
    if x.dtype.kind not in "iuf":
        raise DataUnreadable(f"{where} holds values of type {x.dtype}; they must be whole or floating-point numbers.")
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(np.float32, copy=False)


def class_indices(labels: Array | Sequence[Any], schema: Schema, where: str) -> Array:
    """Class indices from whole numbers (an index) or texts (a class name)."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise DataUnreadable(f"{where} holds labels of shape {array.shape}; there must be one label per record.")
    if array.dtype.kind in "iu" or not array.size:
        if array.size and (array.min() < 0 or array.max() >= len(schema.classes)):
            raise DataUnreadable(
                f"{where} holds labels outside 0..{len(schema.classes) - 1}, "
                f"but the schema of '{schema.name}' lists {len(schema.classes)} classes."
            )
        return array.astype(np.int64)
    if array.dtype.kind not in "UO":
        raise DataUnreadable(f"{where} holds labels of type {array.dtype}; they must be class indices or class names.")
    return _indices_of_names([str(label).strip() for label in array.tolist()], schema, where)


def _indices_of_names(names: list[str], schema: Schema, where: str) -> Array:
    index = {name: place for place, name in enumerate(schema.classes)}
    if any(name not in index for name in names):
        known = ", ".join(schema.classes[:10]) + (", ..." if len(schema.classes) > 10 else "")
        raise DataUnreadable(f"{where} holds a label that is not a class of the schema; its classes are: {known}.")
    return np.array([index[name] for name in names], dtype=np.int64)
