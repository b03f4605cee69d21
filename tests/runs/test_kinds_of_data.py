"""What `fit` takes beside arrays and frames: a Dataset of torch, a Dataset of Hugging Face; and that it comes back as such."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from frames import SCHEMA as TABLE
from frames import rows
from limbeck import Condenser, Ledger, Schema, load
from limbeck.data.frames import frame_source
from limbeck.data.hf_dataset import hf_form
from limbeck.errors import BadInput, DataUnreadable
from limbeck.release.framed import framed
from limbeck.runs.in_memory import ArraySource, memory_source

PICTURES = Schema(name="scans", shape=(1, 4, 4), classes=("a", "b"), records=60, low=0, high=255)
X = np.random.default_rng(0).integers(0, 256, (60, 1, 4, 4), dtype=np.uint8)
Y = np.arange(60) % 2
SMALL: dict[str, Any] = {"method": "ldpdc", "epsilon": None, "per_class": 3, "settings": {"L": 10, "sigma": 2.0}}
WANTED = ArraySource(PICTURES, X, Y).load()


class Pictures(Dataset[Any]):
    """As torchvision gives them: a picture of Pillow and a number."""

    def __init__(self, mode: str = "L", broken: int = -1) -> None:
        self.mode, self.broken, self.asked = mode, broken, 0

    def __len__(self) -> int:
        return 60

    def __getitem__(self, place: int) -> tuple[Image.Image, int]:
        self.asked += 1
        if place == self.broken:
            raise ValueError("Zq7Secret")
        return Image.fromarray(X[place, 0]).convert(self.mode), int(Y[place])


def no_accounts() -> bool:
    with Ledger.open() as ledger:
        return ledger.accounts() == []


@pytest.mark.parametrize(
    "dataset",
    [TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), Pictures(), Pictures("RGB"), Pictures("RGBA")],
    ids=["tensors", "L", "RGB", "RGBA"],
)
def test_a_torch_dataset_is_the_same_records(dataset: Any) -> None:
    source, _ = memory_source(dataset, None, PICTURES, None)
    found = source.load()
    assert np.array_equal(found.x, WANTED.x) and np.array_equal(found.y, WANTED.y)


def test_items_are_not_looked_at_before_the_vault_loads() -> None:
    dataset = Pictures()
    source, _ = memory_source(dataset, None, PICTURES, None)
    assert dataset.asked == 0
    source.load()
    assert dataset.asked == 60


def test_a_torch_dataset_comes_back_as_one() -> None:
    fitted = Condenser(**SMALL).fit(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), schema=PICTURES)
    assert isinstance(fitted.set_, TensorDataset) and fitted.set_.tensors[0].shape == (6, 1, 4, 4)
    assert np.array_equal(fitted.set_.tensors[0].numpy(), fitted.X_)


def test_labels_beside_items_that_have_none() -> None:
    class Alone(Dataset[Any]):
        def __len__(self) -> int:
            return 60

        def __getitem__(self, place: int) -> Any:
            return torch.from_numpy(X[place]).float()

    source, _ = memory_source(Alone(), Y, PICTURES, None)
    assert np.array_equal(source.load().y, Y)
    with pytest.raises(DataUnreadable, match="no pair of a record and its label"):
        memory_source(Alone(), None, PICTURES, None)[0].load()


def test_what_the_owners_program_says_of_a_record_is_not_repeated() -> None:
    with pytest.raises(DataUnreadable, match="item 7 cannot be had: the Dataset raised ValueError") as caught:
        Condenser(**SMALL).fit(Pictures(broken=7), schema=PICTURES)
    assert "Secret" not in str(caught.value) and no_accounts()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (DataLoader(Pictures()), "give the Dataset that it reads"),
        (type("Stream", (IterableDataset,), {"__iter__": lambda self: iter([])})(), "IterableDataset of torch"),
        (type("Endless", (Dataset,), {"__getitem__": lambda self, place: None})(), "has no length"),
        (TensorDataset(torch.zeros(0, 1, 4, 4)), "holds no record"),
    ],
    ids=["loader", "iterable", "endless", "empty"],
)
def test_what_has_no_items_by_number_is_refused(given: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Condenser(**SMALL).fit(given, schema=PICTURES)
    assert no_accounts()


def test_a_torch_dataset_has_no_columns() -> None:
    with pytest.raises(BadInput, match="give a frame"):
        memory_source(Pictures(), None, TABLE, None)


# --- Hugging Face ---


def picture_bytes(place: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(X[place, 0]).save(buffer, format="PNG")
    return buffer.getvalue()


def hf_pictures(names: tuple[str, ...] = ("a", "b"), image: str = "image") -> Any:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({image: datasets.Image(), "label": datasets.ClassLabel(names=list(names))})
    content = [{"bytes": picture_bytes(place), "path": None} for place in range(60)]
    return datasets.Dataset.from_dict({image: content, "label": [names.index("ab"[y]) for y in Y]}, features=features)


@pytest.mark.parametrize(("names", "image"), [(("a", "b"), "image"), (("b", "a"), "img"), (("a", "b"), "scan")])
def test_pictures_of_hugging_face_are_the_same_records(names: tuple[str, ...], image: str) -> None:
    """Numbers of classes are read by their words, whatever order the library has them in."""
    source, _ = memory_source(hf_pictures(names, image), None, PICTURES, None)
    found = source.load()
    assert np.array_equal(found.x, WANTED.x) and np.array_equal(found.y, WANTED.y)


def test_pictures_that_are_files_and_a_choice_of_rows(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    paths = [tmp_path / f"{place}.png" for place in range(60)]
    for place, path in enumerate(paths):
        path.write_bytes(picture_bytes(place))
    given = datasets.Dataset.from_dict({"image": [str(path) for path in paths], "label": Y.tolist()})
    given = given.cast_column("image", datasets.Image()).select(range(59, 9, -1))
    found = memory_source(given, None, PICTURES, None)[0].load()
    assert np.array_equal(found.x, WANTED.x[59:9:-1]) and np.array_equal(found.y, Y[59:9:-1])


def test_pictures_come_back_as_a_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    fitted = Condenser(**SMALL).fit(hf_pictures(), schema=PICTURES)
    made = fitted.set_
    assert isinstance(made, datasets.Dataset) and made.features["label"].names == ["a", "b"] and len(made) == 6
    assert made[0]["image"].size == (4, 4)
    assert load(fitted.release_).to_hf().features == made.features  # type: ignore[union-attr]


def test_a_table_of_hugging_face_comes_back_with_its_features() -> None:
    datasets = pytest.importorskip("datasets")
    schema = dataclasses.replace(TABLE, records=400)
    given = datasets.Dataset.from_dict(rows(400)).cast_column("ill", datasets.Value("string"))
    given = given.cast_column("ill", datasets.ClassLabel(names=["0", "1"]))
    found = memory_source(given, None, schema, None)[0].load()
    wanted = frame_source(given.with_format("arrow")[:], schema).load()
    assert np.array_equal(found.x, wanted.x) and np.array_equal(found.y, wanted.y)
    made = framed(found.x, found.y, schema, hf_form(given, schema))
    assert isinstance(made, datasets.Dataset) and made.features == given.features and len(made) == 400
    assert made["ill"][:4] == [0, 1, 0, 1] and made["town"][1] == given["town"][1]


def test_streams_and_dictionaries_are_refused() -> None:
    datasets = pytest.importorskip("datasets")
    given = hf_pictures()
    with pytest.raises(BadInput, match="give one of its splits: train"):
        Condenser(**SMALL).fit(datasets.DatasetDict({"train": given}), schema=PICTURES)
    with pytest.raises(BadInput, match="without streaming"):
        Condenser(**SMALL).fit(given.to_iterable_dataset(), schema=PICTURES)
    with pytest.raises(DataUnreadable, match="who a record is about"):
        Condenser(**SMALL).fit(given, schema=dataclasses.replace(PICTURES, unit="patient", units=20))
    assert no_accounts()


def test_without_the_library_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = Condenser(**SMALL).fit(X, Y, schema=PICTURES)
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(BadInput, match=r"limbeck\[huggingface\]"):
        fitted.to_hf()
