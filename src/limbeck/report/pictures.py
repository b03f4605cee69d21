"""The picture of a synthetic set: a few records of every class. It shows synthetic records only, so it costs nothing.

The same set gives the same bytes: the font comes with matplotlib, the user's matplotlib settings are set aside, and the
PNG carries no date.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from limbeck.data.records import Array
from limbeck.errors import BadInput
from limbeck.files import write_atomic
from limbeck.privacy.schema import Schema

PAPER, INK = (255, 255, 255), (52, 58, 68)
MARGIN, GAP, WIDEST_NAME = 16, 4, 180
# (enlarge small images to about this, shrink large ones to at most this), in pixels. Many classes get smaller cells, or
# the picture would be too heavy for the report.
FEW_CLASSES, FEW_SIDES, MANY_SIDES = 20, (64, 128), (48, 64)


def release_grid(x: Array, y: Array, schema: Schema) -> Image.Image:
    """The picture that every release has, whatever its records are."""
    return image_grid(x, y, schema) if schema.is_image else table_grid(x, y, schema)


def image_grid(x: Array, y: Array, schema: Schema, columns: int = 10, scale: int | None = None) -> Image.Image:
    """One labelled row per class with its first `columns` records; `scale` overrides the whole enlargement factor."""
    x, y = _checked(x, y, schema)
    if not schema.is_image or columns < 1 or (scale is not None and scale < 1):
        raise BadInput(f"A grid needs images, columns >= 1 and scale >= 1, got {schema.shape}, {columns} and {scale}.")
    grow, shrink = (scale, 1) if scale is not None else _factors(schema)
    rows = [np.flatnonzero(y == index)[:columns] for index in range(len(schema.classes))]
    _, height, width = schema.shape
    cell_w, cell_h = -(-width // shrink) * grow, -(-height // shrink) * grow
    font = _font(max(10, min(16, cell_h - 2)))
    names = [_shortened(name, font) for name in schema.classes]
    left = MARGIN + max(round(font.getlength(name)) for name in names) + 12
    step_w, step_h = cell_w + GAP, max(cell_h, font.size + 2) + GAP
    across = max(1, max(len(row) for row in rows))
    size = (left + across * step_w - GAP + MARGIN, 2 * MARGIN + len(rows) * step_h - GAP)
    canvas = Image.new("RGB", (round(size[0]), round(size[1])), PAPER)
    draw = ImageDraw.Draw(canvas)
    for index, (name, row) in enumerate(zip(names, rows, strict=True)):
        top = round(MARGIN + index * step_h)
        draw.text((left - 12, top + (step_h - GAP) / 2), name, fill=INK, font=font, anchor="rm")
        for column, record in enumerate(row):
            canvas.paste(tile(x[record], grow, shrink), (round(left + column * step_w), top))
    return canvas


def _checked(x: Array, y: Array, schema: Schema) -> tuple[Array, Array]:
    x, y = np.asarray(x), np.asarray(y)
    if x.shape[1:] != schema.shape or y.shape != x.shape[:1]:
        raise BadInput(
            f"Records {x.shape} with labels {y.shape} do not fit the schema of '{schema.name}', "
            f"which says {schema.shape}."
        )
    return x, y


def _factors(schema: Schema) -> tuple[int, int]:
    """Whole factors (enlarge by, shrink by), of which one is 1, so that pixels stay sharp."""
    side = max(schema.shape[1:])
    small, large = FEW_SIDES if len(schema.classes) <= FEW_CLASSES else MANY_SIDES
    return max(1, small // side), max(1, -(-side // large))


def tile(values: Array, grow: int, shrink: int) -> Image.Image:
    # Beyond three channels (alpha, infrared) there is no colour to show; with two, the first is the picture.
    shown = values[:3] if len(values) >= 3 else values[:1]
    finite = np.clip(np.nan_to_num(np.asarray(shown, dtype=np.float64), nan=-1.0), -1, 1)
    pixels = np.rint((finite + 1) * 127.5).astype(np.uint8)
    picture = Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(np.moveaxis(pixels, 0, -1)))
    if shrink > 1:
        picture = picture.reduce(shrink)
    return picture.resize((picture.width * grow, picture.height * grow), Image.Resampling.NEAREST)


def _font(size: int) -> ImageFont.FreeTypeFont:
    path = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


def one_line(name: str) -> str:
    """A class name that cannot break a line: Pillow refuses to measure text with line ends."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())


