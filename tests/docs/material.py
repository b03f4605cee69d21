"""The small data that the documents' commands are tried on: a folder of pictures and tables, made anew for each page."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

TOWNS = ("north", "south", "west")


def make_scans(folder: Path) -> None:
    """Pictures of two classes, `train` and `test`: handwritten zeros and ones, twice as large, some of them turned a little."""
    digits = load_digits()
    for split, keep in (("train", lambda place: place % 5 != 0), ("test", lambda place: place % 5 == 0)):
        for digit, name in ((0, "healthy"), (1, "ill")):
            (folder / split / name).mkdir(parents=True)
            chosen = [image for place, image in enumerate(digits.images[digits.target == digit]) if keep(place)]
            for place, image in enumerate(chosen):
                pixels = np.kron(image / 16 * 255, np.ones((2, 2))).astype(np.uint8)
                Image.fromarray(pixels).save(folder / split / name / f"{place:03}.png")


def make_people(path: Path, rows: int, seed: int) -> None:
    """A table of adults: income goes with age and hours."""
    rng = np.random.default_rng(seed)
    age, hours = rng.integers(18, 80, rows), rng.integers(10, 60, rows)
    odds = (age - 40) / 15 + (hours - 35) / 10
    high = rng.random(rows) < 1 / (1 + np.exp(-odds))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "hours", "town", "income"])
        for place in range(rows):
            town = TOWNS[rng.integers(len(TOWNS))]
            writer.writerow([age[place], hours[place], town, "high" if high[place] else "low"])


def make_all(folder: Path) -> None:
    make_scans(folder / "scans")
    make_people(folder / "people.csv", 3000, 1)
    make_people(folder / "people-test.csv", 600, 2)
