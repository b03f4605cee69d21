"""A `Dataset` of the Hugging Face library as private records, through Arrow: pictures, or the rows of a table.

The library is never imported here; what it was given is asked for its Arrow form.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from limbeck.data import images, table
from limbeck.data.frames import ARROW, HUGGING_FACE, Form, form_of, frame_source
from limbeck.data.limits import require_few_columns, require_room
from limbeck.data.parquet import CHUNK, cells, image_column, label_column
from limbeck.data.records import Records, as_records, class_indices, require_ids
from limbeck.data.source import DataSource
from limbeck.data.units import no_unit, unit_codes
from limbeck.errors import BadInput, DataUnreadable
from limbeck.privacy.schema import Schema

WHERE = "The Hugging Face Dataset"


def is_hf_dataset(value: object) -> bool:
    """Without importing the library. What has no rows at hand is refused here, in a sentence."""
    names = {(kind.__module__.split(".")[0], kind.__name__) for kind in type(value).__mro__}
    if ("datasets", "DatasetDict") in names:
        raise BadInput(f"This is a DatasetDict; give one of its splits: {', '.join(map(str, value))}.")  # type: ignore[call-overload]
    if names & {("datasets", "IterableDataset"), ("datasets", "IterableDatasetDict")}:
        raise BadInput("This is a streamed Dataset, which has no rows by number; load it without streaming=True.")
    return ("datasets", "Dataset") in names


def words_of(dataset: Any) -> dict[str, tuple[str, ...]]:
    """The names behind the numbers of each ClassLabel column."""
    features: Mapping[str, Any] = dataset.features or {}
    return {
        name: tuple(map(str, feature.names)) for name, feature in features.items() if getattr(feature, "names", None)
    }


def hf_form(dataset: Any, schema: Schema) -> Form:
    """Guarantee: looks at names and types only."""
    require_few_columns(len(dataset.column_names), WHERE)
    if schema.is_image:
        return Form(HUGGING_FACE, {})
    words = words_of(dataset)
    kinds = dataset.features.arrow_schema
    found = form_of(kinds.empty_table())
    return Form(
        HUGGING_FACE, {name: pa.string() if name in words else kind for name, kind in found.types.items()}, words
    )


def hf_source(dataset: Any, schema: Schema, y: Any = None, units: Any = None) -> DataSource:
    """The rows as private records. y, units: labels and persons, where there is no column for them."""
    if not len(dataset):
        raise BadInput(f"{WHERE} holds no record.")
    if not schema.is_image:
        return frame_source(_table(dataset, schema), schema, y, units)
    if y is not None:
        raise BadInput(
            f"y was given, but {WHERE[0].lower() + WHERE[1:]} of pictures has its labels in a column; leave y out."
        )
    if units is not None:
        require_ids(len(dataset), len(units), WHERE)
    names = list(dataset.column_names)
    if schema.by_person and units is None and schema.unit not in names:
        raise no_unit(WHERE, f"column '{schema.unit}'", schema, f"it has {len(names)} columns")
    image = image_column(names) or _only_image(dataset)
    label = label_column(names, schema.label, Path("the Dataset"))

    def read(schema: Schema) -> Records:
        return _pictures(dataset, image, label, schema, units)

    return DataSource(schema, "a Hugging Face Dataset", read)


def _only_image(dataset: Any) -> str:
    found = [name for name, feature in (dataset.features or {}).items() if type(feature).__name__ == "Image"]
    if len(found) != 1:
        raise BadInput(
            f"{WHERE} has no column 'image' and {len(found)} others of type Image; rename the one that is meant."
        )
    return str(found[0])


def _table(dataset: Any, schema: Schema) -> Any:
    """The columns that the schema lists, with words where a ClassLabel holds numbers."""
    wanted = [name for name in dataset.column_names if name in table.wanted_columns(schema)]
    found = (
        dataset.select_columns(wanted).with_format(ARROW)[:] if wanted else pa.table({"none": [None] * len(dataset)})
    )
    for name, words in words_of(dataset).items():
        if name in wanted:
            found = found.set_column(wanted.index(name), name, _in_words(found.column(name), words))
    return found


def _in_words(column: Any, words: tuple[str, ...]) -> Any:
    """A number that has no word is a gap, as -1 is by the library's own custom."""
    known = [words[cell] if isinstance(cell, int) and 0 <= cell < len(words) else None for cell in column.to_pylist()]
    return pa.chunked_array([pa.array(known, type=pa.string())])


def _pictures(dataset: Any, image: str, label: str, schema: Schema, units: Any) -> Records:
    count, kind = len(dataset), images.raw_dtype(schema)
    require_room(count * schema.numbers * np.dtype(kind).itemsize, WHERE, schema)
    columns = [image, label, *([schema.unit] if _has_unit(dataset, schema, units) else [])]
    rows, words = dataset.select_columns(columns).with_format(ARROW), words_of(dataset).get(label)
    x, labels, ids = np.empty((count, *schema.shape), dtype=kind), [np.empty(0, np.int64)], []
    for start in range(0, count, CHUNK):
        piece = rows[start : start + CHUNK]
        for row, cell in enumerate(cells_of(piece.column(image)), start=start):
            where = f"{WHERE}, row {row}"
            x[row] = images.decode(_picture(cell, where), schema, where)
        given = piece.column(label)
        labels.append(class_indices(cells_of(given if words is None else _in_words(given, words)), schema, WHERE))
        if len(columns) > 2:
            ids += cells_of(piece.column(schema.unit))
    codes = None if not schema.by_person else unit_codes(ids or units, WHERE)
    return as_records(x, np.concatenate(labels), schema, WHERE, codes)


def cells_of(column: Any) -> list[Any]:
    return [cell for chunk in column.chunks for cell in cells(chunk)]


def _has_unit(dataset: Any, schema: Schema, units: Any) -> bool:
    return schema.by_person and units is None and schema.unit in dataset.column_names


def _picture(cell: Any, where: str) -> bytes | Path:
    """What an Image column holds: the bytes of a file, or the path of one on this machine."""
    if isinstance(cell, dict):
        if isinstance(cell.get("bytes"), bytes):
            return bytes(cell["bytes"])
        if isinstance(cell.get("path"), str):
            return Path(cell["path"])
    if isinstance(cell, bytes):
        return cell
    raise DataUnreadable(f"{where} holds no picture.")
