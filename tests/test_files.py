"""Files: keys that several processes make at the same moment: one stays, and all of them hold it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from children import start
from limbeck.files import alone_in, read_or_create
from limbeck.vault.ensemble.store import KEYS

PROCESSES, TRIALS = 4, 40
# New keys in every trial. One process imports and forks the others, which takes a fraction of the time. They wait for each other
# with a file each, so that all of them begin together.
RACE = """
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from limbeck.release.signature import signing_key
from limbeck.vault.ensemble.store import EnsembleStore
from limbeck.vault.noise import Randomness

processes, trials = int(sys.argv[2]), int(sys.argv[3])
end = time.monotonic() + 100

def together(name, number):
    (path / f"{name}-{number}").touch()
    while not all((path / f"{name}-{other}").exists() for other in range(processes)):
        assert time.monotonic() < end, "another process is missing"
        time.sleep(1e-4)

def hold_keys(number):
    for trial in range(trials):
        together(f"signing {trial}", number)
        key = signing_key(path / f"key {trial}").private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        together(f"ensemble {trial}", number)
        keys = EnsembleStore(path / "ledger.sqlite", f"{trial}", Randomness())._keys()
        os.write(1, f"{trial} {key.hex()}{keys.hex()}\\n".encode())  # one write, so that lines do not mix

children = []
for number in range(processes):
    children.append(os.fork())
    if children[-1] == 0:
        hold_keys(number)
        sys.exit()
sys.exit(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_all_hold_the_key_that_stays(tmp_path: Path) -> None:
    """The key that signs releases, and the keys of an ensemble."""
    with start(RACE, tmp_path, PROCESSES, TRIALS) as child:
        output, errors = child.communicate(timeout=150)
    assert (child.returncode, errors) == (0, "")
    held: dict[int, list[str]] = {trial: [] for trial in range(TRIALS)}
    for line in output.splitlines():
        trial, keys = line.split()
        held[int(trial)].append(keys)
    for trial, found in held.items():
        assert len(found) == PROCESSES
        # The ensemble's file ends with a digest of its keys.
        kept = [(tmp_path / f"key {trial}").read_bytes(), (tmp_path / f"teachers/{trial}/key").read_bytes()[:KEYS]]
        assert set(found) == {"".join(keys.hex() for keys in kept)}, f"trial {trial}"
    assert not list(tmp_path.rglob("*.new"))


def test_it_is_for_its_owner_only_and_made_once(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    assert read_or_create(path, lambda: b"first") == read_or_create(path, lambda: b"second") == b"first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["secret"]


def test_one_process_at_a_time_is_alone_in_a_folder(tmp_path: Path) -> None:
    holder = (
        "from limbeck.files import alone_in\nwith alone_in(path, 5.0):\n print('in', flush=True)\n sys.stdin.readline()"
    )
    with start(holder, tmp_path) as child:
        assert child.stdout is not None and child.stdout.readline() == "in\n"
        with pytest.raises(TimeoutError), alone_in(tmp_path, 0.05):
            pass
        child.kill()  # whoever dies holds nothing
        child.wait()
        with alone_in(tmp_path, 5.0):
            assert list(tmp_path.iterdir()) == []
