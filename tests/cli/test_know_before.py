"""plan says what a set will be worth; condense repeats a warning, and asks on a terminal before anything is booked."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck.cli import asking
from limbeck.cli.output import Stopped
from limbeck.progress import Silent
from limbeck.vault.ledger import Ledger

Cli = Callable[..., Any]


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Forty colour pictures in two classes, which nobody can condense at epsilon 0.5."""
    path = tmp_path / "few.npz"
    np.savez(path, x=np.random.default_rng(0).integers(0, 256, (40, 3, 8, 8), dtype=np.uint8), y=np.arange(40) % 2)
    (tmp_path / "few.npz.limbeck.toml").write_text(
        'name = "few"\nshape = [3, 8, 8]\nclasses = ["0", "1"]\nrecords = 40\nlow = 0\nhigh = 255\naugmentation = []\n'
    )
    return path


def test_plan_forecasts_and_reads_no_record(cli: Cli, few: Path) -> None:
    with Ledger.open() as ledger:
        ledger.set_budget("few", 3.0, 1e-4)
    few.write_bytes(b"no archive")
    found = cli("plan", few, "--epsilon", 0.5, "--per-class", 10, "--json").json
    forecast = found["forecast"]
    assert set(forecast) >= {"accuracy", "accuracy_low", "accuracy_high", "seconds", "warning", "remaining_after"}
    assert 50 <= forecast["accuracy_low"] <= forecast["accuracy"] <= forecast["accuracy_high"] <= 100
    assert forecast["seconds"] > 0
    assert forecast["remaining_after"] == found["remaining_after"] == pytest.approx(2.5, abs=1e-5)
    assert "close to guessing" in forecast["warning"] and "records" in forecast["warning"]
    assert "at epsilon 0.5." in forecast["warning"]  # as it was asked for, not as it is booked
    assert found["next_command"].startswith(f"limbeck rehearse {few} --epsilon 0.5")
    lines = cli("plan", few, "--epsilon", 0.5, "--per-class", 10).out
    assert "WARNING" in lines and "is left afterwards" in lines and "next      limbeck rehearse" in lines


def test_plan_of_many_records_has_no_warning(cli: Cli) -> None:
    found = cli("plan", "mnist", "--epsilon", 1, "--json").json
    assert found["forecast"]["warning"] is None and found["forecast"]["accuracy"] > 80
    assert found["remaining_after"] == 0  # no budget is set, so the plan would be all of it
    assert found["next_command"] == "limbeck condense mnist --epsilon 1 --out mnist-set"
    refused = cli("plan", "mnist", "--method", "dm", "--epsilon", "inf", "--json").json
    assert refused["forecast"]["accuracy"] is None and refused["forecast"]["warning"] is None


def test_who_says_how_hard_the_data_are_is_heard(cli: Cli, few: Path) -> None:
    easy, hard = (cli("plan", "mnist", "--epsilon", 1, "--real-accuracy", said, "--json").json for said in (99, 60))
    assert easy["forecast"]["accuracy"] > hard["forecast"]["accuracy"] + 20
    assert easy["forecast"]["real_accuracy"] == 99
    refused = cli("plan", "mnist", "--epsilon", 1, "--real-accuracy", 0.85)
    assert refused.code == 2 and "--real-accuracy 0.85 to be a percentage above 10" in refused.err
    # What the rehearsal does not know is not handed on to it.
    with Ledger.open(few.parent / "book.sqlite"):
        pass
    words = (
        "plan",
        few,
        "--epsilon",
        0.5,
        "--ledger",
        few.parent / "book.sqlite",
        "--real-accuracy",
        80,
        "--json",
        "--per-class",
        5,
    )
    planned = cli(*words)
    assert planned.code == 0, planned.err
    command = planned.json["next_command"]
    assert command.startswith(f"limbeck rehearse {few} --epsilon 0.5 --per-class 5 --out") and "ledger" not in command


def test_a_budget_that_is_too_small_is_shown_and_not_run_into(cli: Cli) -> None:
    with Ledger.open() as ledger:
        ledger.set_budget("mnist", 0.5, 1e-4)
    found = cli("plan", "mnist", "--epsilon", 1, "--json").json
    assert found["remaining_after"] < 0 and found["next_command"] == "limbeck budget show mnist"


def test_condense_repeats_the_warning_and_goes_on_without_a_terminal(cli: Cli, few: Path, tmp_path: Path) -> None:
    found = cli("condense", few, "--epsilon", 0.5, "--per-class", 5, "--out", tmp_path / "set")
    assert found.code == 0 and "WARNING: This set may be close to guessing" in found.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "goes_on"), [("y\n", True), ("n\n", False), ("", False)])
def test_a_terminal_is_asked(answer: str, goes_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    asking.agree([], False, Silent())
    asking.agree(["static"], True, Silent())
    if goes_on:
        asking.agree(["static"], False, Silent())
    else:
        with pytest.raises(Stopped, match="nothing was booked"):
            asking.agree(["static"], False, Silent())


def test_who_says_no_has_booked_nothing(cli: Cli, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_on_terminal", lambda: True)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    found = cli("condense", few, "--epsilon", 0.5, "--per-class", 5, "--out", tmp_path / "set")
    assert found.code == 130 and "nothing was booked" in found.err
    assert not (tmp_path / "set").exists()
    with Ledger.open() as ledger:
        assert ledger.account("few") is None
