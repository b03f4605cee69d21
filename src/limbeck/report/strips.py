"""The pictures of one class as one small PNG, so that a page can set the class's name beside it as text."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image

from limbeck.data.records import Array
from limbeck.privacy.schema import Schema
from limbeck.report.pictures import png_bytes, tile

COLUMNS, GAP = 10, 4
MOST_SNAPSHOTS = 8
# Small pictures are enlarged by a whole factor to about this many pixels, so that they stay sharp.
SIDE = 84
# Large ones are shrunk, the more so the more there are: all pictures of a page together have at most this many pixels.
MOST_PIXELS = 1_500_000
# With many classes a page shows fewer pictures of each, or it would be too heavy to open on a phone.
MANY_CLASSES, FEW_COLUMNS, MOST_CLASSES = 40, 5, 200


@dataclass(frozen=True, kw_only=True)
class Strip:
    """Up to ten pictures side by side."""

    png: bytes
    width: int
    height: int
    count: int

    @property
    def source(self) -> str:
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


def class_strips(x: Array, y: Array, schema: Schema) -> tuple[Strip | None, ...]:
    """One strip per class, in the order of the schema; None for a class without records."""
    chosen = [x[np.flatnonzero(y == index)[: columns(schema)]] for index in range(shown_classes(schema))]
    return tuple(strip(records, schema) if len(records) else None for records in chosen)


def snapshot_strips(sets: Array, after: Array, y: Array, schema: Schema) -> tuple[tuple[int, Strip], ...]:
    """The first picture of each class in some snapshots of the set, each with the answers that it had seen."""
    firsts = [found[0] for index in range(len(schema.classes)) if len(found := np.flatnonzero(y == index))][:COLUMNS]
    chosen = np.unique(np.linspace(0, len(sets) - 1, min(len(sets), MOST_SNAPSHOTS)).round().astype(int))
    return tuple((int(after[index]), strip(sets[index][firsts], schema)) for index in chosen) if firsts else ()


def columns(schema: Schema) -> int:
    return COLUMNS if len(schema.classes) <= MANY_CLASSES else FEW_COLUMNS


def shown_classes(schema: Schema) -> int:
    return min(len(schema.classes), MOST_CLASSES)


def strip(records: Array, schema: Schema) -> Strip:
    """All these encoded pictures in a row, on nothing, so that light and dark pages both fit."""
    side = max(schema.shape[1:])
    largest = max(1, int(math.sqrt(MOST_PIXELS / (shown_classes(schema) * columns(schema)))))
    grow, shrink = max(1, SIDE // side), max(1, -(-side // largest))
    tiles = [tile(record, grow, shrink) for record in records]
    width = sum(each.width for each in tiles) + GAP * (len(tiles) - 1)
    colour = tiles[0].mode == "RGB"
    canvas = Image.new("RGBA" if colour else "LA", (width, tiles[0].height), (0, 0, 0, 0) if colour else (0, 0))
    left = 0
    for each in tiles:
        canvas.paste(each.convert(canvas.mode), (left, 0))
        left += each.width + GAP
    return Strip(png=png_bytes(canvas), width=width, height=canvas.height, count=len(tiles))
