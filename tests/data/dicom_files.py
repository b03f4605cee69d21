"""DICOM files made for tests."""

from __future__ import annotations

import io
from typing import Any

import numpy as np


def made(pixels: np.ndarray[Any, Any], syntax: str = "1.2.840.10008.1.2.1", **tags: Any) -> bytes:
    """A file of these stored values, (H, W) or (frames, H, W) of grey, (H, W, 3) of colour; tags by keyword."""
    import pydicom
    from pydicom.dataset import FileDataset, FileMetaDataset

    meta = FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.UID(syntax)
    meta.MediaStorageSOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = pydicom.uid.UID("1.2.3")
    data = FileDataset(None, {}, file_meta=meta, preamble=b"\0" * 128)
    colour = pixels.shape[-1] == 3
    height, width = pixels.shape[-3:-1] if colour else pixels.shape[-2:]
    bits = pixels.dtype.itemsize * 8
    values = {
        "SOPClassUID": meta.MediaStorageSOPClassUID,
        "SOPInstanceUID": meta.MediaStorageSOPInstanceUID,
        "Rows": height,
        "Columns": width,
        "SamplesPerPixel": 3 if colour else 1,
        "PhotometricInterpretation": "RGB" if colour else "MONOCHROME2",
        "BitsAllocated": bits,
        "BitsStored": bits,
        "HighBit": bits - 1,
        "PixelRepresentation": int(pixels.dtype.kind == "i"),
        **({"PlanarConfiguration": 0} if colour else {}),
    }
    for name, value in (values | tags).items():
        setattr(data, name, value)
    data.PixelData = pixels.tobytes()
    buffer = io.BytesIO()
    data.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def with_syntax(data: bytes, syntax: str) -> bytes:
    """The same bytes, said to be packed in another way."""
    old = b"1.2.840.10008.1.2.1\0"
    start = data.index(b"\x02\x00\x10\x00UI")
    length = int.from_bytes(data[start + 6 : start + 8], "little")
    text = syntax.encode() + b"\0" * (len(syntax) % 2)
    assert data[start + 8 : start + 8 + length] == old
    end = start + 8 + length
    moved = data[: start + 6] + len(text).to_bytes(2, "little") + text + data[end:]
    # The group's length stands first.
    place = moved.index(b"\x02\x00\x00\x00UL") + 8
    group = int.from_bytes(moved[place : place + 4], "little") + len(text) - length
    return moved[:place] + group.to_bytes(4, "little") + moved[place + 4 :]
