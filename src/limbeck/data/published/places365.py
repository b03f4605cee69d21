"""Places365-Standard, small pictures: categories_places365.txt beside the lists of pictures and their folders. The test split is
the validation set, because the labels of the real one are not public."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from limbeck.data.published.found import Pictures
from limbeck.data.published.layout import Layout, chosen_label, names_in
from limbeck.data.published.lists import lines_of
from limbeck.data.streams.marks import mark_file, mark_files
from limbeck.errors import DataNotFound, DataUnreadable

CATEGORIES = "categories_places365.txt"
LISTS = {"train": ("places365_train_standard.txt", "places365_train.txt"), "test": ("places365_val.txt",)}
FOLDERS = {
    "train": ("data_256_standard", "data_256", "data_large_standard", "data_large"),
    "test": ("val_256", "val_large"),
}


def holds(path: Path) -> bool:
    return CATEGORIES in names_in(path)


def open_split(path: Path, split: str, label: str | None) -> Pictures:
    label = chosen_label(path, label, ("category",))
    listed = path / _one_of(path, LISTS[split], "list of pictures")
    folder = path / _one_of(path, FOLDERS[split], "folder of pictures")
    classes = _categories(path / CATEGORIES)
    found = [(number, words) for number, words in lines_of(listed)]
    for number, words in found:
        if len(words) != 2 or not words[1].isascii() or not words[1].isdigit() or int(words[1]) >= len(classes):
            raise DataUnreadable(f"{listed} has no picture and category number below {len(classes)} in line {number}.")
    inside = [_inside(folder, words[0], listed, number) for number, words in found]
    return Pictures(
        f"{path}:{split}",
        label,
        classes,
        [partial(Path, file) for file in inside],
        [int(words[1]) for _, words in found],
        lambda: (mark_file(listed), mark_files(folder, (str(file.relative_to(folder)) for file in inside))),
    )


def _one_of(path: Path, names: tuple[str, ...], what: str) -> str:
    there = names_in(path)
    for name in names:
        if name in there:
            return name
    raise DataNotFound(f"{path} has no {what} {' or '.join(names)}.")


def _categories(file: Path) -> tuple[str, ...]:
    """/a/airport_terminal 3 is the category airport_terminal, /a/apartment_building/outdoor 8 apartment_building-outdoor."""
    numbered = [(words[0], words[-1]) for _, words in lines_of(file)]
    classes = tuple("-".join(name.strip("/").split("/")[1:]) for name, _ in numbered)
    counted = [number for _, number in numbered] == [str(number) for number in range(len(numbered))]
    if not all(classes) or not classes or len(set(classes)) != len(classes) or not counted:
        raise DataUnreadable(f"{file} is no list of categories, each with its number from 0 on.")
    return classes


def _inside(folder: Path, name: str, listed: Path, number: int) -> Path:
    parts = [part for part in name.split("/") if part]
    if not parts or ".." in parts:
        raise DataUnreadable(f"{listed} names no picture inside of {folder} in line {number}.")
    return folder.joinpath(*parts)


PLACES365 = Layout(
    name="places365",
    title="places of 365 categories, 256 x 256 pixels in colour",
    get="the project page of Places, places2.csail.mit.edu (Places365-Standard, small images, file lists)",
    files="categories_places365.txt, places365_train_standard.txt, places365_val.txt, data_256_standard/, val_256/",
    labels="category; only records of the schema's classes are read, so a few categories make a set",
    holds=holds,
    open=open_split,
)
