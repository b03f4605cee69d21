"""A synthetic table as a frame: of pandas, polars or Arrow. Either as the schema says, or in the form of a frame that went in.

The form of a frame is kept by the process that was given it, and is no part of a release: see `limbeck.data.frames.Form`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from limbeck.data.frames import ARROW, HUGGING_FACE, PANDAS, POLARS, TORCH, Form
from limbeck.data.records import Array
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema
from limbeck.release.casting import cast, words_of
from limbeck.release.formats import arrow_columns, image_table, with_features


def to_arrow(x: Array, y: Array, schema: Schema, form: Form | None = None) -> Any:
    """An Arrow table, as the release's Parquet file has it."""
    return _framed(x, y, schema, ARROW, form)


def to_pandas(x: Array, y: Array, schema: Schema, form: Form | None = None) -> Any:
    """A pandas frame. Unless a form says otherwise, words are categoricals of all declared ones."""
    return _framed(x, y, schema, PANDAS, form)


def to_polars(x: Array, y: Array, schema: Schema, form: Form | None = None) -> Any:
    """A polars frame. Unless a form says otherwise, words are an Enum of all declared ones."""
    return _framed(x, y, schema, POLARS, form)


def to_torch(x: Array, y: Array) -> Any:
    """The exact numbers of the set and the class indices, as a `TensorDataset`."""
    import torch
    from torch.utils.data import TensorDataset

    return TensorDataset(torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(np.ascontiguousarray(y)))


def to_hf(x: Array, y: Array, schema: Schema, form: Form | None = None) -> Any:
    """A `Dataset` of Hugging Face: pictures with a ClassLabel, or the decoded columns of a table."""
    datasets = library(HUGGING_FACE)
    if schema.is_image:
        return datasets.Dataset(image_table(x, y, schema))
    known = form if form is not None and form.kind == HUGGING_FACE else None
    found = datasets.Dataset(with_features(_framed(x, y, schema, ARROW, known and Form(ARROW, known.types))))
    categories = {column.name: column.categories for column in schema.columns} | {schema.label: schema.classes}
    for name in known.words if known else ():
        # Numbers of words again. The words are the declared ones: those that went in may list what a single record says.
        if name in found.column_names and categories.get(name):
            found = found.cast_column(name, datasets.ClassLabel(names=list(categories[name])))
    return found


def framed(x: Array, y: Array, schema: Schema, form: Form) -> Any:
    """The same kind of frame, or data set, as went in, with its types and its order. Columns that the schema does not list were
    never read and are not there; a label that came by itself stands last."""
    if form.kind == TORCH:
        return to_torch(x, y)
    return to_hf(x, y, schema, form) if form.kind == HUGGING_FACE else _framed(x, y, schema, form.kind, form)


def _framed(x: Array, y: Array, schema: Schema, kind: str, form: Form | None) -> Any:
    if schema.is_image:
        raise BadInput(f"The set of '{schema.name}' holds pictures, which no frame has columns for; take its x and y.")
    found = arrow_columns(x, y, schema)
    types: Mapping[str, Any] = {} if form is None or form.kind != kind else form.types
    order = [name for name in (form.types if form is not None else found) if name in found]
    order += [name for name in found if name not in order]
    columns = {column.name: column for column in schema.columns}
    kept = {name: (found[name], columns.get(name), _words(name, columns, schema)) for name in order}
    if kind == ARROW:
        return pa.table({name: cast(a, types.get(name, a.type), c, words) for name, (a, c, words) in kept.items()})
    if kind == POLARS:
        from limbeck.release.polars_column import polars_column

        polars = library(POLARS)
        return polars.DataFrame([polars_column(polars, name, *each, types.get(name)) for name, each in kept.items()])
    from limbeck.release.pandas_column import pandas_column

    pandas = library(PANDAS)
    return pandas.DataFrame({name: pandas_column(pandas, *each, types.get(name)) for name, each in kept.items()})


def _words(name: str, columns: Mapping[str, Column], schema: Schema) -> tuple[str, ...]:
    if name not in columns and not (
        schema.has_label and name == schema.label
    ):  # of a table whose columns have no names
        return ()
    return words_of(columns.get(name), schema.classes)


def library(name: str) -> ModuleType:
    """pandas, polars or datasets, which are nobody's duty to have."""
    try:
        return importlib.import_module("datasets" if name == HUGGING_FACE else name)
    except ImportError:
        if name == HUGGING_FACE:
            raise BadInput(
                "datasets is not installed. Install it with: pip install 'limbeck[huggingface]'. Without it, the release's "
                "data/train.parquet holds the same."
            ) from None
        raise BadInput(
            f"{name} is not installed. Install it with: pip install 'limbeck[frames]'. Without it, to_arrow() gives "
            "the same table."
        ) from None
