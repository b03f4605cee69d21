"""What a schema says about pictures of other sizes than its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limbeck.errors import BadInput
from limbeck.privacy.entries import is_whole, shown

FIT, FILL, CROP = "fit", "fill", "crop"
RESIZES = (FIT, FILL, CROP)


def require_resize(resize: object, is_image: bool) -> None:
    """Guarantee: a closed list. An entry that nobody knows would be a map that nobody wrote down."""
    if resize is None:
        return
    if resize not in RESIZES:
        raise BadInput(f"resize must be one of {', '.join(RESIZES)}, or left out, got {shown(resize)}.")
    if not is_image:
        raise BadInput(f"resize={shown(resize)} is for pictures, whose shape is (channels, height, width).")


def with_shape(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries `size` and `channels` as the `shape` that they mean; a schema states the shape alone.

    >>> with_shape({"name": "scans", "size": 64, "channels": 3}), with_shape({"size": [48, 64], "channels": 1})
    ({'name': 'scans', 'shape': [3, 64, 64]}, {'shape': [1, 48, 64]})
    """
    given = {"size", "channels"} & set(values)
    if not given:
        return dict(values)
    if "shape" in values or len(given) == 1:
        raise BadInput("Give shape = [channels, height, width], or both size and channels in its place.")
    size = values["size"]
    sides = [size, size] if is_whole(size) else size
    if not isinstance(sides, list | tuple) or len(sides) != 2:
        raise BadInput(f"size must be a side, or [height, width], got {shown(size)}.")
    others = {key: value for key, value in values.items() if key not in given}
    return {**others, "shape": [values["channels"], *sides]}
