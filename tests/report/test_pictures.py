from __future__ import annotations

import dataclasses
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from limbeck.errors import BadInput
from limbeck.privacy.schema import Schema
from limbeck.report.pictures import PAPER, image_grid, png_bytes, release_grid, save_png, table_grid


def images(shape: tuple[int, ...], classes: int, each: int = 3) -> tuple[np.ndarray, np.ndarray, Schema]:
    schema = Schema(
        name="s", shape=shape, classes=tuple(f"class {i}" for i in range(classes)), records=10_000, low=0, high=255
    )
    x = np.random.default_rng(0).normal(0, 2, (classes * each, *shape)).astype(np.float32)
    return x, np.repeat(np.arange(classes), each), schema


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 20), (4, 16, 16), (2, 8, 8), (3, 256, 256)])
@pytest.mark.parametrize("classes", [2, 100])
def test_every_kind_of_image_has_a_grid_with_clean_margins(shape: tuple[int, ...], classes: int) -> None:
    x, y, schema = images(shape, classes, each=1 if shape[1] == 256 else 3)
    pixels = np.asarray(image_grid(x, y, schema))
    assert pixels.shape[0] > 10 * classes and pixels.shape[2] == 3
    for edge in (pixels[:8], pixels[-8:], pixels[:, :8], pixels[:, -8:]):
        assert (edge == PAPER).all()


def test_a_record_is_shown_pixel_by_pixel_and_clamped(gray: Schema) -> None:
    x = np.full((1, 1, 8, 8), np.nan)
    x[0, 0, :, 4:] = 7.0
    pixels = np.asarray(image_grid(x, np.array([1]), gray, scale=3))
    tile = pixels[-16 - 24 : -16, -16 - 24 : -16]
    assert (tile[:, :12] == 0).all() and (tile[:, 12:] == 255).all()


def test_colour_keeps_its_channels(gray: Schema) -> None:
    schema = dataclasses.replace(gray, shape=(3, 8, 8))
    x = np.stack([np.full((8, 8), value) for value in (1.0, -1.0, 0.0)])[None]
    pixels = np.asarray(image_grid(x, np.array([1]), schema))
    assert pixels[-20, -20].tolist() == [255, 0, 128]


def test_fewer_records_than_columns_and_a_class_without_any(gray: Schema) -> None:
    x = np.zeros((3, 1, 8, 8))
    one = image_grid(x[:1], np.array([1]), gray)
    three = image_grid(x, np.array([1, 1, 1]), gray)
    assert one.width < three.width < image_grid(np.zeros((30, 1, 8, 8)), np.ones(30, int), gray).width
    assert image_grid(x[:0], np.array([], int), gray).size == one.size


def test_long_and_odd_class_names_do_not_break_the_grid(gray: Schema) -> None:
    schema = dataclasses.replace(gray, classes=("a\nb\x00c", "w" * 500))
    assert image_grid(np.zeros((2, 1, 8, 8)), np.array([0, 1]), schema).width < 400


def test_table_grids(people: Schema) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (40, 6))
    assert table_grid(x, np.repeat([0, 1], 20), people).mode == "RGB"
    assert table_grid(x[:3], np.array([1, 1, 1]), people).height > 100
    many = dataclasses.replace(
        people, classes=tuple(f"$c_{i}" for i in range(100)), columns=(), shape=(200,), label="label"
    )
    assert table_grid(np.zeros((100, 200)), np.arange(100), many).height > 1000


def test_the_same_set_gives_the_same_bytes(people: Schema, gray: Schema, tmp_path: Path) -> None:
    for schema in (people, gray):
        x = np.random.default_rng(1).uniform(-1, 1, (4, *schema.shape))
        y = np.array([0, 1, 0, 1])
        first = png_bytes(release_grid(x, y, schema))
        with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
            assert png_bytes(release_grid(x, y, schema)) == first
        save_png(release_grid(x, y, schema), tmp_path / "grid.png")
        assert (tmp_path / "grid.png").read_bytes() == first
        with Image.open(tmp_path / "grid.png") as picture:
            assert picture.format == "PNG" and not picture.info


def test_what_does_not_fit_is_refused(gray: Schema, people: Schema) -> None:
    with pytest.raises(BadInput, match="do not fit"):
        image_grid(np.zeros((2, 1, 9, 9)), np.zeros(2, int), gray)
    with pytest.raises(BadInput, match="do not fit"):
        image_grid(np.zeros((2, 1, 8, 8)), np.zeros(3, int), gray)
    with pytest.raises(BadInput, match="columns >= 1"):
        image_grid(np.zeros((2, 1, 8, 8)), np.zeros(2, int), gray, columns=0)
    with pytest.raises(BadInput, match="not a table"):
        table_grid(np.zeros((2, 1, 8, 8)), np.zeros(2, int), gray)
    with pytest.raises(BadInput, match="needs images"):
        image_grid(np.zeros((2, 6)), np.zeros(2, int), people)
