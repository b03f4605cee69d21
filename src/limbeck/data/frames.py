"""Frames in memory as private records: pandas, polars and Arrow tables, encoded by the schema's columns like a file.

Every column comes through Arrow. What is checked is the form of a frame (names, types, lengths), never a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from limbeck.data import table
from limbeck.data.limits import require_few_columns
from limbeck.data.parquet import cells
from limbeck.data.records import Records, require_ids, require_pairs
from limbeck.data.source import DataSource
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema

PANDAS, POLARS, ARROW = "pandas", "polars", "arrow"
# What is no frame but comes back as it went in, too: see `limbeck.data.torch_dataset` and `limbeck.data.hf_dataset`.
TORCH, HUGGING_FACE = "torch", "hugging face"
KINDS = {("pandas", "DataFrame"): PANDAS, ("polars", "DataFrame"): POLARS, ("pyarrow", "Table"): ARROW}
# Types without one value that could be a number, a date or a word of a list.
ODD = ("is_nested", "is_binary", "is_large_binary", "is_fixed_size_binary", "is_duration", "is_time", "is_interval")


@dataclass(frozen=True, eq=False)
class Form:
    """What a frame looks like: its kind, the names of its columns in order, and the type of each in the frame's own terms.

    words: of the columns that held numbers of words (the ClassLabel of Hugging Face), those words in order.

    It stays in the process that was given the frame and is no part of a release: pandas turns whole numbers into floats when a
    record lacks one, so a type may tell something about a record.
    """

    kind: str
    types: dict[str, Any]
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def frame_kind(value: object) -> str | None:
    """Which kind of frame it is, without importing a library; None if it is none."""
    names = [(kind.__module__.split(".")[0], kind.__name__) for kind in type(value).__mro__]
    if ("polars", "LazyFrame") in names:
        raise BadInput("This is a LazyFrame of polars, which holds no rows yet; give frame.collect().")
    return next((KINDS[name] for name in names if name in KINDS), None)


def form_of(frame: Any) -> Form:
    """Guarantee: looks at names and types only."""
    kind = frame_kind(frame)
    if kind == PANDAS:
        if frame.columns.nlevels > 1:
            raise BadInput(
                f"The pandas frame names its columns on {frame.columns.nlevels} levels (a MultiIndex); a schema has one name for "
                'each. Join them first: frame.columns = ["_".join(map(str, name)) for name in frame.columns].'
            )
        names, types = list(frame.columns), list(frame.dtypes)
    elif kind == POLARS:
        names, types = list(frame.columns), list(frame.dtypes)
    elif kind == ARROW:
        names, types = list(frame.schema.names), list(frame.schema.types)
    else:
        raise BadInput(f"Expected a frame of pandas, polars or Arrow, got {type(frame).__name__}.")
    require_few_columns(len(names), f"The {kind} frame")
    if not all(isinstance(name, str) for name in names):
        raise BadInput(
            f"The {kind} frame has columns whose names are no texts; name them first: frame.columns = frame.columns.astype(str)."
        )
    if len(set(names)) != len(names):
        raise BadInput(f"The {kind} frame has two columns of the same name; a schema can only mean one of them.")
    return Form(str(kind), dict(zip(names, types, strict=True)))


def form_with(form: Form, name: str, values: Any) -> Form:
    """The form with a column that was given beside the frame, last, if its type is one of the frame's library."""
    own = {PANDAS: ("pandas", "numpy"), POLARS: ("polars",), ARROW: ("pyarrow",)}.get(form.kind, ())
    if name in form.types or type(values).__module__.split(".")[0] not in own:
        return form
    dtype = values.type if form.kind == ARROW else values.dtype
    is_plain = not isinstance(dtype, np.dtype) or dtype.kind not in "US"  # pandas has no texts of fixed length
    return Form(form.kind, form.types | {name: dtype}) if is_plain else form


def frame_source(frame: Any, schema: Schema, y: Any = None, units: Any = None) -> DataSource:
    """The rows of a frame as private records. y, units: labels and persons, where the frame has no column for them.

    Guarantee: names, types and lengths are checked here, before anything is booked; no value is looked at before `load`.
    """
    form, given = form_of(frame), {}
    where = f"The {form.kind} frame"
    if not schema.columns:
        raise BadInput(f"The schema of '{schema.name}' lists no columns, so {where.lower()} cannot be encoded.")
    if y is not None and not schema.has_label:
        raise BadInput(f"y was given, but the schema of '{schema.name}' says that there is no label.")
    if y is not None:
        given[schema.label] = listed(y, "y")
        require_pairs(len(frame), len(given[schema.label]), where)
    if units is not None:
        given[schema.unit] = listed(units, "units")
        require_ids(len(frame), len(given[schema.unit]), where)
    wanted = table.wanted_columns(schema)
    missing = [name for name in wanted if name not in form.types and name not in given]
    if missing:
        shown = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        hint = " Or give the labels as y, one for each row." if schema.label in missing else ""
        raise BadInput(
            f"{where} has no column {shown}, which the schema of '{schema.name}' lists; it has {len(form.types)} columns.{hint}"
        )
    if not len(frame):
        raise BadInput(f"{where} holds no record.")
    columns = {name: given.get(name) if name in given else arrow_column(frame, name, form) for name in wanted}
    _require_types(columns, schema, form)

    def read(schema: Schema) -> Records:
        return table.as_table(_pieces(columns, len(frame), schema), schema, where)

    return DataSource(schema, f"a frame of {form.kind}", read)


