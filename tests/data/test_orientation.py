"""A picture is read as it is seen: turned as its EXIF note says, in drafts and by readers alike."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from limbeck.data import folder, open_source, parquet
from limbeck.data.draft import draft
from limbeck.data.records import Array
from limbeck.privacy.schema import Schema

UPRIGHT = (np.arange(20).reshape(4, 5) * 12).astype(np.uint8)
# How the camera stored it, by the value of the tag.
STORED = {
    1: UPRIGHT,
    2: np.fliplr(UPRIGHT),
    3: np.rot90(UPRIGHT, 2),
    4: np.flipud(UPRIGHT),
    5: UPRIGHT.T,
    6: np.rot90(UPRIGHT),
    7: np.rot90(UPRIGHT, 2).T,
    8: np.rot90(UPRIGHT, -1),
}


def picture(stored: Array, tag: int | None, form: str = "PNG") -> bytes:
    exif = Image.Exif()
    if tag is not None:
        exif[0x0112] = tag
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(stored)).save(buffer, format=form, exif=exif, lossless=True)
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("tag", STORED)
def test_every_orientation(tmp_path: Path, gray: Schema, tag: int, form: str) -> None:
    for name in gray.classes:
        (tmp_path / "pets" / name).mkdir(parents=True)
        (tmp_path / "pets" / name / f"1.{form.lower()}").write_bytes(picture(STORED[tag], tag, form))
    assert (folder.read(tmp_path / "pets", gray).x == UPRIGHT).all()
    assert f"shape = [{3 if form == 'WEBP' else 1}, 4, 5]" in draft(tmp_path / "pets")


def test_jpeg_and_parquet(tmp_path: Path, gray: Schema) -> None:
    lying, standing = picture(STORED[6], 6, "JPEG"), picture(UPRIGHT, None, "JPEG")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"image": [{"bytes": lying, "path": None}] * 2, "label": [0, 1]}), path)
    turned = parquet.read(path, gray).x[0, 0].astype(int)
    assert (
        np.abs(turned - UPRIGHT).max()
        <= np.abs(np.asarray(Image.open(io.BytesIO(standing))) - UPRIGHT.astype(int)).max() + 8
    )
    assert "shape = [1, 4, 5]" in draft(path)


@pytest.mark.parametrize("tag", [0, 9, 6000])
def test_a_note_that_means_nothing_is_no_failure(tmp_path: Path, gray: Schema, tag: int) -> None:
    (tmp_path / "pets" / "cat").mkdir(parents=True)
    (tmp_path / "pets" / "cat" / "1.png").write_bytes(picture(UPRIGHT, tag))
    assert (folder.read(tmp_path / "pets", gray).x == UPRIGHT).all()


def test_a_damaged_note_is_no_failure(tmp_path: Path, gray: Schema) -> None:
    (tmp_path / "pets" / "cat").mkdir(parents=True)
    buffer = io.BytesIO()
    Image.fromarray(UPRIGHT).save(buffer, format="PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff broken")
    (tmp_path / "pets" / "cat" / "1.png").write_bytes(buffer.getvalue())
    assert (folder.read(tmp_path / "pets", gray).x == UPRIGHT).all()


def test_a_lying_picture_without_a_note_is_of_another_size(tmp_path: Path, gray_file: Path) -> None:
    (tmp_path / "pets" / "cat").mkdir(parents=True)
    (tmp_path / "pets" / "cat" / "1.png").write_bytes(picture(STORED[6], None))
    with pytest.raises(Exception, match="is 4 x 5 pixels, but the schema says 5 x 4"):
        open_source(str(tmp_path / "pets"), schema_path=gray_file).load()
