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

from limbeck.data.units import Codes
from limbeck.errors import DataUnreadable
from limbeck.privacy.schema import Schema

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Records:
    """x: raw values, (N, *schema.shape), uint8 or float32. y: int64 class indices, (N,).

    units: int64, (N,), the person of each record; equal codes are one person. None exactly if the schema's unit is a record.
    """

    x: Array
    y: Array
    units: Codes | None = None

    def __len__(self) -> int:
        return len(self.y)

    def only(self, chosen: Array) -> Records:
        """The records at these places, or where this is True, each still with its person."""
        return Records(self.x[chosen], self.y[chosen], None if self.units is None else self.units[chosen])


def as_records(
    x: Array, labels: Array | Sequence[Any], schema: Schema, where: str, units: Codes | None = None
) -> Records:
    """Bring raw arrays of a file to the form that the vault expects, or say what is wrong with the file."""
    x = as_raw(fit_shape(x, schema, where), where)
    y = class_indices(labels, schema, where)
    require_pairs(len(x), len(y), where)
    require_persons(len(y), None if units is None else len(units), schema, where)
    return Records(x, y, units)


def require_persons(records: int, ids: int | None, schema: Schema, where: str) -> None:
    """One id per record where the unit is a person, and none otherwise."""
    if schema.by_person and ids is None:
        raise DataUnreadable(
            f"{where} does not say who a record is about, but the unit of '{schema.name}' is {schema.unit_words}."
        )
    if not schema.by_person and ids is not None:
        raise DataUnreadable(f"{where} says who a record is about, but the unit of '{schema.name}' is one record.")
    if ids is not None:
        require_ids(records, ids, where)


def require_ids(records: int, ids: int, where: str) -> None:
    if records != ids:
        raise DataUnreadable(
            f"{where} holds {records} records but {ids} ids of persons; there must be one id per record."
        )


def require_pairs(records: int, labels: int, where: str) -> None:
    if records != labels:
        raise DataUnreadable(
            f"{where} holds {records} records but {labels} labels; there must be one label per record."
        )
    if not records:
        raise DataUnreadable(f"{where} holds no record.")


def require_form(x: tuple[int, ...], y: tuple[int, ...], schema: Schema, where: str) -> None:
    """The checks of `as_records` that shapes alone decide, so that a header fails them before its file is unpacked."""
    _order(x, schema, where)
    require_one_label(y, where)
    require_pairs(x[0], y[0], where)


def require_one_label(y: tuple[int, ...], where: str) -> None:
    if len(y) != 1:
        raise DataUnreadable(f"{where} holds labels of shape {y}; there must be one label per record.")


def fit_shape(x: Array, schema: Schema, where: str) -> Array:
    """Accept (N, C, H, W), (N, H, W, C) and, for one channel, (N, H, W); for other records (N, numbers)."""
    order = _order(x.shape, schema, where)
    if order == "channels last":
        return np.ascontiguousarray(np.moveaxis(x, -1, 1))
    return x[:, None] if order == "no channels" else x


def _order(found: tuple[int, ...], schema: Schema, where: str) -> str:
    if found and found[1:] == schema.shape:
        return "as declared"
    if schema.is_image and found:
        channels, height, width = schema.shape
        if found[1:] == (height, width, channels):
            return "channels last"
        if channels == 1 and found[1:] == (height, width):
            return "no channels"
    raise DataUnreadable(f"{where} holds records of shape {found[1:]}, but the schema says {schema.shape}.")


def as_raw(x: Array, where: str) -> Array:
    """uint8 stays as it is, every other number becomes float32 (NaN and infinity are left to the vault)."""
    if x.dtype == np.uint8 or x.dtype == np.bool_:
        return x.astype(np.uint8, copy=False)
    if x.dtype.kind not in "iuf":
        raise DataUnreadable(f"{where} holds values of type {x.dtype}; they must be whole or floating-point numbers.")
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(np.float32, copy=False)


def no_labels(x: Array) -> Array:
    """The class of each record of a table without a label: there is one."""
    return np.zeros(len(x), dtype=np.int64)


def class_indices(labels: Array | Sequence[Any], schema: Schema, where: str) -> Array:
    """Class indices from whole numbers (an index) or texts (a class name)."""
    if not isinstance(labels, np.ndarray):
        return _indices_of_cells(labels, schema, where)
    require_one_label(labels.shape, where)
    if labels.dtype.kind in "iu" or not labels.size:
        if labels.size:
            _require_indices(int(labels.min()), int(labels.max()), schema, where)
        return labels.astype(np.int64)
    if labels.dtype.kind not in "UO":
        raise DataUnreadable(f"{where} holds labels of type {labels.dtype}; they must be class indices or class names.")
    return _indices_of_names(labels.tolist(), schema, where)


def _indices_of_cells(cells: Sequence[Any], schema: Schema, where: str) -> Array:
    """Of a list. It does not become an array first: that makes every text as long as the longest one."""
    kinds = {type(cell) for cell in cells}
    if kinds <= {int}:
        if cells:
            _require_indices(min(cells), max(cells), schema, where)
        return np.array(cells, dtype=np.int64)
    if kinds in ({float}, {bool}):
        raise DataUnreadable(
            f"{where} holds labels of type {kinds.pop().__name__}; they must be class indices or names."
        )
    return _indices_of_names(cells, schema, where)


def _require_indices(low: int, high: int, schema: Schema, where: str) -> None:
    if low < 0 or high >= len(schema.classes):
        raise DataUnreadable(
            f"{where} holds labels outside 0..{len(schema.classes) - 1}, "
            f"but the schema of '{schema.name}' lists {len(schema.classes)} classes."
        )


def _indices_of_names(names: Sequence[Any], schema: Schema, where: str) -> Array:
    index_of = {name: index for index, name in enumerate(schema.classes)}
    met: dict[int, int] = {}  # one object in many rows is looked up once, for it may be a long text
    indices = []
    for name in names:
        index = met.get(id(name))
        if index is None:
            index = met[id(name)] = index_of.get(str(name).strip(), -1)
        indices.append(index)
    if -1 in indices:
        known = ", ".join(schema.classes[:10]) + (", ..." if len(schema.classes) > 10 else "")
        raise DataUnreadable(f"{where} holds a label that is not a class of the schema; its classes are: {known}.")
    return np.array(indices, dtype=np.int64)
