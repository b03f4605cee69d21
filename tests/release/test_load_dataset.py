"""The Hugging Face library opens a release as it stands, without a warning, and agrees with every figure on its card."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frames import SCHEMA as TABLE
from limbeck.release.formats import write_parquet
from limbeck.release.imprint import Imprint
from limbeck.release.reader import read_release
from limbeck.report.card import data_card
from limbeck.report.licences import licence_lines
from releases import copied, digits_release

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits_release(tmp_path_factory.mktemp("loaded"))


def opened(folder: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> Any:
    datasets.disable_progress_bars()
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        found = datasets.load_dataset(str(folder), cache_dir=str(cache))
    assert [record.message for record in caplog.records] == []
    return found["train"]


def test_pictures(made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = opened(copied(made, tmp_path / "release"), tmp_path / "cache", caplog)
    release = read_release(made)
    assert found.features["label"].names == list(release.schema.classes) and found["label"][:] == release.y.tolist()
    assert np.asarray(found[3]["image"]).shape == (8, 8)
    figures = card_figures(made / "README.md")
    # The library counts a few bytes of bitmaps that it makes itself.
    assert figures["num_bytes"] == figures["dataset_size"]
    assert figures["num_bytes"] == pytest.approx(found.info.splits["train"].num_bytes, rel=0.01)
    assert figures["num_examples"] == len(found)
    assert figures["download_size"] == (made / "data" / "train.parquet").stat().st_size


def test_a_table_with_every_kind_of_column(made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    schema = dataclasses.replace(TABLE, records=400)
    x = np.random.default_rng(0).uniform(-1, 1, (40, schema.numbers)).astype(np.float32)
    y = np.arange(40) % 2
    folder = tmp_path / "table"
    (folder / "data").mkdir(parents=True)
    sizes = write_parquet(folder / "data" / "train.parquet", x, y, schema)
    certificate = dataclasses.replace(read_release(made).certificate, public_assumptions=schema)
    card = data_card(certificate, schema, [20, 20], None, sizes, Imprint(licence="House rules 7"))
    (folder / "README.md").write_text(card)
    found = opened(folder, tmp_path / "cache", caplog)
    assert found.column_names == list(schema.order) and len(found) == 40
    assert "license_name" in card and card_figures(folder / "README.md")["num_examples"] == 40


def test_a_licence_in_the_words_of_the_hub() -> None:
    assert licence_lines(Imprint(licence="Apache-2.0")) == ["license: apache-2.0"]


def card_figures(path: Path) -> dict[str, int]:
    lines = [line.strip(" -").split(": ") for line in path.read_text().split("---")[1].splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