def listed(values: Any, what: str) -> list[Any]:
    """One value for each row, of a list, an array or a column of a frame."""
    if getattr(values, "ndim", 1) != 1 or frame_kind(values) is not None or isinstance(values, str | bytes):
        raise BadInput(f"{what} must hold one value for each row: a list, an array or a single column.")
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, way):
            return list(getattr(values, way)())
    return list(values)


def arrow_column(frame: Any, name: str, form: Form) -> Any:
    """A column in Arrow's form; as a list of Python values where Arrow has none for what is in it."""
    if form.kind == ARROW:
        return frame.column(name)
    if form.kind == POLARS:
        column = frame.get_column(name)
        return column.to_list() if str(column.dtype) == "Object" else column.to_arrow()
    column = frame[name]
    # Columns of objects may hold anything. Neither they nor texts that are no Unicode may raise: that is content of records.
    if column.dtype == object:
        return column.tolist()
    try:
        return pa.array(column, from_pandas=True)
    except MemoryError:
        raise
    except Exception:
        if isinstance(column.dtype, np.dtype) and column.dtype.kind not in "OUST":
            raise _wrong_type(name, form, "it has no form in Arrow") from None
        return column.tolist()


def _pieces(columns: dict[str, Any], rows: int, schema: Schema) -> Iterator[dict[str, list[Any]]]:
    size = table.rows_at_once(schema)
    for start in range(0, rows, size):
        piece = {name: cells_of(column, start, min(size, rows - start)) for name, column in columns.items()}
        if schema.has_label:
            piece[schema.label] = table.class_words(piece[schema.label], schema)
        yield piece


def cells_of(column: Any, start: int = 0, count: int | None = None) -> list[Any]:
    """Python values of a column that `arrow_column` gave, or of some rows of it."""
    if isinstance(column, list):
        return column[start : None if count is None else start + count]
    part = column.slice(start, count)
    chunks = part.chunks if isinstance(part, pa.ChunkedArray) else [part]
    return [cell for chunk in chunks for cell in cells(chunk)]


def is_odd(column: Any) -> bool:
    """Whether its type has no value that could be a number, a date or a word."""
    kind = _value_type(column)
    return kind is not None and (
        isinstance(kind, pa.BaseExtensionType) or any(getattr(pa.types, odd)(kind) for odd in ODD)
    )


def is_gap(cell: Any) -> bool:
    """Whether a cell of a frame has no value. pandas writes that in several ways, none of which may be a word."""
    return cell is None or (not isinstance(cell, str) and str(cell) in ("nan", "<NA>", "NaT"))


def _require_types(columns: dict[str, Any], schema: Schema, form: Form) -> None:
    """Refuse a column that could only be read as gaps: its type is no record's."""
    for column in schema.columns:
        if is_odd(columns[column.name]):
            raise _wrong_type(column.name, form, "a cell must be a text, a number, a date or a truth value")
        kind = _value_type(columns[column.name])
        if kind is not None and (why := _unfit(column, kind)):
            raise _wrong_type(column.name, form, why)
    for name in table.wanted_columns(schema)[len(schema.columns) :]:
        if is_odd(columns[name]):
            raise _wrong_type(name, form, "a cell must be a text or a number")


def _value_type(column: Any) -> Any:
    """The Arrow type of what a column holds; None if that cannot be known without a look at its values."""
    if isinstance(column, list):
        return None
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return None if pa.types.is_null(kind) else kind


def _unfit(column: Column, kind: Any) -> str | None:
    """Why a column of this type cannot be what the schema says; None if it can."""
    is_moment = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    numbers = ("is_integer", "is_floating", "is_decimal", "is_boolean")
    is_number = any(getattr(pa.types, each)(kind) for each in numbers)
    if column.kind and is_number:
        return f'the schema says kind = "{column.kind}", so it must hold dates, time stamps or ISO texts'
    if column.numeric and not column.kind and is_moment:
        return 'the schema says that it holds numbers; for dates and time stamps it has kind = "date" or "time"'
    return None


def _wrong_type(name: str, form: Form, why: str) -> BadInput:
    # Without what stands in brackets: an Enum of polars lists its categories there.
    shown = str(form.types[name]).split("(")[0] if name in form.types else "unknown"
    return BadInput(
        f"Column '{name}' of the {form.kind} frame is of type {shown}: {why}. Convert it, or change the schema."
    )
