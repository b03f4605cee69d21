"""DICOM files: the declared range is the window, high is bright, and no file makes a reader fall over."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import dicom_files
import numpy as np
import pytest

from limbeck.data import dicom, images, open_source
from limbeck.data.draft import draft_of
from limbeck.data.surveyed import Wanted
from limbeck.errors import BadInput, DataUnreadable, TooLarge
from limbeck.privacy.schema import Schema

pytest.importorskip("pydicom")
CT = Schema(name="own", shape=(1, 6, 5), classes=("a", "b"), records=6, low=-1024, high=3071)
RAMP = np.arange(30, dtype=np.uint16).reshape(6, 5) * 100


def decoded(schema: Schema, pixels: np.ndarray[Any, Any] = RAMP, **tags: Any) -> np.ndarray[Any, Any]:
    return images.decode(dicom_files.made(pixels, **tags), schema, "it")


def test_rescaled_values() -> None:
    found = decoded(CT, RescaleSlope=1, RescaleIntercept=-1024)
    assert found.dtype == np.float32 and (found[0] == RAMP.astype(np.float32) - 1024).all()


def test_the_declared_range_is_the_window_and_that_of_the_file_is_ignored() -> None:
    soft = dataclasses.replace(CT, low=0, high=240)
    plain = decoded(soft, RescaleIntercept=-1024, RescaleSlope=1)
    assert plain.dtype == np.uint8 and plain.min() == 0 and plain.max() == 240
    assert (plain == decoded(soft, RescaleIntercept=-1024, RescaleSlope=1, WindowCenter=7, WindowWidth=3)).all()


@pytest.mark.parametrize("bits", [12, 16])
def test_monochrome1_is_inverted(bits: int) -> None:
    wide = dataclasses.replace(CT, low=0, high=65535)
    found = decoded(wide, PhotometricInterpretation="MONOCHROME1", BitsStored=bits, HighBit=bits - 1)
    assert (found[0] == (1 << bits) - 1 - RAMP.astype(np.float32)).all()


def test_resized_and_of_several_frames_the_first() -> None:
    pixels = np.stack([np.full((20, 40), 500, np.uint16), np.full((20, 40), 900, np.uint16)])
    found = decoded(dataclasses.replace(CT, resize="crop"), pixels, NumberOfFrames=2)
    assert found.shape == (1, 6, 5) and (found == 500).all()
    fitted = decoded(dataclasses.replace(CT, resize="fit"), pixels, NumberOfFrames=2)
    assert fitted.min() == -1024


def test_colour() -> None:
    pixels = np.zeros((6, 5, 3), np.uint8)
    pixels[..., 0] = 200
    colour = dataclasses.replace(CT, shape=(3, 6, 5), low=0, high=255)
    assert decoded(colour, pixels)[:, 0, 0].tolist() == [200, 0, 0]


def test_values_that_are_no_numbers_are_the_low_end() -> None:
    assert (decoded(CT, RescaleSlope="1e308", RescaleIntercept=0)[0, 1:] == 3071).all()


def test_what_cannot_be_read_is_a_sentence_without_what_stands_in_it(capfd: pytest.CaptureFixture[str]) -> None:
    good = dicom_files.made(RAMP, PatientName="Zq7Canary")
    for wrong in (
        good[:200],
        good[:-20],
        b"\0" * 128 + b"DICM",
        good.replace(b"\x28\x00\x10\x00", b"\x28\x00\x11\x00"),
    ):
        with pytest.raises(DataUnreadable) as caught:
            images.decode(wrong, CT, "it")
        assert "Zq7Canary" not in caught.value.message and "\n" not in caught.value.message
    assert "Zq7Canary" not in "".join(capfd.readouterr())


def test_another_size_and_packed_files_have_their_sentences() -> None:
    with pytest.raises(DataUnreadable, match="5 x 6 pixels, but the schema says 4 x 4"):
        decoded(dataclasses.replace(CT, shape=(1, 4, 4)))
    with pytest.raises(DataUnreadable, match=r"transfer syntax 1.2.840.10008.1.2.4.80.*pip install"):
        images.decode(dicom_files.with_syntax(dicom_files.made(RAMP), "1.2.840.10008.1.2.4.80"), CT, "it")
    with pytest.raises(DataUnreadable, match="deflated"):
        images.decode(dicom_files.with_syntax(dicom_files.made(RAMP), dicom.DEFLATED), CT, "it")


def test_a_bomb_is_refused_by_its_header() -> None:
    huge = dicom_files.made(RAMP, Rows=65535, Columns=65535)
    with pytest.raises(TooLarge):
        images.decode(huge, dataclasses.replace(CT, resize="fit"), "it")


def folder_of(tmp_path: Path) -> Path:
    for name in CT.classes:
        (tmp_path / "own" / name).mkdir(parents=True)
        for place in range(3):
            data = dicom_files.made(RAMP, RescaleSlope=1, RescaleIntercept=-1024, BitsStored=12, HighBit=11)
            (tmp_path / "own" / name / f"{place}.dcm").write_bytes(data)
    return tmp_path / "own"


def test_a_draft_takes_the_range_of_the_declared_bits_and_asks(tmp_path: Path) -> None:
    made = draft_of(folder_of(tmp_path), Wanted())
    schema = made.schema
    assert (schema.low, schema.high, schema.shape) == (-1024, 3071, (1, 6, 5))
    assert {"low", "high", "augmentation"} <= set(schema.unconfirmed) and "flip" not in schema.augmentation
    assert any("Which range matters is yours to say" in said for said in made.aloud)
    assert open_source(str(tmp_path / "own"), default=schema).load().x.shape == (6, 1, 6, 5)


def test_without_pydicom_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(tmp_path)
    monkeypatch.setattr(dicom.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="pydicom") as caught:
        draft_of(folder, Wanted())
    assert caught.value.next_command == "pip install 'limbeck[dicom]'"
    assert "pydicom" in sys.modules
