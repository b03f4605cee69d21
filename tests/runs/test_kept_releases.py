"""A fit keeps its release: where nobody says where, in a folder of its own that nothing else was in."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck import Condenser, Ledger, Schema, verify
from limbeck.errors import LimbeckError, OutputFault, RunConflict
from limbeck.runs.kept import kept_folder, releases_folder

SCHEMA = Schema(name="own / set", shape=(4,), classes=("a", "b"), records=200, low=0, high=1, augmentation=())
X = np.random.default_rng(0).uniform(0, 1, (200, 4)).astype(np.float32)
Y = np.arange(200) % 2
SMALL: dict[str, Any] = {"method": "ldpdc", "epsilon": None, "per_class": 3, "settings": {"L": 10, "sigma": 2.0}}
PLAN = Condenser(**SMALL).plan(SCHEMA)


def test_every_fit_has_a_folder_of_its_own(tmp_path: Path) -> None:
    first = Condenser(**SMALL, ledger=tmp_path / "a.sqlite").fit(X, Y, schema=SCHEMA)
    second = Condenser(**SMALL, ledger=tmp_path / "b.sqlite").fit(X, Y, schema=SCHEMA)
    assert first.release_.name == "own-set-1" and second.release_.name == "own-set-2"
    assert verify(first.release_) == first.certificate_ and verify(second.release_) == second.certificate_


def test_without_a_variable_it_is_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIMBECK_RELEASES")
    found = Condenser(**SMALL).fit(X, Y, schema=SCHEMA).release_
    assert found == tmp_path / "limbeck-releases" / "own-set-1" and found.is_absolute()


def test_a_fit_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMBECK_RELEASES", str(tmp_path / "new"))
    with pytest.raises(LimbeckError):
        Condenser(**SMALL).fit(X[:, :3], Y, schema=SCHEMA)
    assert list(tmp_path.iterdir()) == []


def test_a_stopped_run_of_the_same_plan_is_not_paid_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, stored = Ledger.store, [0]

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 3:
            raise KeyboardInterrupt
        return store(*arguments, **named)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, "store", interrupted)
        Condenser(**SMALL).fit(X, Y, schema=SCHEMA)
    with pytest.raises(RunConflict, match="pays nothing twice") as caught:
        Condenser(**SMALL).fit(X, Y, schema=SCHEMA)
    folder = releases_folder() / "own-set-1"
    assert str(folder) in caught.value.message
    resumed = Condenser(**SMALL).fit(X, Y, schema=SCHEMA, out=folder)
    assert resumed.release_ == folder and verify(folder)
    with Ledger.open() as ledger:
        assert [len(account.bookings) for account in ledger.accounts()] == [1]


def test_many_at_once_never_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMBECK_RELEASES", str(tmp_path))
    found: list[Path] = []
    together = threading.Barrier(8)

    def take() -> None:
        together.wait()
        with kept_folder("own", PLAN) as folder:
            found.append(folder)
            (folder / "file").write_text("x")

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 8


def test_a_place_that_cannot_be_written_to_is_said_before_anything_is_booked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIMBECK_RELEASES", str(tmp_path / "file"))
    with pytest.raises(OutputFault, match="out="):
        Condenser(**SMALL).fit(X, Y, schema=SCHEMA)
    with Ledger.open() as ledger:
        assert ledger.accounts() == []
