"""One column of a synthetic table as a series of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from limbeck.privacy.schema import Column
from limbeck.privacy.words import truth_words, word_of
from limbeck.release.casting import cast


def pandas_column(pandas: ModuleType, array: Any, column: Column | None, words: Sequence[str], dtype: Any) -> Any:
    """dtype: of the frame that went in; None for what the schema says: words are categoricals of all declared ones."""
    if dtype is None:
        dtype = _declared(pandas, array, column, words)
    if isinstance(dtype, pandas.CategoricalDtype):
        # Of numbers and dates the categories of a frame are what its records have: they come back plain.
        return (
            _categorical(pandas, array, words, dtype)
            if words
            else _plain(pandas, array, column, words, dtype.categories.dtype)
        )
    return _plain(pandas, array, column, words, dtype)


def _declared(pandas: ModuleType, array: Any, column: Column | None, words: Sequence[str]) -> Any:
    if words:
        return pandas.CategoricalDtype(list(words), ordered=column is not None and column.ordinal)
    if column is not None and column.kind:
        return np.dtype("datetime64[s]")
    if pa.types.is_integer(array.type) and column is not None and column.missing:
        return pandas.Int64Dtype()
    return array.type.to_pandas_dtype() if pa.types.is_floating(array.type) else np.dtype(np.int64)


def _categorical(pandas: ModuleType, array: Any, words: Sequence[str], dtype: Any) -> Any:
    """With the frame's own categories where these are the declared ones; else with those, for it may list what a record says."""
    truth = truth_words(words)
    own = [] if dtype.categories is None else [word_of(value, words, truth) for value in dtype.categories.tolist()]
    if sorted(own) != sorted(words):
        own, dtype = list(words), _with_words(pandas, words, dtype)
    place = {word: code for code, word in enumerate(own)}
    codes = [-1 if word is None else place[word] for word in array.to_pylist()]
    return pandas.Series(pandas.Categorical.from_codes(codes, dtype=dtype))


def _with_words(pandas: ModuleType, words: Sequence[str], dtype: Any) -> Any:
    """The same kind of categories, of the declared words."""
    listed = pa.array(words, type=pa.string())
    values = _plain(pandas, listed, None, words, object if dtype.categories is None else dtype.categories.dtype)
    return pandas.CategoricalDtype(values.tolist(), ordered=dtype.ordered)


def _plain(pandas: ModuleType, array: Any, column: Column | None, words: Sequence[str], dtype: Any) -> Any:
    if dtype == np.dtype(object):
        return pandas.Series(_objects(array, column, words), dtype=object)
    target = _arrow_type(pandas, dtype)
    found = cast(array, target, column, words)
    if found.type != target:
        return found.to_pandas()
    if hasattr(dtype, "__from_arrow__"):
        return pandas.Series(dtype.__from_arrow__(found))
    if found.null_count and dtype.kind in "biu":  # NumPy has no gaps among whole numbers
        wide = (
            pandas.BooleanDtype()
            if dtype.kind == "b"
            else pandas.api.types.pandas_dtype(f"{'U' if dtype.kind == 'u' else ''}Int{8 * dtype.itemsize}")
        )
        return pandas.Series(wide.__from_arrow__(found))
    return found.to_pandas().astype(dtype)


def _arrow_type(pandas: ModuleType, dtype: Any) -> Any:
    if isinstance(dtype, pandas.ArrowDtype):
        return dtype.pyarrow_dtype
    if isinstance(dtype, pandas.StringDtype):
        return pa.large_string()
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return pa.timestamp(dtype.unit, str(dtype.tz))
    return pa.from_numpy_dtype(getattr(dtype, "numpy_dtype", dtype))


def _objects(array: Any, column: Column | None, words: Sequence[str]) -> list[Any]:
    """A column of objects says nothing of its values, so the schema does: truth values, decimals of so many digits, dates."""
    cells: list[Any] = array.to_pylist()
    if sorted(words) == ["False", "True"]:
        return [None if cell is None else cell == "True" for cell in cells]
    if column is not None and column.digits is not None:
        step = Decimal(1).scaleb(-column.digits)
        return [None if cell is None else Decimal(cell).quantize(step) for cell in cells]
    return cells
