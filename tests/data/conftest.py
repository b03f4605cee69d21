from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from limbeck.privacy.schema import Schema
from schemas import COLOUR, GRAY, PEOPLE


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees or changes the sets of the person who runs it."""
    cache = tmp_path / "own-cache"
    monkeypatch.setenv("LIMBECK_CACHE", str(cache))
    monkeypatch.setenv("LIMBECK_OFFLINE", "1")
    monkeypatch.delenv("LIMBECK_DATA", raising=False)
    return cache


@pytest.fixture
def gray() -> Schema:
    return GRAY


@pytest.fixture
def colour() -> Schema:
    return COLOUR


@pytest.fixture
def people() -> Schema:
    return PEOPLE


@pytest.fixture
def write_schema(tmp_path: Path) -> Callable[..., Path]:
    """A schema file with the given top-level TOML lines."""

    def write(path: Path, *lines: str) -> Path:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


GRAY_TOML = ('name = "tiny"', "shape = [1, 4, 5]", 'classes = ["cat", "dog"]', "records = 6")


@pytest.fixture
def gray_file(tmp_path: Path, write_schema: Callable[..., Path]) -> Path:
    return write_schema(tmp_path / "gray.toml", *GRAY_TOML)


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    """Three cats and two dogs of 5 x 4 grey pixels; the first pixel numbers the image."""
    root = tmp_path / "pets"
    for name, count in (("cat", 3), ("dog", 2)):
        (root / name).mkdir(parents=True)
        for place in range(count):
            Image.fromarray(np.full((4, 5), 10 * place, dtype=np.uint8)).save(root / name / f"{place}.png")
    return root
