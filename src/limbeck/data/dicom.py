"""One DICOM file as a picture: stored values to those of the modality, upright in grey, or 8 bits of colour.

The window is the schema's public range, `low` to `high`, in the units that rescale slope and intercept give; windows that a file
proposes are ignored, because they are of its own. MONOCHROME1 is inverted, so that high is bright in every record. Of several
frames the first is read. Only the tags below are looked at: no name, no date.
"""

from __future__ import annotations

import importlib.util
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from limbeck.data.limits import require_room
from limbeck.errors import BadInput, DataUnreadable, LimbeckError, ran_out

SUFFIXES = (".dcm", ".dicom")
MARK, MARK_AT = b"DICM", 128
NEEDED = "DICOM files need the package pydicom, which is not installed."
INSTALL = "pip install 'limbeck[dicom]'"
DEFLATED = "1.2.840.10008.1.2.1.99"
LARGEST_SIDE = 1 << 16
TAGS = (
    "Rows", "Columns", "NumberOfFrames", "SamplesPerPixel", "PlanarConfiguration", "PhotometricInterpretation", "BitsAllocated",
    "BitsStored", "HighBit", "PixelRepresentation", "RescaleSlope", "RescaleIntercept", "ModalityLUTSequence", "PixelData",
    "RedPaletteColorLookupTableDescriptor", "GreenPaletteColorLookupTableDescriptor", "BluePaletteColorLookupTableDescriptor",
    "RedPaletteColorLookupTableData", "GreenPaletteColorLookupTableData", "BluePaletteColorLookupTableData",
)  # fmt: skip


@dataclass(frozen=True)
class DicomHeader:
    """size: (width, height). reach: the lowest and the highest value that so many bits can stand for, once rescaled."""

    size: tuple[int, int]
    channels: int
    frames: int
    bits: int
    reach: tuple[float, float]


def is_dicom(image: bytes | Path) -> bool:
    """By a file's name, as for every other kind; by the mark of bytes that have none."""
    if isinstance(image, Path):
        return image.suffix.lower() in SUFFIXES
    return image[MARK_AT : MARK_AT + len(MARK)] == MARK


def require_pydicom() -> None:
    if importlib.util.find_spec("pydicom") is None:
        raise BadInput(NEEDED, INSTALL)


def header(image: bytes | Path, where: str) -> DicomHeader:
    with _opened(image, where) as data:
        return _header(data, where)


def picture(image: bytes | Path, where: str, size: tuple[int, int] | None = None) -> Image.Image:
    """Colour in mode RGB, or grey in mode F: as many bits as there are. size: (width, height) that it must have."""
    with _opened(image, where) as data:
        found = _header(data, where)
        if size is not None and found.size != size:
            raise DataUnreadable(
                f"{where} is {found.size[0]} x {found.size[1]} pixels, but the schema says {size[0]} x {size[1]}."
            )
        _require_decoder(data, where)
        return _colours(data) if found.channels > 1 else _greys(data, found)


@contextmanager
def _opened(image: bytes | Path, where: str) -> Iterator[Any]:
    """The data set, with what pydicom says of it kept quiet: its warnings quote what stands in the file."""
    require_pydicom()
    logger = logging.getLogger("pydicom")
    before, logger.disabled = logger.disabled, True
    try:
        yield _data_set(image, where)
    except LimbeckError:
        raise
    except Exception as error:  # a damaged file raises whatever its bytes lead to
        if ran_out(error):
            raise
        raise DataUnreadable(f"{where} is not a readable DICOM file ({type(error).__name__}).") from None
    finally:
        logger.disabled = before


