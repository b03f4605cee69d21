"""The progress file of a run: small, public, never in the way."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import working as work
from limbeck.progress import Noted, Silent
from limbeck.progress import reporter as progress


def test_it_is_noted_at_the_start_at_most_once_a_second_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress.json"
    noted = Noted(Silent(), path)
    noted.start("title", 1000, 10)
    before = time.time()
    values = json.loads(path.read_text())
    assert set(values) == {"label", "first", "step", "total", "started", "updated"}
    assert (values["label"], values["first"], values["step"], values["total"]) == ("title", 10, 10, 1000)
    assert abs(values["started"] - before) < 5
    for step in range(11, 1000):
        noted.advance(step)
    assert json.loads(path.read_text())["step"] < 999
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_NOTES", 0.0)
    noted.advance(500)
    assert json.loads(path.read_text())["step"] == 500
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_NOTES", 1e9)
    noted.advance(1000)
    assert json.loads(path.read_text())["step"] == 1000
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["progress.json"]


def test_a_note_that_cannot_be_written_stops_no_run(tmp_path: Path) -> None:
    noted = Noted(Silent(), tmp_path / "gone" / "progress.json")
    noted.start("title", 2, 0)
    noted.advance(1)
    noted.say("still here")


class Watcher:
    """A reporter that looks at the run folder as another process would."""

    def __init__(self, out: Path) -> None:
        self.path, self.seen = out / ".run" / "progress.json", []  # type: ignore[var-annotated]

    def start(self, title: str, total: int, done: int) -> None:
        pass

    def advance(self, done: int) -> None:
        self.seen.append((done, json.loads(self.path.read_text())))

    def say(self, message: str) -> None:
        pass


def test_a_run_notes_how_far_it_is_and_leaves_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_NOTES", 0.0)
    request = work.asked()
    plan, source = work.plan_for(request.data, "ldpdc", {"per_class": 4, "L": 10, "sigma": 2.0}, None, 1e-5)
    watcher = Watcher(tmp_path / "out")
    work.condense(request, plan, source, tmp_path / "out", watcher)
    # The file is written after the reporter was told, so it shows the step before.
    assert [(done - 1, values["step"]) for done, values in watcher.seen] == [(step, step) for step in range(4)]
    assert watcher.seen[0][1]["total"] == 4 and "ldpdc" in watcher.seen[0][1]["label"]
    assert not (tmp_path / "out" / ".run").exists()
