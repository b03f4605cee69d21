"""Pictures of any size and mode: brought to the schema's shape by public rules, the same in memory and in pieces."""

from __future__ import annotations

import dataclasses
import io
import random
from pathlib import Path
from typing import Any

import fuzz_files
import numpy as np
import pytest
from PIL import Image

from limbeck.data import images, open_source
from limbeck.data.draft import draft_of
from limbeck.data.parts import _reading
from limbeck.data.streams.streamed import first_pass
from limbeck.data.surveyed import Wanted
from limbeck.errors import BadInput, DataUnreadable, TooLarge
from limbeck.privacy.schema import Schema

GREY = Schema(name="own", shape=(1, 8, 8), classes=("cat", "dog"), records=6, low=0, high=255, resize="fit")
COLOUR = dataclasses.replace(GREY, shape=(3, 8, 8))


def saved(picture: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format=form, **options)
    return buffer.getvalue()


def decoded(picture: Image.Image, schema: Schema, form: str = "PNG", **options: Any) -> np.ndarray[Any, Any]:
    return images.decode(saved(picture, form, **options), schema, "it")


def halves(wide: int, high: int) -> Image.Image:
    """Black above, white below."""
    values = np.zeros((high, wide), np.uint8)
    values[high // 2 :] = 255
    return Image.fromarray(values)


def test_fit_keeps_all_of_it_with_borders_of_the_low_end() -> None:
    found = decoded(Image.new("L", (16, 8), 200), GREY)
    assert (found[0, 2:6] == 200).all() and (found[0, :2] == 0).all() and (found[0, 6:] == 0).all()
    bright = decoded(Image.new("L", (16, 8), 200), dataclasses.replace(GREY, low=40, high=255))
    assert (bright[0, :2] == 40).all()


def test_crop_keeps_the_middle() -> None:
    wide = Image.new("L", (24, 8), 0)
    wide.paste(255, (8, 0, 16, 8))
    assert (decoded(wide, dataclasses.replace(GREY, resize="crop")) == 255).all()


def test_fill_stretches() -> None:
    found = decoded(halves(40, 16), dataclasses.replace(GREY, resize="fill"))
    assert (found[0, :3] == 0).all() and (found[0, 5:] == 255).all()


@pytest.mark.parametrize("resize", ["fit", "fill", "crop"])
@pytest.mark.parametrize("size", [(1, 1), (1, 10_000), (10_000, 1), (7, 9), (8, 8)])
def test_every_size(resize: str, size: tuple[int, int]) -> None:
    found = decoded(Image.new("L", size, 77), dataclasses.replace(GREY, resize=resize))
    assert found.shape == (1, 8, 8) and found.dtype == np.uint8 and found.max() == 77


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
@pytest.mark.parametrize("schema", [GREY, COLOUR], ids=["grey", "colour"])
def test_every_mode(mode: str, schema: Schema) -> None:
    value = 0 if mode == "1" else 100
    source = Image.new("L", (12, 20), value)
    picture = Image.fromarray(np.full((20, 12), value * 257, np.uint16)) if mode == "I;16" else source.convert(mode)
    found = decoded(picture, dataclasses.replace(schema, resize="fill"), "TIFF")
    assert found.shape == schema.shape and abs(int(found.min()) - value) <= 1 and abs(int(found.max()) - value) <= 1


def test_what_is_seen_through_is_laid_on_the_low_end() -> None:
    clear = Image.new("RGBA", (8, 8), (255, 255, 255, 0))
    assert (decoded(clear, COLOUR) == 0).all()
    palette = Image.new("P", (8, 8), 0)
    palette.putpalette([255, 255, 255])
    assert (decoded(palette, COLOUR, transparency=0) == 0).all()


def test_without_the_entry_an_image_means_what_it_meant() -> None:
    plain = dataclasses.replace(COLOUR, resize=None)
    clear = Image.new("RGBA", (8, 8), (255, 255, 255, 0))
    assert (decoded(clear, plain) == 255).all()
    with pytest.raises(DataUnreadable, match='resize = "crop"'):
        decoded(Image.new("RGB", (9, 8)), plain)
    assert "resize" not in plain.to_dict() and COLOUR.to_dict()["resize"] == "fit"
    assert Schema.from_dict(COLOUR.to_dict()) == COLOUR


def test_orientation_is_turned_before_it_is_resized_and_nonsense_is_not_a_fault() -> None:
    exif = Image.Exif()
    for turn, top in ((6, False), (8, False), (3, True), (1, False), (99, False), (0, False)):
        exif[0x0112] = turn
        found = decoded(halves(20, 20), GREY, "JPEG", exif=exif, quality=95)
        across = turn in (6, 8)
        assert (found[0, :2].mean() > 200) == top
        assert across == (abs(float(found[0, :2].mean()) - 127) < 40)


def test_the_first_page_and_the_first_frame_are_read() -> None:
    pages = [Image.new("L", (9, 9), value) for value in (10, 200)]
    for form in ("TIFF", "GIF", "WEBP"):
        found = decoded(
            pages[0],
            GREY,
            form,
            save_all=True,
            append_images=pages[1:],
            **({"lossless": True} if form == "WEBP" else {}),
        )
        assert abs(int(found.max()) - 10) <= 2


def test_deep_pictures_keep_their_depth_where_the_range_has_it() -> None:
    deep = dataclasses.replace(GREY, high=65535)
    found = decoded(Image.fromarray(np.full((30, 30), 40_000, np.uint16)), deep)
    assert found.dtype == np.float32 and (found == 40_000).all()


def folder_of(tmp_path: Path, count: int = 12) -> Path:
    rng = random.Random(3)
    for place in range(count):
        folder = tmp_path / "pets" / ("cat", "dog")[place % 2]
        folder.mkdir(parents=True, exist_ok=True)
        mode = ("L", "RGB", "RGBA", "P", "CMYK")[place % 5]
        picture = Image.new("L", (rng.randrange(33, 70), rng.randrange(33, 70)), rng.randrange(255)).convert(mode)
        (folder / f"{place}.tif").write_bytes(saved(picture, "TIFF"))
    return tmp_path / "pets"


@pytest.mark.parametrize("resize", ["fit", "fill", "crop"])
def test_the_same_bits_in_memory_and_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resize: str) -> None:
    source = open_source(str(folder_of(tmp_path)), default=dataclasses.replace(COLOUR, resize=resize))
    held = source.load()
    monkeypatch.setenv("LIMBECK_MEMORY", "1")
    stream = source.stream()
    assert stream is not None
    with first_pass(stream, source.schema, lambda records: None).reading() as reading:
        found = reading.take(len(held), np.array([1, 4, 9]))
    assert (found.x == held.x[[1, 4, 9]]).all()


