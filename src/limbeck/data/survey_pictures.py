"""A look at the headers of an owner's pictures: sizes, channels, depth; and what a schema may say of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from PIL import ExifTags, Image
from PIL.TiffImagePlugin import TiffImageFile

from limbeck.data import dicom, images
from limbeck.data.limits import require_room
from limbeck.data.resizing import SEE_THROUGH, is_deep
from limbeck.errors import DataUnreadable
from limbeck.privacy.picture_entries import CROP, FILL, FIT

SIDES = (224, 128, 96, 64, 32)  # what is proposed for pictures of several sizes: the largest that most of them have
LARGEST = 224  # of pictures that keep their size
LYING = (5, 6, 7, 8)  # orientations whose sides change places
EVEN = 1.25  # sides of about this proportion are cut to a square; others keep all they show
SHARE = 0.9
# Words that often name medical pictures. A guess, which only ever leads to a question.
_MEDICAL = re.compile(
    r"x-?ray|radiograph|mammo|\bct\b|\bmri?\b|scan|ultraso|lesion|benign|malig|tumou?r|cancer|patient|clinic|hospital|patholog|"
    r"histolog|retina|fundus|derma|melano|pneumo|covid|disease|diagnos|healthy|nodule|dicom|medic",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PictureHeader:
    """reach: the values that its bits stand for. eight: whether they are 8 bits."""

    size: tuple[int, int]
    colour: bool
    eight: bool
    reach: tuple[float, float]
    dicom: bool = False
    several: bool = False
    see_through: bool = False


@dataclass(frozen=True, kw_only=True)
class PictureForm:
    """What is proposed, and what the owner should know."""

    shape: tuple[int, int, int]
    low: float
    high: float
    resize: str | None
    dicom: bool
    remarks: tuple[str, ...] = field(default=())


def looks_medical(*names: str) -> bool:
    """
    >>> [looks_medical(name) for name in ("chest_xray", "benign", "cats", "CT")]
    [True, True, False, True]
    """
    return any(_MEDICAL.search(name.replace("_", " ")) for name in names)


def header_of(image: bytes | Path, where: str) -> PictureHeader:
    """Guarantee: unpacks no pixel."""
    if dicom.is_dicom(image):
        found = dicom.header(image, where)
        eight = found.reach == (0, 255)
        return PictureHeader(found.size, found.channels > 1, eight, found.reach, True, found.frames > 1)
    with images.opened(image, where) as picture:
        require_room(picture.width * picture.height * images.BYTES_PER_PIXEL, where)
        deep = is_deep(picture)
        return PictureHeader(
            size=_upright_size(picture),
            colour=not deep and picture.mode not in ("L", "1", "LA", "La"),
            eight=not deep,
            reach=(0, 65535 if deep else 255),
            several=bool(getattr(picture, "is_animated", False)),
            see_through=picture.mode in SEE_THROUGH or "transparency" in picture.info,
        )


def _upright_size(picture: Image.Image) -> tuple[int, int]:
    try:
        lying = picture.getexif().get(ExifTags.Base.Orientation) in LYING
    except Exception:  # a damaged note beside the pixels; `images.upright` leaves such a picture as it is
        lying = False
    # Some versions of Pillow turn the size of a TIFF when they open it, others when they unpack it; the tags never turn.
    size = (picture.tag_v2[256], picture.tag_v2[257]) if isinstance(picture, TiffImageFile) else picture.size
    return (size[1], size[0]) if lying else size


def form_of(pictures: Iterable[tuple[bytes | Path, str]]) -> PictureForm | None:
    """What a schema may say of pictures with these names for messages; None where there is none."""
    headers = list(_headers(pictures))
    if not headers:
        return None
    shape, resize = _shape_and_resize(headers)
    eights = sum(each.eight for each in headers)
    mixed_depth = 0 < eights < len(headers)
    scans = [each for each in headers if each.dicom] or headers
    low, high = min(each.reach[0] for each in scans), max(each.reach[1] for each in scans)
    if mixed_depth and not any(each.dicom for each in headers):
        high, resize = 255, resize or FIT
    remarks = [*_size_remarks(headers, resize), *_counted(headers), *_depth_remarks(headers, mixed_depth, low, high)]
    return PictureForm(
        shape=shape,
        low=low,
        high=high,
        resize=resize,
        dicom=any(each.dicom for each in headers),
        remarks=tuple(remarks),
    )


def _headers(pictures: Iterable[tuple[bytes | Path, str]]) -> Iterator[PictureHeader]:
    for image, where in pictures:
        found = header_of(image, where)
        if not all(found.size):
            raise DataUnreadable(f"{where} is an image without pixels.")
        yield found


def _shape_and_resize(headers: Sequence[PictureHeader]) -> tuple[tuple[int, int, int], str | None]:
    """One size that is not large stays; a large one is made smaller in proportion; several become squares."""
    channels = 3 if any(each.colour for each in headers) else 1
    sizes = Counter(each.size for each in headers)
    if len(sizes) == 1:
        (wide, high) = next(iter(sizes))
        longest = max(wide, high)
        if longest <= LARGEST:
            return (channels, high, wide), None
        return (channels, max(8, round(high * 128 / longest)), max(8, round(wide * 128 / longest))), FILL
    shorter = median(min(each.size) for each in headers)
    side = next((side for side in SIDES if side <= shorter), max(8, int(shorter)))
    even = sum(max(each.size) <= EVEN * min(each.size) for each in headers) >= SHARE * len(headers)
    scans = any(each.dicom for each in headers)
    return (channels, side, side), CROP if even and not scans else FIT


def _size_remarks(headers: Sequence[PictureHeader], resize: str | None) -> list[str]:
    if resize is None:
        return []
    wide, high = ([each.size[axis] for each in headers] for axis in (0, 1))
    return [
        f"Pictures are {min(wide)} to {max(wide)} pixels wide and {min(high)} to {max(high)} high. {resize}: {WAYS[resize]}. "
        "Larger shapes take more time and seldom make a better set."
    ]


WAYS = {
    FIT: "the whole picture, with borders of the low end; crop would cut it to its middle, fill would stretch it",
    CROP: "the middle of the picture; fit would keep all of it with borders, fill would stretch it",
    FILL: "the whole picture, stretched to the shape; fit would add borders, crop would cut it to its middle",
}


def _counted(headers: Sequence[PictureHeader]) -> list[str]:
    said = {
        "have several pages or frames; the first one is read": sum(each.several for each in headers),
        "may be seen through in places; the low end of the range is laid behind them": sum(
            each.see_through for each in headers
        ),
    }
    grey = sum(not each.colour for each in headers)
    if 0 < grey < len(headers):
        said["are grey and are read as colour; channels = 1 would make all grey"] = grey
    return [f"{count} of {len(headers)} pictures {what}." for what, count in said.items() if count]


def _depth_remarks(headers: Sequence[PictureHeader], mixed: bool, low: float, high: float) -> list[str]:
    if any(each.dicom for each in headers):
        others = sum(not each.dicom for each in headers)
        return [
            f"DICOM: the bits that the files declare allow {low:g} to {high:g}. Which range matters is yours to say, and public: "
            "values outside are clamped (of a CT, say, -160 to 240 for soft tissue). Windows in the files are ignored.",
            *([f"{others} pictures are no DICOM files; their values are read as they are."] if others else []),
        ]
    if mixed:
        deep = sum(not each.eight for each in headers)
        return [f"{deep} of {len(headers)} pictures have 16 bits; 65535 is read as 255."]
    return []
