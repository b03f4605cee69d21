"""A range that cannot fit is noticed by the owner's side, and by nobody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck.data.ranges import range_warning, unfit
from limbeck.data.records import Records
from limbeck.data.source import open_source
from limbeck.errors import BadInput
from limbeck.privacy.schema import Column, Schema

WIDE = Schema(name="scans", shape=(1, 4, 4), classes=("a", "b"), records=40, low=0, high=255)


def records(top: float) -> Records:
    x = np.random.default_rng(0).uniform(0, top, (40, 1, 4, 4)).astype(np.float32)
    return Records(x, np.arange(40) % 2)


def test_arrays_in_the_unit_range_under_eight_bits_are_noticed() -> None:
    assert "lowest hundredth" in (unfit(records(1.0), WIDE) or "")
    assert unfit(records(3.0), WIDE) is None
    one = records(1.0)
    one.x[7, 0, 0, 0] = 100  # a single value is enough
    assert unfit(one, WIDE) is None


def test_the_columns_of_a_table_are_named() -> None:
    columns = (Column(name="dose", low=0, high=1e6), Column(name="age", low=0, high=100))
    schema = Schema(name="t", shape=(2,), classes=("a", "b"), records=30, columns=columns)
    x = np.stack([np.full(30, -0.999), np.linspace(-1, 1, 30)], axis=1).astype(np.float32)
    said = unfit(Records(x, np.arange(30) % 2), schema)
    assert said is not None and said.startswith("All values of dose lie")


def test_a_schema_in_python_has_no_default_range_and_files_keep_theirs() -> None:
    given: dict[str, Any] = {"name": "scans", "shape": (1, 4, 4), "classes": ("a", "b"), "records": 40}
    with pytest.raises(BadInput, match=r"needs low= and high=.*low=0, high=255"):
        Schema(**given)
    with pytest.raises(BadInput, match=r"needs high=:"):
        Schema(**given, low=0)
    with pytest.raises(BadInput, match="low < high"):
        Schema(**given, low=float("nan"), high=1.0)
    old = Schema.from_dict(given)
    assert (old.low, old.high) == (0.0, 255.0)
    assert Schema.from_dict(old.to_dict()) == old


@pytest.fixture
def dark(tmp_path: Path) -> Path:
    """Arrays in [0, 1] whose schema says 0 to 255."""
    path = tmp_path / "dark.npz"
    np.savez(path, x=records(1.0).x, y=np.arange(40) % 2)
    (tmp_path / "dark.npz.limbeck.toml").write_text(
        'name = "dark"\nshape = [1, 4, 4]\nclasses = ["0", "1"]\nrecords = 40\naugmentation = []\n'
    )
    return path


def test_a_named_set_is_not_opened_and_an_unreadable_one_says_nothing(tmp_path: Path) -> None:
    assert range_warning(open_source("digits")) is None
    path = tmp_path / "bad.npz"
    path.write_bytes(b"no archive")
    (tmp_path / "bad.npz.limbeck.toml").write_text(
        'name = "bad"\nshape = [1, 4, 4]\nclasses = ["0", "1"]\nrecords = 40\n'
    )
    assert range_warning(open_source(str(path))) is None


def test_condense_says_it_to_the_owner_alone_and_goes_on(cli: Callable[..., Any], dark: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    found = cli("condense", dark, "--method", "ldpdc", "--set", "per_class=1", "--epsilon", 1, "--out", out)
    assert found.code == 0
    assert "lowest hundredth" in found.err
    for file in out.rglob("*"):
        assert not file.is_file() or b"hundredth" not in file.read_bytes()
