"""A folder of runs in every state that a folder can be in."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from limbeck.serve import runs as module
from limbeck.serve.inside import NotInside, plain_stamps, read_inside
from limbeck.serve.runs import Catalog, is_locked
from releases import copied


def unfinished(root: Path, name: str, **progress: Any) -> Path:
    state = root / name / ".run"
    state.mkdir(parents=True)
    plan = {"dataset": "digits", "method": "ndpdc", "price": {"epsilon": 1.0, "delta": 1e-5}}
    (state / "run.json").write_text(json.dumps({"plan": plan}))
    (state / "lock").write_text("")
    if progress:
        (state / "progress.json").write_text(json.dumps(progress))
    return root / name


def states(root: Path) -> dict[str, str]:
    return {info.name: info.state for info in Catalog(root).runs()}


def test_finished_running_stopped_and_damaged_runs(runs: Path) -> None:
    now = time.time()
    unfinished(runs, "at work", first=0, step=25, total=100, started=now - 50, updated=now, label="ndpdc")
    unfinished(runs, "old", first=0, step=25, total=100, started=now - 5000, updated=now - 4000, label="ndpdc")
    unfinished(runs, "no note")
    (runs / "corrupt").mkdir()
    (runs / "corrupt" / "certificate.json").write_text('{"format": 1, "epsilon": 0.1')
    forged = copied(runs / "first", runs / "forged")
    text = (forged / "certificate.json").read_text()
    (forged / "certificate.json").write_text(text.replace('"records": 20', '"records": 21'))
    (runs / "empty").mkdir()
    (runs / "notes.txt").write_text("")
    found = {info.name: info for info in Catalog(runs).runs()}
    assert {name: info.state for name, info in found.items()} == {
        "first": "finished", "second one": "finished", "at work": "running", "old": "stopped", "no note": "stopped",
        "corrupt": "damaged", "forged": "damaged",
    }  # fmt: skip
    work = found["at work"]
    assert (work.dataset, work.method, work.epsilon) == ("digits", "ndpdc", 1.0)
    assert (
        work.progress is not None
        and work.progress.step == 25
        and work.progress.seconds_left == pytest.approx(150, 0.01)
    )
    assert found["old"].resume == "limbeck resume old" and found["old"].progress is not None
    assert "signed" in found["forged"].problem and "JSON" in found["corrupt"].problem
    assert next(iter(found)) == "at work"


def test_the_time_left_of_a_resumed_run_counts_from_where_it_went_on(tmp_path: Path) -> None:
    now = time.time()
    unfinished(tmp_path, "run", first=90, step=95, total=100, started=now - 10, updated=now)
    info = Catalog(tmp_path).run("run")
    assert info is not None and info.progress is not None and info.progress.seconds_left == pytest.approx(10, 0.01)


@pytest.mark.parametrize(
    "note",
    ["", "{", "[]", '{"step": 5}', '{"step": "5", "total": 9}', '{"step": 9, "total": 5}', '{"step": NaN, "total": 1}'],
)
def test_half_written_and_odd_notes_are_no_progress(tmp_path: Path, note: str) -> None:
    unfinished(tmp_path, "run")
    (tmp_path / "run" / ".run" / "progress.json").write_text(note)
    info = Catalog(tmp_path).run("run")
    assert info is not None and info.state == "stopped" and info.progress is None
    (tmp_path / "run" / ".run" / "run.json").write_text(note)
    info = Catalog(tmp_path).run("run")
    assert info is not None and info.problem


def test_a_held_lock_means_running_and_looking_does_not_take_it(tmp_path: Path) -> None:
    lock = unfinished(tmp_path, "run") / ".run" / "lock"
    assert not is_locked(lock) and states(tmp_path) == {"run": "stopped"}
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert is_locked(lock) and states(tmp_path) == {"run": "running"}
    assert not is_locked(lock)


def test_links_lead_nowhere(runs: Path, tmp_path: Path, made: Path) -> None:
    outside = copied(made, tmp_path / "outside")
    (runs / "link").symlink_to(outside)
    (runs / "inner").mkdir()
    (runs / "inner" / "certificate.json").symlink_to(outside / "certificate.json")
    unfinished(tmp_path, "elsewhere")
    (runs / "state").mkdir()
    (runs / "state" / ".run").symlink_to(tmp_path / "elsewhere" / ".run")
    assert set(states(runs)) == {"first", "second one"}
    assert (
        Catalog(runs).run("link") is None
        and Catalog(runs).run("..") is None
        and Catalog(runs).run("../outside") is None
    )
    for name in ("", ".", "a/b", "\0", "first/../first", ".run"):
        assert Catalog(runs).run(name) is None


def test_reading_stays_inside(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (runs / "link").symlink_to(tmp_path / "secret")
    (runs / "up").symlink_to(tmp_path)
    os.mkfifo(runs / "pipe")
    for parts in (
        ("link",),
        ("up", "secret"),
        ("..", "secret"),
        ("pipe",),
        ("first",),
        ("nothing",),
        (),
        ("a/b",),
        ("\0",),
    ):
        with pytest.raises(NotInside):
            read_inside(runs, *parts, most=100)
    with pytest.raises(NotInside):
        read_inside(runs, "first", "certificate.json", most=10)
    assert read_inside(runs, "first", "certificate.json", most=10**6)
    assert dict(plain_stamps(runs / "first")).keys() >= {"set.npz", "data/train.parquet"}
    for link in ("pipe", "link"):
        os.rename(runs / link, runs / "first" / link)
        with pytest.raises(NotInside):
            plain_stamps(runs / "first")
        (runs / "first" / link).unlink()
    with pytest.raises(NotInside):
        plain_stamps(runs / "gone")


def test_what_has_not_changed_is_not_read_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, reads = Catalog(runs), []
    original = module.read_inside
    monkeypatch.setattr(module, "read_inside", lambda *a, **k: (reads.append(a), original(*a, **k))[1])
    assert len(catalog.runs()) == 2 and len(reads) == 2
    assert len(catalog.runs()) == 2 and len(reads) == 2
    (runs / "first" / "certificate.json").write_text("{}")
    assert [info.state for info in catalog.runs()] == ["finished", "damaged"] and len(reads) == 3
    shutil.rmtree(runs / "first")
    assert len(catalog.runs()) == 1 and catalog.run("first") is None
    shutil.rmtree(runs)
    assert catalog.runs() == []
