"""Keys that several processes make at the same moment: one stays, and all of them hold it."""

from __future__ import annotations

import stat
from pathlib import Path

from children import start

from limbeck.files import read_or_create
from limbeck.vault.ensemble.store import KEYS

PROCESSES, TRIALS = 4, 40
# New keys in every trial. Children wait for each other with a file each, so that all of them begin together.
RACE = """
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from limbeck.release.signature import signing_key
from limbeck.vault.ensemble.store import EnsembleStore
from limbeck.vault.noise import Randomness

end = time.monotonic() + 100

def together(name):
    (path / f"{name}-{sys.argv[2]}").touch()
    while len(list(path.glob(f"{name}-*"))) < int(sys.argv[3]):
        assert time.monotonic() < end, "another process is missing"

for trial in range(int(sys.argv[4])):
    together(f"signing {trial}")
    key = signing_key(path / f"key {trial}").private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    together(f"ensemble {trial}")
    keys = EnsembleStore(path / "ledger.sqlite", f"{trial}", Randomness())._keys()
    print(key.hex() + keys.hex(), flush=True)
"""


def test_all_hold_the_key_that_stays(tmp_path: Path) -> None:
    """The key that signs releases, and the keys of an ensemble."""
    children = [start(RACE, tmp_path, number, PROCESSES, TRIALS) for number in range(PROCESSES)]
    ended = [child.communicate(timeout=150) for child in children]
    assert [errors for _, errors in ended] == [""] * PROCESSES
    for trial, held in enumerate(zip(*(output.split() for output, _ in ended), strict=True)):
        # The ensemble's file ends with a digest of its keys.
        kept = [(tmp_path / f"key {trial}").read_bytes(), (tmp_path / f"teachers/{trial}/key").read_bytes()[:KEYS]]
        assert set(held) == {"".join(keys.hex() for keys in kept)}, f"trial {trial}"
    assert not list(tmp_path.rglob("*.new"))


def test_it_is_for_its_owner_only_and_made_once(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    assert read_or_create(path, lambda: b"first") == read_or_create(path, lambda: b"second") == b"first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["secret"]
