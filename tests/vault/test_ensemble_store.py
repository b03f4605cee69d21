"""Checkpoints of teachers: sealed, private to this user, exact, and gone when the grant ends."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from limbeck.errors import LedgerFault, RunConflict
from limbeck.vault.ensemble.store import FRAME, EnsembleStore
from limbeck.vault.ledger import Ledger
from limbeck.vault.noise import Randomness
from limbeck.vault.private_folder import KEY, folder_of

IDENTITY = {"teacher": {"kind": "discriminator", "shape": (1, 8, 8)}}


def tensors(seed: int = 0) -> dict[str, Any]:
    random = torch.Generator().manual_seed(seed)
    return {
        "weight/a": torch.randn((3, 5), generator=random),
        "moves": torch.arange(3),
        "warmed": torch.tensor([True, False, True]),
        "empty": torch.zeros(0, 4),
    }


@pytest.fixture
def store(tmp_path: Path) -> EnsembleStore:
    return EnsembleStore(tmp_path / "ledger.sqlite", "grant-1", Randomness())


def test_what_was_saved_comes_back_bit_for_bit(store: EnsembleStore) -> None:
    store.save("votes", 7, IDENTITY, tensors())
    store.save("votes", 8, IDENTITY, tensors(1))
    into = tensors(2)
    assert store.load("votes", IDENTITY, into) == 8
    assert all(torch.equal(into[name], value) for name, value in tensors(1).items())
    assert store.load("other", IDENTITY, into) is None


def test_tensors_larger_than_a_frame(store: EnsembleStore) -> None:
    large = {"a": torch.arange(FRAME // 8 * 2 + 3)}
    store.save("votes", 1, IDENTITY, large)
    into = {"a": torch.zeros_like(large["a"])}
    assert store.load("votes", IDENTITY, into) == 1 and torch.equal(into["a"], large["a"])


def test_only_this_user_can_read_and_nothing_is_in_the_clear(store: EnsembleStore) -> None:
    store.partition_key("votes")
    store.save("votes", 7, IDENTITY, {"a": torch.full((100,), 1.5)})
    assert {path.name for path in store.folder.iterdir()} == {KEY, b"votes".hex() + ".sealed"}
    for path in store.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert np.float32(1.5).tobytes() * 3 not in path.read_bytes() and b"discriminator" not in path.read_bytes()
    for folder in (store.folder, store.folder.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_key_that_shares_out_records_is_drawn_once_and_kept(store: EnsembleStore) -> None:
    again = EnsembleStore(store.ledger, store.grant, Randomness())
    assert store.partition_key("votes") == again.partition_key("votes") != store.partition_key("more votes")
    assert EnsembleStore(store.ledger, "grant-2", Randomness()).partition_key("votes") != store.partition_key("votes")


@pytest.mark.parametrize("harm", ["bit", "short", "key", "swapped"])
def test_damage_is_found(store: EnsembleStore, harm: str) -> None:
    store.save("votes", 7, IDENTITY, tensors())
    (path,) = store.folder.glob("*.sealed")
    content = bytearray(path.read_bytes())
    if harm == "bit":
        content[-1] ^= 1
        path.write_bytes(content)
    elif harm == "short":
        path.write_bytes(content[:-5])
    elif harm == "key":
        (store.folder / KEY).write_bytes(b"x" * 64)
    else:  # the checkpoint of another query, under the same key
        store.save("other", 7, IDENTITY, tensors())
        next(p for p in store.folder.glob("*.sealed") if p != path).replace(path)
    with pytest.raises(RunConflict, match="damaged"):
        store.load("votes", IDENTITY, tensors())


def test_another_configuration_is_refused(store: EnsembleStore) -> None:
    store.save("votes", 7, IDENTITY, tensors())
    with pytest.raises(RunConflict, match="another configuration"):
        store.load("votes", {"teacher": "other"}, tensors())
    with pytest.raises(RunConflict, match="another configuration"):
        store.load("votes", IDENTITY, {**tensors(), "moves": torch.arange(4)})


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "teachers").write_text("in the way")
    with pytest.raises(LedgerFault, match="cannot be written"):
        EnsembleStore(tmp_path / "ledger.sqlite", "g", Randomness()).partition_key("votes")


@pytest.mark.parametrize("end", ["finish", "void"])
def test_the_folder_goes_with_the_grant(tmp_path: Path, end: str) -> None:
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        grants = [
            ledger.book(name, plan="{}", method="m", epsilon=1.0, delta=1e-5, counts={"votes": 1}) for name in "ab"
        ]
        for grant in grants:
            EnsembleStore(ledger.path, grant, Randomness()).save("votes", 1, IDENTITY, tensors())
        getattr(ledger, end)(grants[0])
        assert not folder_of(ledger.path, grants[0]).exists() and folder_of(ledger.path, grants[1]).exists()
        getattr(ledger, end)(grants[1])
        assert not (tmp_path / "teachers").exists()


def test_teachers_of_a_booking_that_was_given_back_do_not_stay(tmp_path: Path) -> None:
    """The owner gives a booking back while its run is still at work, and saves its teachers once more."""
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        grant = ledger.book("a", plan="{}", method="m", epsilon=1.0, delta=1e-5, counts={"votes": 1})
        store = EnsembleStore(ledger.path, grant, Randomness())
        store.save("votes", 1, IDENTITY, tensors())
        ledger.give_back("a", grant)
        assert not folder_of(ledger.path, grant).exists()
        store.save("votes", 2, IDENTITY, tensors())
        ledger.void(grant)
        assert not folder_of(ledger.path, grant).exists()
