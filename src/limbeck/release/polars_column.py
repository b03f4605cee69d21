"""One column of a synthetic table as a series of polars."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from limbeck.privacy.schema import Column
from limbeck.privacy.words import truth_words, word_of
from limbeck.release.casting import cast


def polars_column(
    polars: ModuleType, name: str, array: Any, column: Column | None, words: Sequence[str], dtype: Any
) -> Any:
    """dtype: of the frame that went in; None for what the schema says: words are an Enum of all declared ones."""
    if dtype is None:
        dtype = polars.Enum(list(words)) if words else None
    if dtype is None:
        return polars.Series(name, array)
    if dtype == polars.Enum and words:
        # The Enum of a frame may list what only its records say, so it comes back only if it is what the schema declares.
        own = dict.fromkeys(dtype.categories)
        found = {word_of(category, words, truth_words(words)) for category in own}
        return polars.Series(
            name, array.to_pylist(), dtype=dtype if found == set(words) == set(own) else polars.Enum(words)
        )
    if dtype in (polars.Categorical, polars.Enum):
        series = polars.Series(name, array)
        return series.cast(polars.Categorical) if words else series
    target = polars.Series(name, [], dtype=dtype).to_arrow().type
    found_array = cast(array, target, column, words)
    series = polars.Series(name, found_array)
    return series.cast(dtype) if found_array.type == target else series
