"""One image: PNG, JPEG and the other formats that Pillow decodes, and DICOM, to and from (channels, height, width)."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import ExifTags, Image

from limbeck.data import dicom
from limbeck.data.limits import require_room
from limbeck.data.records import Array
from limbeck.data.resizing import MODES, at_depth, at_size, in_mode, is_deep
from limbeck.errors import BadInput, DataUnreadable, LimbeckError, TooLarge, ran_out
from limbeck.privacy.schema import Schema

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", *dicom.SUFFIXES)
READ = "PNG, JPEG, BMP, GIF, WebP, TIFF, PPM and DICOM (.dcm)"
BYTES_PER_PIXEL = 8  # while a picture is unpacked, turned and converted
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
# Values of the orientation tag: how the stored picture is turned to stand upright.
TURNS: dict[Any, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def raw_dtype(schema: Schema) -> type[np.uint8] | type[np.float32]:
    """Eight bits hold the range of nearly all image sets; deeper ones (16-bit scans) need floats."""
    return np.uint8 if schema.low >= 0 and schema.high <= 255 else np.float32


def decode(image: bytes | Path, schema: Schema, where: str) -> Array:
    """The raw values of one image, turned as its camera says: of the schema's size, or brought to it where the schema says how.

    Guarantee: a fixed function of the file and of the schema, the same for a set in memory and for one in pieces.
    """
    if dicom.is_dicom(image):
        return _of_dicom(image, schema, where)
    if schema.resize is not None:
        return _resized(image, schema, where)
    channels, height, width = schema.shape
    with opened(image, where) as picture:
        # The size stands in the header: a wrong (or a maliciously huge) picture is refused before it is unpacked.
        if picture.size in ((width, height), (height, width)):
            picture = upright(picture)
        if picture.size != (width, height):
            raise other_size(picture.size, schema, where)
        return _values(picture, channels, schema, where)


def other_size(size: tuple[int, int], schema: Schema, where: str) -> DataUnreadable:
    return DataUnreadable(
        f"{where} is {size[0]} x {size[1]} pixels, but the schema says {schema.shape[2]} x {schema.shape[1]}. For pictures of "
        'several sizes say how they are brought to one: resize = "crop", "fit" or "fill" in the schema.'
    )


def _resized(image: bytes | Path, schema: Schema, where: str) -> Array:
    channels = _channels(schema, where)
    with opened(image, where) as picture:
        require_room(picture.width * picture.height * BYTES_PER_PIXEL, where)
        picture = upright(picture)
        if is_deep(picture):
            return _grey(at_depth(picture, raw_dtype(schema) is np.uint8), schema, where)
        picture = in_mode(picture, channels, schema.low)
        return _pixels(_fitted(picture, schema, where), schema)


def _of_dicom(image: bytes | Path, schema: Schema, where: str) -> Array:
    """The declared range is the window, whatever a file proposes."""
    channels = _channels(schema, where)
    size = None if schema.resize is not None else (schema.shape[2], schema.shape[1])
    picture = dicom.picture(image, where, size)
    if is_deep(picture):
        return _grey(picture, schema, where)
    return _pixels(_fitted(in_mode(picture, channels, schema.low), schema, where), schema)


def _fitted(picture: Image.Image, schema: Schema, where: str) -> Image.Image:
    size = (schema.shape[2], schema.shape[1])
    return picture if schema.resize is None else at_size(picture, size, schema.resize, schema.low, where)


def _grey(picture: Image.Image, schema: Schema, where: str) -> Array:
    """Floats, cut to the declared range before they are averaged, as many times as there are channels."""
    channels = schema.shape[0]
    if channels not in (1, 3):
        raise DataUnreadable(f"{where} is grey with more than 8 bits, which cannot be read as {channels} channels.")
    values = np.nan_to_num(np.asarray(picture), nan=schema.low, posinf=schema.high, neginf=schema.low)
    window = Image.fromarray(values.clip(schema.low, schema.high).astype(np.float32))
    values = np.asarray(_fitted(window, schema, where))
    if raw_dtype(schema) is np.uint8:
        values = np.rint(values).clip(0, 255).astype(np.uint8)
    return np.repeat(values[None], channels, axis=0)


def _channels(schema: Schema, where: str) -> int:
    if schema.shape[0] not in MODES:
        raise DataUnreadable(f"{where} cannot be read as {schema.shape[0]} channels; an image file has 1 to 4.")
    return schema.shape[0]


def _pixels(picture: Image.Image, schema: Schema) -> Array:
    pixels = np.asarray(picture, dtype=raw_dtype(schema))
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0)


@contextmanager
def opened(image: bytes | Path, where: str) -> Iterator[Image.Image]:
    """A picture of which only the header is read so far. Formats that run other programs are not tried."""
    try:
        with warnings.catch_warnings():
            # Pillow warns of large pictures and of odd notes. Every caller compares the size itself, with its own limit.
            warnings.simplefilter("ignore")
            # A file object, never a name: Pillow maps a named TIFF into memory, and then turns it wrongly.
            with (
                io.BytesIO(image) if isinstance(image, bytes) else image.open("rb") as file,
                Image.open(file, formats=FORMATS) as picture,
            ):
                yield picture
    except LimbeckError:
        raise
    except Image.DecompressionBombError:
        raise TooLarge(f"{where} is an image of more pixels than can be unpacked safely.") from None
    except Exception as error:  # Pillow's decoders raise a dozen unrelated types on a damaged file
        if ran_out(error):
            raise
        raise DataUnreadable(f"{where} is not a readable image ({type(error).__name__}).") from None


def upright(picture: Image.Image) -> Image.Image:
    """Unpack a picture and turn it as its EXIF orientation says; a camera held upright stores it lying."""
    picture.load()  # a PNG may carry its orientation after the pixels, and Pillow turns a TIFF while unpacking it
    try:
        turn = TURNS.get(picture.getexif().get(ExifTags.Base.Orientation))
    except MemoryError:
        raise
    except Exception:  # the pixels are there; a damaged note beside them does not make the record unreadable
        return picture
    return picture if turn is None else picture.transpose(turn)


def _values(picture: Image.Image, channels: int, schema: Schema, where: str) -> Array:
    """Of a picture that has the size already, for schemas that do not resize: what they meant before there was a choice."""
    if is_deep(picture):
        if channels != 1 or raw_dtype(schema) is np.uint8:
            raise DataUnreadable(
                f"{where} has more than 8 bits per pixel, but the schema's range is {schema.low:g}..{schema.high:g}."
            )
        return np.asarray(picture, dtype=np.float32)[None]
    mode = MODES[_channels(schema, where)]
    return _pixels(picture if picture.mode == mode else picture.convert(mode), schema)


def encode_png(values: Array) -> bytes:
    """PNG bytes of one image with values in [-1, 1]; the same values give the same bytes."""
    channels = values.shape[0]
    if channels not in MODES:
        raise BadInput(f"A PNG image has 1 to 4 channels, this set has {channels}; write it as .npz.")
    finite = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=-1.0)
    pixels = np.rint((np.clip(finite, -1, 1) + 1) * 127.5).astype(np.uint8)
    pixels = pixels[0] if channels == 1 else np.ascontiguousarray(np.moveaxis(pixels, 0, -1))
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=False, compress_level=6)
    return buffer.getvalue()
