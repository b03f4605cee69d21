"""What seals the checkpoints of teachers: keys, nonces and what every frame is bound to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from limbeck.errors import RunConflict
from limbeck.vault.ensemble.store import SEALING_KEY, EnsembleStore
from limbeck.vault.noise import Randomness
from limbeck.vault.private_folder import KEY

IDENTITY = {"teacher": {"kind": "discriminator"}}


def tensors(seed: int = 0) -> dict[str, Tensor]:
    """Two of one size, so that one can be put in place of the other."""
    random = torch.Generator().manual_seed(seed)
    return {name: torch.randn((3, 5), generator=random) for name in "ab"}


@pytest.fixture
def store(tmp_path: Path) -> EnsembleStore:
    return EnsembleStore(tmp_path / "ledger.sqlite", "grant-1", Randomness())


def path_of(store: EnsembleStore, label: str = "votes") -> Path:
    return store.folder / f"{label.encode().hex()}.sealed"


def frames(path: Path) -> Iterator[bytes]:
    """Nonce, length and sealed bytes of each frame; the file begins with 16 bytes of its own."""
    content, place = path.read_bytes(), 16
    while place < len(content):
        end = place + 20 + int.from_bytes(content[place + 12 : place + 20], "big")
        yield content[place:end]
        place = end


def test_no_nonce_is_used_twice(store: EnsembleStore) -> None:
    """Two frames under one key and nonce give each other away. 40 frames of ten files."""
    nonces = set()
    for clock in range(10):
        store.save("votes", clock, IDENTITY, tensors())
        nonces |= {frame[:12] for frame in frames(path_of(store))}
    assert len(nonces) == 30


def test_frames_cannot_change_places(store: EnsembleStore) -> None:
    store.save("votes", 7, IDENTITY, tensors())
    path = path_of(store)
    header, first, second = frames(path)
    path.write_bytes(path.read_bytes()[:16] + header + second + first)
    with pytest.raises(RunConflict, match="damaged"):
        store.load("votes", IDENTITY, tensors())


def test_frames_of_an_older_checkpoint_are_refused(store: EnsembleStore) -> None:
    store.save("votes", 7, IDENTITY, tensors())
    old = list(frames(path_of(store)))
    store.save("votes", 8, IDENTITY, tensors(1))
    new, start = list(frames(path_of(store))), path_of(store).read_bytes()[:16]
    for mixed in ([new[0], old[1], new[2]], [old[0], *new[1:]]):
        path_of(store).write_bytes(start + b"".join(mixed))
        with pytest.raises(RunConflict, match="damaged"):
            store.load("votes", IDENTITY, tensors())


@pytest.mark.parametrize("other", ["query", "grant"])
def test_a_checkpoint_of_another_query_or_run_is_refused_under_the_same_key(store: EnsembleStore, other: str) -> None:
    store.save("votes", 7, IDENTITY, tensors())
    if other == "query":
        taker, label = store, "more votes"
    else:
        taker, label = replace(store, grant="grant-2"), "votes"
        taker.folder.mkdir()
        shutil.copy(store.folder / KEY, taker.folder / KEY)
    shutil.copy(path_of(store), path_of(taker, label))
    with pytest.raises(RunConflict, match="damaged"):
        taker.load(label, IDENTITY, tensors())


def test_a_seed_for_tests_opens_no_seal(tmp_path: Path) -> None:
    """The key that shares records out follows from an insecure seed; the one that seals never does."""
    stores = [EnsembleStore(tmp_path / name / "ledger.sqlite", "g", Randomness(3)) for name in ("one", "two")]
    assert len({store.partition_key("votes") for store in stores}) == 1
    keys = [(store.folder / KEY).read_bytes() for store in stores]
    sealing, sharing = ([key[start : start + 32] for key in keys] for start in (0, SEALING_KEY))
    assert sharing[0] == sharing[1] and sealing[0] != sealing[1]
    assert sealing[0] != sharing[0]


@pytest.mark.parametrize("length", [0, 31, 32, 63, 65, 96])
def test_a_key_of_another_length_is_refused(store: EnsembleStore, length: int) -> None:
    """Half a key would share the records out by a key that all know."""
    store.partition_key("votes")
    (store.folder / KEY).write_bytes(b"k" * length)
    with pytest.raises(RunConflict, match="damaged"):
        store.partition_key("votes")
