"""Joined releases: one set of several owners, whose certificate holds all of theirs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck.errors import BadInput, NotAuthentic, NotReleasable
from limbeck.files import as_json
from limbeck.release.certificate import NAME
from limbeck.release.generator import load_generator
from limbeck.release.joining import join
from limbeck.release.reader import read_release
from limbeck.release.signature import signing_key
from limbeck.release.verification import verify
from limbeck.vault.ledger import Ledger
from releases import digits_release
from stated import signed


def no_pages(*_: object) -> dict[str, bytes]:
    return {}


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two owners: two ledgers with a key each."""
    root = tmp_path_factory.mktemp("owners")
    return digits_release(root / "a"), digits_release(root / "b")


@pytest.fixture
def union(owners: tuple[Path, Path], tmp_path: Path) -> Path:
    join(owners, "both", tmp_path / "union", tmp_path / "key", no_pages)
    return tmp_path / "union"


def test_a_union_verifies_and_costs_what_the_dearest_part_costs(owners: tuple[Path, Path], union: Path) -> None:
    certificate, parts = verify(union), [verify(owner) for owner in owners]
    assert certificate.joined is not None and len(certificate.joined.parts) == 2
    assert certificate.epsilon == max(part.epsilon for part in parts) and certificate.records == 40
    assert certificate.public_assumptions.records == sum(part.public_assumptions.records for part in parts)
    made, own = read_release(union), [read_release(owner) for owner in owners]
    np.testing.assert_array_equal(made.x, np.concatenate([each.x for each in own]))


def test_a_union_has_no_generator_and_says_where_to_look(union: Path) -> None:
    with pytest.raises(BadInput, match="joined from others, each of which may have one"):
        load_generator(union)


def test_one_owners_data_set_is_not_joined_with_itself(owners: tuple[Path, Path], tmp_path: Path) -> None:
    with Ledger.open(owners[0].parent / "ledger.sqlite") as ledger:
        ledger.set_budget("digits", 10.0, 1e-3)
    again = digits_release(owners[0].parent, "again")
    for pair in ((owners[0], owners[0]), (owners[0], again)):
        with pytest.raises(BadInput, match="adds up"):
            join(pair, "both", tmp_path / "union", tmp_path / "key", no_pages)
        assert not (tmp_path / "union").exists()


def test_what_may_not_be_shared_is_not_joined(owners: tuple[Path, Path], tmp_path: Path) -> None:
    insecure = digits_release(tmp_path / "c", seed=3)
    with pytest.raises(NotReleasable):
        join((owners[0], insecure), "both", tmp_path / "union", tmp_path / "key", no_pages)
    with pytest.raises(BadInput, match="two releases"):
        join(owners[:1], "both", tmp_path / "union", tmp_path / "key", no_pages)
    broken = tmp_path / "broken"
    shutil.copytree(owners[1], broken)
    (broken / "set.npz").write_bytes(b"")
    with pytest.raises(NotAuthentic):
        join((owners[0], broken), "both", tmp_path / "union", tmp_path / "key", no_pages)


def test_a_union_is_not_joined_again(owners: tuple[Path, Path], union: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="joined itself"):
        join((owners[0], union), "all", tmp_path / "all", tmp_path / "key", no_pages)


def _epsilon(values: dict[str, Any]) -> None:
    values["joined"][0]["epsilon"] = 0.1


def _twice(values: dict[str, Any]) -> None:
    values["joined"][1] = values["joined"][0]


def _one(values: dict[str, Any]) -> None:
    del values["joined"][1]


def _other_set(values: dict[str, Any]) -> None:
    values["files"]["parts/1/set.npz"] = values["files"]["set.npz"]


def _records(values: dict[str, Any]) -> None:
    values["records"] = 41


@pytest.mark.parametrize("change", [_epsilon, _twice, _one, _other_set, _records])
def test_a_union_that_was_changed_is_found_out(change: Any, union: Path, tmp_path: Path) -> None:
    values = json.loads((union / NAME).read_bytes())
    values.pop("signature")
    change(values)
    (union / NAME).write_bytes(as_json(signed(values, signing_key(tmp_path / "key"))))
    with pytest.raises(NotAuthentic):
        verify(union)


def test_a_set_that_no_owner_released_is_found_out(union: Path, tmp_path: Path) -> None:
    """File and hash were changed together, by whoever holds the key of the union."""
    shutil.copyfile(union / "set.npz", union / "parts" / "1" / "set.npz")
    values = json.loads((union / NAME).read_bytes())
    values.pop("signature")
    _other_set(values)
    (union / NAME).write_bytes(as_json(signed(values, signing_key(tmp_path / "key"))))
    with pytest.raises(NotAuthentic, match="part 1 is not the one on its own certificate"):
        verify(union)