def _data_set(image: bytes | Path, where: str) -> Any:
    import pydicom
    from pydicom.filereader import read_dataset, read_preamble

    require_room(len(image) if isinstance(image, bytes) else image.stat().st_size, where)
    content = io.BytesIO(image if isinstance(image, bytes) else image.read_bytes())
    # The syntax stands before the data set. A deflated one is unpacked whole, however large, before any of it can be judged.
    read_preamble(content, False)
    meta = read_dataset(content, False, True, stop_when=lambda tag, vr, length: tag.group != 2)
    if str(meta.get("TransferSyntaxUID", "")) == DEFLATED:
        raise DataUnreadable(f"{where} is a deflated DICOM file, which is not read; save it without deflating.")
    content.seek(0)
    return pydicom.dcmread(content, specific_tags=list(TAGS))


def _header(data: Any, where: str) -> DicomHeader:
    """Guarantee: sizes are judged here, before a pixel is unpacked."""
    width, height = int(data.Columns), int(data.Rows)
    samples, frames = int(data.get("SamplesPerPixel") or 1), int(data.get("NumberOfFrames") or 1)
    if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE and samples in (1, 3) and frames >= 1):
        raise DataUnreadable(f"{where} announces a picture of no usable size.")
    bits, stored = int(data.BitsAllocated), int(data.get("BitsStored") or data.BitsAllocated)
    if bits not in (8, 16, 32) or not 1 <= stored <= bits or "PixelData" not in data:
        raise DataUnreadable(f"{where} has {bits} bits for each value, or no pixels; 8, 16 and 32 are read.")
    require_room(width * height * (samples * bits // 8 + 16), where)
    palette = str(data.get("PhotometricInterpretation", "")) == "PALETTE COLOR"
    low, high = _stored_range(data, stored)
    ends = sorted(end * _slope(data) + _intercept(data) for end in (low, high))
    return DicomHeader((width, height), 3 if palette or samples == 3 else 1, frames, stored, (ends[0], ends[1]))


def _stored_range(data: Any, stored: int) -> tuple[int, int]:
    signed = int(data.get("PixelRepresentation") or 0) == 1
    return (-(1 << (stored - 1)), (1 << (stored - 1)) - 1) if signed else (0, (1 << stored) - 1)


def _slope(data: Any) -> float:
    return float(1 if data.get("RescaleSlope") is None else data.RescaleSlope)


def _intercept(data: Any) -> float:
    return float(data.get("RescaleIntercept") or 0)


def _require_decoder(data: Any, where: str) -> None:
    from pydicom.pixels import get_decoder

    syntax = data.file_meta.TransferSyntaxUID
    try:
        available = not syntax.is_compressed or get_decoder(syntax).is_available
    except NotImplementedError:
        available = False
    if not available:
        raise DataUnreadable(
            f"{where} is packed in a way (transfer syntax {str(syntax)[:64]}) that pydicom cannot unpack here. Install its "
            "plugins with: pip install pylibjpeg pylibjpeg-libjpeg pylibjpeg-openjpeg; or save the files unpacked."
        )


def _greys(data: Any, found: DicomHeader) -> Image.Image:
    from pydicom.pixels import apply_modality_lut, pixel_array

    values = pixel_array(data, index=0, raw=True)
    if str(data.get("PhotometricInterpretation", "")) == "MONOCHROME1":
        values = sum(_stored_range(data, found.bits)) - values.astype(np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        if data.get("ModalityLUTSequence"):
            values = apply_modality_lut(values, data)
        else:
            values = values * _slope(data) + _intercept(data)
        return Image.fromarray(np.asarray(values, dtype=np.float32))


def _colours(data: Any) -> Image.Image:
    from pydicom.pixels import apply_color_lut, pixel_array

    values = pixel_array(data, index=0)  # colour spaces to RGB
    if str(data.get("PhotometricInterpretation", "")) == "PALETTE COLOR":
        values = apply_color_lut(values, data)
    if values.dtype != np.uint8:
        values = (values.astype(np.float64) / (np.iinfo(values.dtype).max / 255)).clip(0, 255).round()
    return Image.fromarray(values.astype(np.uint8))
