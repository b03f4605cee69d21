"""A set in the terms of the records that it was made from: raw values, axes and columns as in X, labels as in y."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data.frames import ARROW, HUGGING_FACE, PANDAS, TORCH, Form
from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema
from limbeck.release import framed
from limbeck.release.reader import Release


def resampled(release: Release, form: Form | None, x: Any, y: Any) -> tuple[Any, Any]:
    """Records and labels, as a resampler of imbalanced-learn gives them back."""
    schema = release.schema
    if not schema.has_label:
        raise BadInput(f"fit_resample gives labels, and the schema of '{schema.name}' has none; use fit and set_.")
    if form is None:
        return _raw(release.x, schema, np.asarray(x)), _labels(release.y, schema, y)
    if form.kind in (TORCH, HUGGING_FACE):
        raise BadInput("fit_resample is for arrays and frames; use fit, and set_ for a Dataset of the same kind.")
    return _split(framed.framed(release.x, release.y, schema, form), schema.label, form.kind)


def _split(frame: Any, label: str, kind: str) -> tuple[Any, Any]:
    if kind == ARROW:
        return frame.drop_columns([label]), frame.column(label)
    if kind == PANDAS:
        return frame.drop(columns=[label]), frame[label]
    return frame.drop(label), frame.get_column(label)


def _raw(x: NDArray[np.float32], schema: Schema, like: NDArray[Any]) -> NDArray[Any]:
    """From [-1, 1] to the public range, with the axes of `like`; whole numbers where it has them."""
    raw = schema.low + (np.clip(np.nan_to_num(x, nan=-1.0), -1, 1) + 1) / 2 * (schema.high - schema.low)
    if schema.is_image and like.shape[1:] != schema.shape:
        raw = raw[:, 0] if like.ndim == 3 else np.moveaxis(raw, 1, -1)
    return np.rint(raw).astype(like.dtype) if like.dtype.kind in "iu" else raw.astype(np.float32)


def _labels(y: NDArray[np.int64], schema: Schema, like: Any) -> NDArray[Any]:
    given = np.asarray(like)
    return (
        y
        if given.dtype.kind in "iu"
        else np.array(schema.classes, dtype=given.dtype if given.dtype == object else None)[y]
    )
