"""A map-style `Dataset` of PyTorch as private records: each item is a record and its label, or a record alone.

It is the owner's own program. It is asked for its length before anything is booked, and for its items when the vault loads.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from limbeck.data import images
from limbeck.data.limits import require_room
from limbeck.data.records import Array, Records, as_records, no_labels, require_ids, require_pairs
from limbeck.data.source import DataSource
from limbeck.data.units import unit_codes
from limbeck.errors import BadInput, DataUnreadable, LimbeckError, ran_out
from limbeck.privacy.schema import Schema

WHERE = "The torch Dataset"


def is_torch_dataset(value: object) -> bool:
    """Without importing PyTorch. What has no items by number is refused here, in a sentence."""
    names = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(value).__mro__}
    if ("torch", "DataLoader") in names:
        raise BadInput("This is a DataLoader; give the Dataset that it reads: loader.dataset.")
    if ("torch", "IterableDataset") in names:
        raise BadInput(
            "This is an IterableDataset of torch, which has no length and no item by number; give arrays of it."
        )
    return ("torch", "Dataset") in names


def torch_source(dataset: Any, schema: Schema, y: Any = None, units: Any = None) -> DataSource:
    """The items as private records. y: labels, where the items have none.

    Guarantee: asks for the length alone; no item is looked at before `load`.
    """
    try:
        count = len(dataset)
    except (TypeError, NotImplementedError):
        raise BadInput(f"{WHERE} has no length; give it a __len__, or give arrays.") from None
    if schema.columns:
        raise BadInput(
            f"The schema of '{schema.name}' lists columns, and items of a torch Dataset have none; give a frame of pandas, "
            "polars or Arrow."
        )
    if y is not None:
        require_pairs(count, len(y), WHERE)
    if units is not None:
        require_ids(count, len(units), WHERE)
    if not count:
        raise BadInput(f"{WHERE} holds no record.")

    def read(schema: Schema) -> Records:
        x, labels = _items(dataset, count, schema, y)
        codes = None if units is None else unit_codes(units if isinstance(units, list) else np.asarray(units), "units")
        return as_records(x, labels, schema, WHERE, codes)

    return DataSource(schema, "a torch Dataset", read)


def _items(dataset: Any, count: int, schema: Schema, y: Any) -> tuple[Array, Any]:
    kind = images.raw_dtype(schema) if schema.is_image else np.float32
    require_room(4 * count * schema.numbers, WHERE, schema)
    x: Array | None = None
    labels: list[Any] = []
    for place in range(count):
        where = f"{WHERE}, item {place}"
        record, label = _parts(_item(dataset, place, where), where, y is None and schema.has_label)
        values = _values(record, schema, where)
        if x is None:
            x = np.empty((count, *values.shape), dtype=kind if values.dtype == np.uint8 else np.float32)
        if values.shape != x.shape[1:]:
            raise DataUnreadable(f"{where} has the shape {values.shape}, others have {x.shape[1:]}.")
        with np.errstate(over="ignore", invalid="ignore"):
            x[place] = values
        labels.append(label)
    assert x is not None
    if not schema.has_label:
        return x, no_labels(x)
    return x, np.asarray(y) if y is not None else labels


def _item(dataset: Any, place: int, where: str) -> Any:
    """Guarantee: what the owner's program says of an item is not repeated, because it may quote it."""
    try:
        return dataset[place]
    except Exception as error:
        if ran_out(error):
            raise
        raise DataUnreadable(f"{where} cannot be had: the Dataset raised {type(error).__name__}.") from None


def _parts(item: Any, where: str, labelled: bool) -> tuple[Any, Any]:
    if not isinstance(item, tuple | list):
        if labelled:
            raise DataUnreadable(f"{where} is no pair of a record and its label; or give the labels as y.")
        return item, None
    if not item or (labelled and len(item) < 2):
        raise DataUnreadable(f"{where} is no pair of a record and its label.")
    label: Any = item[1] if len(item) > 1 else None
    is_number = hasattr(label, "item") and getattr(label, "ndim", 0) == 0  # of torch or numpy
    return item[0], label.item() if is_number else label


def _values(record: Any, schema: Schema, where: str) -> Array:
    """Raw values of a tensor, an array, a number list or a picture of Pillow."""
    if any(kind.__module__.startswith("PIL.") for kind in type(record).__mro__):
        return _of_picture(record, schema, where)
    try:
        values = np.asarray(record.detach().cpu() if hasattr(record, "detach") else record)
    except LimbeckError:
        raise
    except Exception as error:
        raise DataUnreadable(f"{where} cannot be read as numbers ({type(error).__name__}).") from None
    if values.dtype.kind not in "biuf":
        raise DataUnreadable(f"{where} is of type {values.dtype}; a record must hold numbers.")
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def _of_picture(picture: Any, schema: Schema, where: str) -> Array:
    """Through the reader of files, so that a picture in memory is brought to the schema's size and channels like one on disk."""
    buffer = io.BytesIO()
    plain = picture if picture.mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16") else picture.convert("RGB")
    plain.save(buffer, format="PNG", compress_level=0)
    return images.decode(buffer.getvalue(), schema, where)
