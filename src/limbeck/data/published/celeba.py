"""CelebA: list_attr_celeba.txt beside the folder img_align_celeba. A record is classed by its gender, by its hair, or by any one
of the forty attributes.

The official partition is list_eval_partition.txt; where that is not there, its published bounds: pictures 1 to 162770 are the
training split, those from 182638 on the test split. Validation records are in neither.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from limbeck.data.published.found import Pictures
from limbeck.data.published.layout import Layout, chosen_label, names_in
from limbeck.data.published.lists import lines_of
from limbeck.data.streams.marks import mark_file, mark_files
from limbeck.errors import DataNotFound, DataUnreadable

ATTRIBUTES, PARTITION, FOLDER = "list_attr_celeba.txt", "list_eval_partition.txt", "img_align_celeba"
LAST_OF_TRAIN, FIRST_OF_TEST = 162_770, 182_638
PARTS = {"train": "0", "test": "2"}
NAMES = """
5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose Black_Hair Blond_Hair Blurry
Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee Gray_Hair Heavy_Makeup High_Cheekbones Male
Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks Sideburns
Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace Wearing_Necktie Young
"""
# DataLens: of three colours of hair; a face that has several of them, or none, is in no class.
GENDER, HAIR = "gender", "hair"
COLOURS = {"Black_Hair": "black", "Blond_Hair": "blond", "Brown_Hair": "brown"}


def holds(path: Path) -> bool:
    return ATTRIBUTES in names_in(path)


def open_split(path: Path, split: str, label: str | None) -> Pictures:
    lines = lines_of(path / ATTRIBUTES)
    next(lines, None)  # how many there are
    names = (next(lines, None) or (0, []))[1]
    # Other words may be the first record of some other list, which no message may show.
    if not names or not set(names) <= set(NAMES.split()) or len(set(names)) != len(names):
        raise DataUnreadable(f"{path / ATTRIBUTES} does not name attributes of CelebA, each once, in its second line.")
    chosen = chosen_label(path, label, _labels(names))
    folder = _pictures_folder(path)
    part = _partition(path)
    rows = [(words[0], words[1:], line) for line, words in lines]
    short = [line for _, values, line in rows if len(values) != len(names)]
    if short:
        raise DataUnreadable(
            f"{path / ATTRIBUTES} does not have {len(names)} values in line {short[0]}, one for each name of its second line."
        )
    there = [(name, values) for name, values, _ in rows if _split_of(name, part) == split]
    classes, classed = _classes(chosen, names)
    return Pictures(
        f"{path}:{split}",
        chosen,
        classes,
        [partial(Path, folder, Path(name).name) for name, _ in there],
        [classed(values) for _, values in there],
        lambda: (mark_file(path / ATTRIBUTES), mark_files(folder, (Path(name).name for name, _ in there))),
    )


def _labels(names: list[str]) -> tuple[str, ...]:
    own = [GENDER] if "Male" in names else []
    own += [HAIR] if set(COLOURS) <= set(names) else []
    return (*own, *names)


def _classes(label: str, names: list[str]) -> tuple[tuple[str, ...], Callable[[list[str]], int | None]]:
    """The classes of a label, and what gives the class of a line's values."""
    if label == HAIR:
        places = [names.index(name) for name in COLOURS]

        def hair(values: list[str]) -> int | None:
            worn = [index for index, place in enumerate(places) if values[place] == "1"]
            return worn[0] if len(worn) == 1 else None

        return tuple(COLOURS.values()), hair
    place = names.index("Male" if label == GENDER else label)
    classes = ("female", "male") if label == GENDER else ("no", "yes")
    return classes, lambda values: int(values[place] == "1")


def _pictures_folder(path: Path) -> Path:
    """The archive unpacks to a folder of its own name, which may then be one too many."""
    for folder in (path / FOLDER / FOLDER, path / FOLDER):
        if folder.is_dir():
            return folder
    raise DataNotFound(f"{path} has no folder {FOLDER}/ beside {ATTRIBUTES}; unpack {FOLDER}.zip there.")


def _partition(path: Path) -> dict[str, str] | None:
    if PARTITION not in names_in(path):
        return None
    return {words[0]: words[1] for _, words in lines_of(path / PARTITION) if len(words) == 2}


def _split_of(name: str, part: dict[str, str] | None) -> str | None:
    if part is not None:
        return next((split for split, number in PARTS.items() if part.get(name) == number), None)
    digits = Path(name).stem
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
    if not number:
        return None
    return "train" if number <= LAST_OF_TRAIN else "test" if number >= FIRST_OF_TEST else None


CELEBA = Layout(
    name="celeba",
    title="faces of celebrities with forty attributes, 178 x 218 pixels in colour",
    get="the project page of CelebA, mmlab.ie.cuhk.edu.hk/projects/CelebA.html (aligned images, attributes, partition)",
    files="list_attr_celeba.txt, img_align_celeba/, list_eval_partition.txt if there is one",
    labels="gender (female, male), hair (black, blond, brown), or any attribute (no, yes)",
    holds=holds,
    open=open_split,
)
