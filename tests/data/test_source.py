from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from limbeck.data import open_source, source
from limbeck.data.benchmark import Benchmark
from limbeck.data.named import NAMED
from limbeck.data.parts import part_of
from limbeck.errors import BadInput, DataNotFound, DataUnreadable


def test_a_source_reads_no_record_before_load(tmp_path: Path, gray_file: Path) -> None:
    path = tmp_path / "broken.npz"
    path.write_bytes(b"not an archive")
    opened = open_source(str(path), schema_path=gray_file)  # would raise if it looked inside
    assert opened.schema.name == "tiny"


def test_a_path_without_schema_says_how_to_draft_one(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"")
    with pytest.raises(BadInput, match="has no schema") as caught:
        open_source(str(path))
    assert caught.value.next_command == f"limbeck schema draft {path} --out {path}.limbeck.toml"


def test_a_table_without_schema_asks_for_the_label(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(BadInput) as caught:
        open_source(str(path))
    assert "--label COLUMN" in (caught.value.next_command or "")


def test_schema_beside_a_file_and_inside_a_folder(tmp_path: Path, gray_file: Path, class_folder: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((2, 1, 4, 5), np.uint8), y=np.array([0, 1]))
    shutil.copy(gray_file, f"{path}.limbeck.toml")
    shutil.copy(gray_file, class_folder / "limbeck.toml")
    assert len(open_source(str(path)).load()) == 2
    assert len(open_source(str(class_folder)).load()) == 5


def test_unknown_specs(tmp_path: Path) -> None:
    with pytest.raises(DataNotFound, match="neither a named set") as caught:
        open_source("nosuchset")
    assert caught.value.next_command == "limbeck data list"
    odd = tmp_path / "a.doc"
    odd.write_text("")
    with pytest.raises(BadInput, match="no known kind"):
        open_source(str(odd))
    with pytest.raises(BadInput, match="split must be"):
        open_source("digits", split="half")
    with pytest.raises(BadInput, match="built-in schema"):
        open_source("digits", schema_path=odd)


def test_a_split_cannot_be_chosen_where_there_is_none(tmp_path: Path, gray_file: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"")
    with pytest.raises(BadInput, match="has no train and test split"):
        open_source(f"{path}:test", schema_path=gray_file)
    assert open_source(str(path), split="test", schema_path=gray_file).where == str(path)


def test_folder_with_train_and_test_archives(tmp_path: Path, gray_file: Path) -> None:
    for split, count in (("train", 3), ("test", 2)):
        np.savez(tmp_path / f"{split}.npz", x=np.zeros((count, 4, 5), np.uint8), y=np.zeros(count, np.int64))
    assert len(open_source(str(tmp_path), schema_path=gray_file).load()) == 3
    assert len(open_source(f"{tmp_path}:test", schema_path=gray_file).load()) == 2
    (tmp_path / "test.npz").unlink()
    with pytest.raises(DataNotFound, match=r"has no test\.npz"):
        open_source(f"{tmp_path}:test", schema_path=gray_file)


def test_label_option_replaces_the_schema_s_label(tmp_path: Path, gray_file: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("")
    assert open_source(str(path), schema_path=gray_file, label="kind").schema.label == "kind"


@pytest.mark.parametrize("split", ["train", "test"])
def test_digits(split: str) -> None:
    opened = open_source(f"digits:{split}")
    records = opened.load()
    assert records.x.shape == (opened.schema.records, *opened.schema.shape)
    assert records.x.dtype == np.uint8 and records.x.max() == opened.schema.high
    assert tuple(np.bincount(records.y)) == opened.schema.class_sizes


def test_the_named_schemas_agree_with_themselves() -> None:
    for entry in NAMED.values():
        for split in ("train", "test"):
            schema = entry.schema_of(split)
            assert schema.class_sizes is not None and sum(schema.class_sizes) == schema.records
        entry.schema.require_confirmed()
    assert "flip" not in NAMED["mnist"].schema.augmentation and "flip" in NAMED["cifar10"].schema.augmentation
    assert NAMED["adult"].schema.name == NAMED["adult-ordinal"].schema.name == "adult"
    assert NAMED["adult-ordinal"].schema.shape == (14,)


def test_public_names() -> None:
    assert source.__all__ == ["DataSource", "Records", "layout", "open_source"]


def test_a_failing_disk_is_an_error_of_the_data(
    tmp_path: Path, gray_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pets").mkdir()
    opened = open_source(str(tmp_path / "pets"), schema_path=gray_file)

    def broken(path: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "iterdir", broken)
    with pytest.raises(DataUnreadable, match="Input/output error"):
        opened.load()
    with pytest.raises(DataUnreadable, match="Input/output error"):
        open_source(str(tmp_path / "pets"), schema_path=gray_file)


def test_only_what_was_opened_by_name_is_a_benchmark(tmp_path: Path, gray_file: Path) -> None:
    assert open_source("digits").benchmark == Benchmark("digits", "train")
    assert open_source("digits:test").benchmark == Benchmark("digits", "test")
    proofs = {Benchmark(name, split).sha256 for name in NAMED for split in ("train", "test")}
    assert len(proofs) == 2 * len(
        {entry.storage for entry in NAMED.values()}
    )  # both forms of Adult are the same records
    np.savez(tmp_path / "mnist.npz", x=np.zeros((2, 1, 8, 8), np.uint8), y=np.arange(2))
    assert open_source(str(tmp_path / "mnist.npz"), schema_path=gray_file).benchmark is None
    assert part_of(open_source("digits"), "half:0,1").benchmark is None


def test_a_path_that_reads_like_a_name_is_shown_as_a_path(
    tmp_path: Path, gray_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mnist").mkdir()
    monkeypatch.chdir(tmp_path)
    opened = open_source("./mnist", schema_path=gray_file)
    assert (opened.where, opened.benchmark) == ("./mnist", None)
