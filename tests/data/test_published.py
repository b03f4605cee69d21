"""Published sets in the layout of their publishers: small files of the same form, made here."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published_files import (
    celeba,
    emnist,
    idx_bytes,
    kmnist,
    medmnist,
    places,
    prepared,
    schema_of,
    svhn,
)
from scipy.io import savemat

from limbeck.data import open_source
from limbeck.data.draft import draft_of
from limbeck.data.published import LAYOUTS, layout_of
from limbeck.data.records import Records
from limbeck.data.surveyed import Wanted
from limbeck.errors import BadInput, DataNotFound, DataUnreadable, LimbeckError, TooLarge

Maker = Callable[[Path], None]


def loaded(folder: Path, schema: Path, split: str = "train") -> Records:
    return open_source(f"{folder}:{split}", schema_path=schema).load()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "set"
    made.mkdir()
    return made


# Reading


def test_svhn(folder: Path, tmp_path: Path) -> None:
    svhn(folder)
    schema = schema_of(tmp_path / "s.toml", folder)
    found = loaded(folder, schema)
    assert found.x.shape == (6, 3, 4, 5) and found.x.dtype == np.uint8
    np.testing.assert_array_equal(found.x[:, 0, 1, 2], np.arange(6))
    assert found.y.tolist() == [1, 0, 3, 9, 0, 2]  # ten stands for the digit 0
    assert len(loaded(folder, schema, "test")) == 4


@pytest.mark.parametrize("partition", [True, False])
def test_celeba_by_gender_and_by_hair(folder: Path, tmp_path: Path, partition: bool) -> None:
    celeba(folder, partition)
    gender = schema_of(tmp_path / "g.toml", folder, "gender")
    assert 'classes = ["female", "male"]' in gender.read_text() and 'label = "gender"' in gender.read_text()
    train = loaded(folder, gender)
    # The validation record is in neither split; the last one is where the partition puts it.
    assert train.y.tolist() == ([1, 0, 0, 1, 1] if partition else [1, 0, 0, 1])
    assert loaded(folder, gender, "test").y.tolist() == ([0] if partition else [0, 1])
    assert abs(int(train.x[0].mean()) - 1) < 3

    # By hair: a face with two colours of hair, or with none, is in no class.
    hair = schema_of(
        tmp_path / "h.toml", folder, "hair", classes='["black", "blond", "brown"]', class_sizes="[9, 9, 9]"
    )
    assert loaded(folder, hair).y.tolist() == ([0, 1, 0] if partition else [0, 1])
    blond = schema_of(tmp_path / "b.toml", folder, "Blond_Hair")
    assert loaded(folder, blond).y.tolist()[:3] == [0, 1, 1]


def test_celeba_unpacked_into_a_folder_of_its_own(folder: Path, tmp_path: Path) -> None:
    celeba(folder)
    (folder / "img_align_celeba").rename(folder / "inner")
    (folder / "img_align_celeba").mkdir()
    (folder / "inner").rename(folder / "img_align_celeba" / "img_align_celeba")
    assert len(loaded(folder, schema_of(tmp_path / "g.toml", folder, "gender"))) == 5


def test_places_of_some_categories(folder: Path, tmp_path: Path) -> None:
    places(folder)
    schema = schema_of(tmp_path / "s.toml", folder)
    assert 'classes = ["airfield", "apartment_building-outdoor", "beach"]' in schema.read_text()
    assert loaded(folder, schema).y.tolist() == [0, 1, 2, 2]
    assert loaded(folder, schema, "test").y.tolist() == [2, 0]
    some = tmp_path / "some.toml"
    some.write_text(
        schema.read_text().replace('["airfield", "apartment_building-outdoor", "beach"]', '["beach", "airfield"]')
    )
    found = loaded(folder, some)
    assert found.y.tolist() == [1, 0, 0] and abs(int(found.x[1].mean()) - 100) < 3


def test_emnist_lies_on_its_side_and_counts_letters_from_one(folder: Path, tmp_path: Path) -> None:
    emnist(folder)
    letters = loaded(folder, schema_of(tmp_path / "l.toml", folder, "letters"))
    assert letters.x.shape == (26, 1, 5, 4) and letters.x[3, 0, 3, 0] == 9 and letters.y.tolist() == list(range(26))
    digits = loaded(folder, schema_of(tmp_path / "d.toml", folder, "digits"), "test")
    assert digits.y.tolist() == list(range(10))


def test_kmnist(folder: Path, tmp_path: Path) -> None:
    kmnist(folder)
    schema = schema_of(tmp_path / "s.toml", folder)
    assert '"tsu"' in schema.read_text() and loaded(folder, schema, "test").x.shape == (10, 1, 4, 5)


def test_kmnist_as_idx_is_read_like_mnist(folder: Path, tmp_path: Path) -> None:
    for split in ("train", "t10k"):
        (folder / f"{split}-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((10, 4, 5))))
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(10)))
    assert layout_of(folder) is None
    assert len(loaded(folder, schema_of(tmp_path / "s.toml", folder), "test")) == 10


@pytest.mark.parametrize("inside", [True, False])
def test_medmnist_as_a_file_and_in_a_folder(folder: Path, tmp_path: Path, inside: bool) -> None:
    medmnist(folder)
    path = folder if inside else folder / "pathmnist.npz"
    schema = schema_of(tmp_path / "s.toml", path)
    assert loaded(path, schema).x.shape == (9, 3, 4, 5) and len(loaded(path, schema, "test")) == 18


def test_an_archive_of_ones_own_may_be_called_like_medmnist(folder: Path, tmp_path: Path) -> None:
    np.savez(folder / "pathmnist.npz", x=np.zeros((4, 4, 5), np.uint8), y=np.array([0, 1, 0, 1]))
    assert layout_of(folder / "pathmnist.npz") is None
    schema = schema_of(tmp_path / "s.toml", folder / "pathmnist.npz")
    assert len(open_source(str(folder / "pathmnist.npz"), schema_path=schema).load()) == 4


@pytest.mark.parametrize(
    ("name", "layout"), [("camelyon", "camelyon17"), ("eurosat", "eurosat"), ("other", "camelyon17")]
)
def test_sets_as_dpimagebench_prepares_them(tmp_path: Path, name: str, layout: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    prepared(folder)
    found = layout_of(folder)
    assert found is not None and found.name == layout
    schema = schema_of(tmp_path / "s.toml", folder)
    assert ('"tumor"' in schema.read_text()) == (name == "camelyon")
    train = loaded(folder, schema)
    assert train.y.tolist() == [0, 1, 0] and train.x[:, 0, 0, 0].tolist() == [0, 10, 20]
    assert loaded(folder, schema, "test").y.tolist() == [0]  # one class of two


@pytest.mark.parametrize(("make", "label"), [(celeba, "gender"), (places, None), (prepared, None)])
def test_pictures_in_pieces_are_those_that_are_held(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], label: str | None
) -> None:
    make(folder)
    schema = schema_of(tmp_path / "s.toml", folder, label)
    whole = loaded(folder, schema)
    monkeypatch.setenv("LIMBECK_MEMORY", "1")
    stream = open_source(str(folder), schema_path=schema).stream()
    assert stream is not None and stream.room == whole.x.nbytes and stream.marks() == stream.marks()
    with stream.opened() as cursor:
        first, rest = cursor.take(2), cursor.take(100)
    assert (first[0], rest[0]) == (2, len(whole) - 2)
    np.testing.assert_array_equal(np.concatenate([first[1].x, rest[1].x]), whole.x)
    np.testing.assert_array_equal(np.concatenate([first[1].y, rest[1].y]), whole.y)
    with stream.opened() as cursor:
        there, chosen = cursor.take(100, np.array([1, 2, 90]))
    assert there == len(whole)
    np.testing.assert_array_equal(chosen.x, whole.x[1:3])


def test_arrays_are_held(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    medmnist(folder)
    schema = schema_of(tmp_path / "s.toml", folder)
    monkeypatch.setattr("limbeck.data.streams.memory.available", lambda: 1000)
    source = open_source(str(folder), schema_path=schema)
    assert source.stream() is None
    with pytest.raises(TooLarge, match="has to be held whole"):
        source.load()


# What is wrong is said in a sentence, before and after a schema is there


def truncated(name: str) -> Maker:
    def make(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return make


def written(name: str, data: str | bytes) -> Maker:
    return lambda folder: (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode()) and None


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def without(name: str) -> Maker:
    return lambda folder: (folder / name).unlink()


def mat(**values: Any) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, values)
    return buffer.getvalue()


def npz(**values: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **values)
    return buffer.getvalue()


X = np.zeros((4, 5, 3, 2), np.uint8)
CASES: list[tuple[Maker, Maker, str]] = [
    (svhn, truncated("train_32x32.mat"), "not a readable MATLAB file"),
    (svhn, written("train_32x32.mat", b"MATLAB 7.3 MAT-file" + b" " * 105 + b"\0\2IM"), "version 7.3"),
    (svhn, written("train_32x32.mat", mat(X=X)), "no variable y"),
    (svhn, written("train_32x32.mat", mat(X=X.astype(float), y=[[1], [2]])), "expected (height"),
    (svhn, written("train_32x32.mat", mat(X=X, y=np.ones((2, 2)))), "one label per record"),
    (svhn, written("train_32x32.mat", mat(X=X, y=np.array([[1.0], [11.0]]))), "outside 0..9"),
    (svhn, without("train_32x32.mat"), "no train split"),
    (celeba, written("list_attr_celeba.txt", ""), "does not name attributes"),
    (celeba, written("list_attr_celeba.txt", "1\nMale Young\n000001.jpg 1\n"), "2 values in line 3"),
    (celeba, written("list_attr_celeba.txt", b"\xff\xfe\x00"), "not a readable text file"),
    (celeba, lambda folder: (folder / "img_align_celeba").rename(folder / "x") and None, "no folder img_align_celeba"),
    (celeba, written("img_align_celeba/000001.jpg", "no picture"), "not a readable image"),
    (celeba, without("img_align_celeba/000001.jpg"), "not a readable image"),
    (places, written("categories_places365.txt", "/a/airfield 0\n/b/beach 5\n"), "no list of categories"),
    (places, written("places365_train_standard.txt", "/a/airfield/1.jpg nine\n"), "in line 1"),
    (places, written("places365_train_standard.txt", "/a/../../secret.jpg 0\n"), "names no picture inside"),
    (places, without("places365_train_standard.txt"), "no list of pictures"),
    (kmnist, written("kmnist-train-imgs.npz", npz(other=np.zeros(3))), "no array arr_0"),
    (kmnist, written("kmnist-train-labels.npz", npz(arr_0=np.zeros((10, 2)))), "labels"),
    (medmnist, truncated("pathmnist.npz"), ""),
    (prepared, truncated("train_32.zip"), "not a readable zip archive"),
    (prepared, written("train_32.zip", zipped({"a.png": b""})), "no dataset.json"),
    (prepared, written("train_32.zip", zipped({"dataset.json": b'{"labels": [["a.png", -1]]}'})), "no list of pictures"),
    (prepared, written("train_32.zip", zipped({"dataset.json": b"[]"})), "not a readable zip archive"),
    (prepared, written("train_32.zip", zipped({"dataset.json": b'{"labels": [["a.png", 1]]}'})), "1 pictures fewer"),
    (prepared, written("train_64.zip", b""), "several"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "spoil", "words"), CASES)
def test_wrong_files_are_said_in_a_sentence(
    folder: Path, tmp_path: Path, make: Maker, spoil: Maker, words: str
) -> None:
    make(folder)
    label = "gender" if make is celeba else None
    schema = schema_of(tmp_path / "s.toml", folder, label)
    spoil(folder)
    for attempt in (lambda: draft_of(folder, Wanted(label=label)), lambda: loaded(folder, schema)):
        with pytest.raises(LimbeckError) as caught:
            attempt()
        assert type(caught.value) in (BadInput, DataNotFound, DataUnreadable) and words in caught.value.message


def test_a_label_that_is_left_open_or_misspelt(folder: Path) -> None:
    celeba(folder)
    with pytest.raises(BadInput, match="--label gender or hair") as caught:
        draft_of(folder, Wanted())
    assert caught.value.next_command == f"limbeck schema draft {folder} --label gender"
    with pytest.raises(BadInput, match="Did you mean 'gender'"):
        draft_of(folder, Wanted(label="gendre"))


def test_classes_that_a_set_does_not_have(folder: Path, tmp_path: Path) -> None:
    places(folder)
    schema = schema_of(tmp_path / "s.toml", folder)
    schema.write_text(schema.read_text().replace('"beach"', '"bench"'))
    with pytest.raises(DataUnreadable, match="no class 'bench'"):
        loaded(folder, schema)


def test_chestmnist_is_no_set_of_classes(folder: Path) -> None:
    values = {"train_images": np.zeros((3, 4, 5), np.uint8), "train_labels": np.zeros((3, 14), np.uint8)}
    np.savez(folder / "chestmnist.npz", **values)
    with pytest.raises(DataUnreadable, match="fourteen answers"):
        draft_of(folder, Wanted())


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_by_its_header(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    svhn(folder)
    schema = schema_of(tmp_path / "s.toml", folder)
    savemat(
        folder / "train_32x32.mat",
        {"X": np.zeros((4, 5, 3, 90_000), np.uint8), "y": np.ones((90_000, 1))},
        do_compression=True,
    )
    monkeypatch.setenv("LIMBECK_MOST_BYTES", "1000000")
    with pytest.raises(TooLarge, match="LIMBECK_MOST_BYTES"):
        draft_of(folder, Wanted())
    with pytest.raises(DataUnreadable, match="far more than"):
        loaded(folder, schema)


def test_a_person_is_not_a_unit_here(folder: Path, tmp_path: Path) -> None:
    celeba(folder)
    with pytest.raises(BadInput, match="leave --unit out"):
        draft_of(folder, Wanted(label="gender", unit="person"))


# The list, and a run from one end to the other


def test_the_list_says_where_to_get_each(cli: Any) -> None:
    listed = cli("data", "list", "--json").json["layouts"]
    assert [each["name"] for each in listed] == [layout.name for layout in LAYOUTS]
    assert all(each["get"] and each["files"] and each["title"] for each in listed)
    said = cli("data", "list").out
    assert "mmlab.ie.cuhk.edu.hk" in said and "train_32x32.mat" in said and "limbeck schema draft" in said


@pytest.mark.parametrize(("make", "label", "count"), [(medmnist, None, 18), (celeba, "gender", 1)])
def test_a_run_on_a_published_set_is_the_owners(
    cli: Any, folder: Path, tmp_path: Path, make: Callable[[Path], None], label: str | None, count: int
) -> None:
    """The release remembers by which label its classes are, so test records need no schema of their own."""
    make(folder)
    schema = schema_of(tmp_path / "s.toml", folder, label)
    words = ("--schema", schema, "--method", "ldpdc", "--set", "per_class=1", "--set", "sigma=2", "--set", "L=1")
    made = cli("condense", folder, *words, "--delta", 1e-2, "--out", tmp_path / "out", "--json")
    assert made.code == 0, made.err
    scored = cli(
        "evaluate", tmp_path / "out", "--test", f"{folder}:test", "--models", "linear", "--repeats", 1, "--json"
    )
    assert scored.code == 0, scored.err
    assert scored.json["test_records"] == count and scored.json["edition"] == "owner"