def _shortened(name: str, font: ImageFont.FreeTypeFont) -> str:
    name = one_line(name)
    if font.getlength(name) <= WIDEST_NAME:
        return name
    while name and font.getlength(name + "…") > WIDEST_NAME:
        name = name[:-1]
    return name.rstrip() + "…"


def table_grid(x: Array, y: Array, schema: Schema) -> Image.Image:
    """A heat map of encoded rows, class by class, with the columns of the table along the bottom."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    x, y = _checked(x, y, schema)
    if schema.is_image:
        raise BadInput(f"'{schema.name}' holds images, not a table.")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the reader's own style must not change a release's bytes
        canvas: Any = FigureCanvasAgg(_table_figure(x, y, schema))  # its methods carry no types
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba()).copy()).convert("RGB")


def _table_figure(x: Array, y: Array, schema: Schema) -> Any:
    from matplotlib.figure import Figure

    per_class = int(np.clip(240 // len(schema.classes), 2, 20))
    rows = [np.flatnonzero(y == index)[:per_class] for index in range(len(schema.classes))]
    # A class without records keeps one empty row, so that it is seen to be missing.
    blank = np.full((1, schema.numbers), np.nan)
    bands = [x[row] if len(row) else blank for row in rows]
    heights = [len(band) for band in bands]
    names, widths = _column_names(schema)
    # Beside broad categorical columns a numeric one is drawn twice as wide, or its name would not fit under it.
    repeats = np.repeat([2 if width == 1 and max(widths) > 8 else 1 for width in widths], widths)
    widths = [2 if width == 1 and max(widths) > 8 else width for width in widths]
    size = (max(6.0, min(10.0, 2.6 + 0.22 * max(len(names), schema.numbers / 2))), 1.9 + 0.1 * max(sum(heights), 16))
    figure = Figure(figsize=size, dpi=100, facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    values = np.repeat(np.clip(np.concatenate(bands).astype(np.float64), -1, 1), repeats, axis=1)
    heat = axes.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    classes = [one_line(name) for name in schema.classes] if schema.has_label else [""]
    _label(axes.yaxis, classes, heights, room=size[1] * 8)
    _label(axes.xaxis, names, widths, room=size[0] * 8)
    axes.tick_params(axis="x", labelrotation=90)
    for edge in np.cumsum(heights)[:-1]:
        axes.axhline(edge - 0.5, color="white", linewidth=2.5)
    for edge in np.cumsum(widths)[:-1] if max(widths) > 1 else ():
        axes.axvline(edge - 0.5, color="white", linewidth=1.0)
    axes.spines[:].set_visible(False)
    short = min(0.8, 4 / size[1])
    bar = figure.colorbar(heat, ax=axes, shrink=short, aspect=30, anchor=(0.0, 1.0), ticks=[-1, 0, 1], pad=0.02)
    bar.set_label("encoded value", color="#343a44", fontsize=8)
    bar.ax.tick_params(labelsize=8, color="#343a44", labelcolor="#343a44")
    bar.outline.set_visible(False)
    return figure


def _column_names(schema: Schema) -> tuple[list[str], list[int]]:
    if not schema.columns:
        return [f"x{index}" for index in range(schema.numbers)], [1] * schema.numbers
    return [one_line(column.name) for column in schema.columns], [column.width for column in schema.columns]


def _label(axis: Any, names: list[str], widths: list[int], room: float) -> None:
    """Names in the middle of their bands; where they would overlap, every second, third, ... one."""
    ends = np.cumsum(widths)
    middles = ends - np.asarray(widths) / 2 - 0.5
    # `room` is how many names fit; narrow bands beside each other need more of it than wide ones.
    closest = ends[-1] / room
    chosen: list[int] = []
    for index, middle in enumerate(middles):
        if not chosen or middle - middles[chosen[-1]] >= closest:
            chosen.append(index)
    short = [names[index] if len(names[index]) <= 24 else names[index][:23] + "…" for index in chosen]
    axis.set_ticks(middles[chosen], short, fontsize=8, color="#343a44", parse_math=False)
    axis.set_tick_params(length=0)


def png_bytes(image: Image.Image) -> bytes:
    """The same picture is always the same bytes."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=False, compress_level=9)
    return buffer.getvalue()


def save_png(image: Image.Image, path: Path) -> None:
    write_atomic(path, png_bytes(image))