def test_a_draft_proposes_a_shape_and_how(tmp_path: Path) -> None:
    made = draft_of(folder_of(tmp_path), Wanted())
    schema = made.schema
    assert schema.shape == (3, 32, 32) and schema.resize in ("fit", "crop")
    assert {"shape", "resize"} <= set(schema.unconfirmed) and "augmentation" not in schema.unconfirmed
    assert any("pixels wide" in said for said in made.aloud)
    assert open_source(str(tmp_path / "pets"), default=schema).load().x.shape == (12, 3, 32, 32)


def test_a_draft_of_what_may_be_medical_asks_before_it_mirrors(tmp_path: Path) -> None:
    for name in ("benign", "malignant"):
        (tmp_path / "own" / name).mkdir(parents=True)
        Image.new("RGB", (40, 40)).save(tmp_path / "own" / name / "1.png")
    schema = draft_of(tmp_path / "own", Wanted()).schema
    assert not {"flip", "color"} & set(schema.augmentation) and "augmentation" in schema.unconfirmed
    assert "augmentation: crop" in schema.to_confirm


def test_a_folder_without_pictures_says_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "own" / "cat").mkdir(parents=True)
    with pytest.raises(DataUnreadable, match=r"Read are PNG, JPEG.*DICOM"):
        draft_of(tmp_path / "own", Wanted())


def test_large_pictures_of_one_size_are_made_smaller_in_proportion(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "own" / name).mkdir(parents=True)
        Image.new("RGB", (640, 480)).save(tmp_path / "own" / name / "1.png")
    schema = draft_of(tmp_path / "own", Wanted()).schema
    assert schema.shape == (3, 96, 128) and schema.resize == "fill"


def test_a_bomb_is_refused_by_its_header() -> None:
    for side in (12_000, 60_000):
        data = fuzz_files.resized_png(saved(Image.new("L", (8, 8))), side, side)
        with pytest.raises(TooLarge):
            images.decode(data, GREY, "it")
    with pytest.raises(DataUnreadable):
        images.decode(fuzz_files.resized_png(saved(Image.new("L", (8, 8))), 0, 8), GREY, "it")


def test_a_record_is_in_one_part_however_it_is_resized() -> None:
    """Readings that differ are told apart, so that no record is in two parts of one split by hash."""
    plain = dataclasses.replace(GREY, resize=None)
    others = [GREY, dataclasses.replace(GREY, resize="crop"), dataclasses.replace(GREY, high=65535)]
    assert len({_reading(schema, by_class=False) for schema in (plain, *others)}) == 4
    assert _reading(plain, by_class=True) == _reading(GREY, by_class=True)


def test_size_and_channels_mean_a_shape() -> None:
    values = {"name": "own", "classes": ["a", "b"], "records": 6, "resize": "crop"}
    assert Schema.from_dict({**values, "size": [8, 9], "channels": 3}).shape == (3, 8, 9)
    for wrong in ({"size": 8}, {"size": 8, "channels": 1, "shape": [1, 8, 8]}, {"size": "8", "channels": 1}):
        with pytest.raises(BadInput):
            Schema.from_dict({**values, **wrong})
    with pytest.raises(BadInput, match="resize must be one of"):
        dataclasses.replace(GREY, resize="zoom")
    with pytest.raises(BadInput, match="is for pictures"):
        dataclasses.replace(GREY, shape=(7,))
