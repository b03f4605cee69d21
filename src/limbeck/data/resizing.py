"""A decoded picture brought to what a schema declares: its channels and its size, by rules that are the same for all.

Guarantee: everything here is a fixed function of one picture and of public entries, so it cannot tell one record of another
(rule 6). Nothing is measured over several pictures.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from limbeck.errors import DataUnreadable
from limbeck.privacy.picture_entries import CROP, FIT

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
# Of Pillow's modes: more than 8 bits for each pixel, in whole numbers or in floats.
DEEP_MODES = ("I", "F")
SEE_THROUGH = ("RGBA", "RGBa", "LA", "La", "PA")
SIXTEEN_TO_EIGHT = 257.0  # 65535 is 255
SMOOTH = Image.Resampling.BILINEAR  # averages where it makes smaller


def is_deep(picture: Image.Image) -> bool:
    return picture.mode.startswith(DEEP_MODES)


def at_depth(picture: Image.Image, eight_bits: bool) -> Image.Image:
    """Grey of more than 8 bits as floats. Whole numbers of 16 bits stand for 0 to 255 where the declared range does."""
    values = np.asarray(picture, dtype=np.float32)
    scaled = eight_bits and picture.mode.startswith("I")
    return Image.fromarray(values / np.float32(SIXTEEN_TO_EIGHT) if scaled else values)


def in_mode(picture: Image.Image, channels: int, low: float) -> Image.Image:
    """Grey or colour, as the schema says. What is seen through is laid on the low end of the range."""
    mode = MODES[channels]
    if channels in (1, 3) and (picture.mode in SEE_THROUGH or "transparency" in picture.info):
        over = picture.convert("RGBA")
        end = round(min(max(low, 0), 255))
        picture = Image.alpha_composite(Image.new("RGBA", over.size, (end, end, end, 255)), over)
    return picture if picture.mode == mode else picture.convert(mode)


def at_size(picture: Image.Image, size: tuple[int, int], resize: str, low: float, where: str) -> Image.Image:
    """size: (width, height). fit: the whole picture, with borders of the low end. crop: the middle of it, without borders.
    fill: the whole picture, stretched."""
    if not picture.width or not picture.height:
        raise DataUnreadable(f"{where} is an image without pixels.")
    if picture.size == size:
        return picture
    if resize == FIT:
        return _with_borders(picture, size, low)
    return picture.resize(size, SMOOTH, box=_middle(picture.size, size) if resize == CROP else None)


def _middle(found: tuple[int, int], size: tuple[int, int]) -> tuple[float, float, float, float]:
    """The largest part of the picture, around its middle, that has the sides' proportion."""
    scale = min(found[0] / size[0], found[1] / size[1])
    wide, high = size[0] * scale, size[1] * scale
    left, top = max(0.0, (found[0] - wide) / 2), max(0.0, (found[1] - high) / 2)
    return left, top, min(left + wide, found[0]), min(top + high, found[1])


def _with_borders(picture: Image.Image, size: tuple[int, int], low: float) -> Image.Image:
    scale = min(size[0] / picture.width, size[1] / picture.height)
    sides = [max(1, min(most, round(side * scale))) for side, most in zip(picture.size, size, strict=True)]
    small = picture.resize((sides[0], sides[1]), SMOOTH)
    end = round(min(max(low, 0), 255))
    rims: dict[str, float | tuple[int, ...]] = {
        "L": end,
        "F": low,
        "LA": (end, 255),
        "RGB": (end, end, end),
        "RGBA": (end, end, end, 255),
    }
    whole = Image.new(small.mode, size, rims[small.mode])
    whole.paste(small, ((size[0] - small.width) // 2, (size[1] - small.height) // 2))
    return whole
