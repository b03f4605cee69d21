"""limbeck distil, and what other commands say of releases that keep answers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck.release.verification import verify
from limbeck.runs.log import StepLog
from limbeck.vault.ledger import Ledger

Cli = Callable[..., Any]
ELIXIR = (
    "--method", "elixir", "--epsilon", 1, "--per-class", 2,
    *(word for pair in ("T=4", "L=30", "networks=2", "life=3", "width=4", "waves=8") for word in ("--set", pair)),
)  # fmt: skip
WANTED = ("--per-class", 3, "--set", "updates=2", "--set", "part=2")


@pytest.fixture
def kept(cli: Cli, tmp_path: Path) -> Path:
    """A release that keeps its answers, and has no generator."""
    assert cli("condense", "digits", *ELIXIR, "--set", "generator=0", "--out", tmp_path / "kept").code == 0
    return tmp_path / "kept"


def spent() -> list[float]:
    with Ledger.open() as ledger:
        return [account.spent_epsilon for account in ledger.accounts()]


def test_a_set_a_generator_and_samples_for_nothing(cli: Cli, kept: Path, tmp_path: Path) -> None:
    before = spent()
    ended = cli("sample", kept, "--count", 5)
    assert ended.code == 2 and f"limbeck distil {kept} --generator auto --out NEW" in ended.err
    made = cli("distil", kept, *WANTED, "--generator", 2, "--out", tmp_path / "more", "--json").json
    assert made["epsilon"] == verify(kept).epsilon and made["releasable"] is True
    seen = cli("verify", tmp_path / "more", "--json").json
    assert seen["distilled"]["public_key"] == cli("verify", kept, "--json").json["public_key"]
    assert "distilled from a release with this very epsilon" in cli("verify", tmp_path / "more").out
    assert cli("sample", tmp_path / "more", "--count", 5, "--out", tmp_path / "five.npz").code == 0
    page = (tmp_path / "more" / "report.html").read_text()
    assert "From the generator" in page and "distilled from the answers" in page
    assert "From the generator" not in (kept / "report.html").read_text()
    assert cli("report", tmp_path / "more", "--out", tmp_path / "page.html").code == 0
    assert "From the generator" in (tmp_path / "page.html").read_text()
    words = (*WANTED, "--from", tmp_path / "more", "--out", tmp_path / "again")
    assert cli("distil", kept, *words).code == 0
    assert verify(tmp_path / "again").distilled is not None
    assert spent() == before


def test_the_default_method_is_sampled_from_at_once(cli: Cli, tmp_path: Path) -> None:
    """By whoever has the folder; the price is that of the set alone, and the page shows what the generator draws."""
    plan = cli("plan", "digits", *ELIXIR)
    assert "a generator is matched to its answers in 10 steps" in plan.out
    made = cli("condense", "digits", *ELIXIR, "--out", tmp_path / "made")
    assert made.code == 0 and f"limbeck sample {tmp_path / 'made'} --count 1000" in made.out
    certificate, before = verify(tmp_path / "made"), spent()
    without = cli("plan", "digits", *ELIXIR, "--set", "generator=0")
    assert certificate.epsilon == cli("plan", "digits", *ELIXIR, "--set", "generator=0", "--json").json["epsilon"]
    assert "generator" not in without.out and before == [certificate.epsilon]
    assert {"generator.json", "generator.safetensors"} <= set(certificate.files)
    given = tmp_path / "elsewhere" / "given"
    shutil.copytree(tmp_path / "made", given)
    shutil.rmtree(tmp_path / "made")
    assert cli("sample", given, "--count", 25).code == 0
    with np.load(tmp_path / "elsewhere" / "given-sample-0.npz") as drawn:
        assert drawn["x"].shape == (25, 1, 8, 8) and set(drawn["y"].tolist()) == set(range(10))
    assert "From the generator" in (given / "report.html").read_text()
    card = (given / "README.md").read_text()
    assert "A generator that was matched to the answers" in card and "limbeck sample FOLDER" in card
    assert spent() == before


def test_a_set_of_small_classes_is_sampled_from_its_own_model(cli: Cli, tmp_path: Path) -> None:
    assert cli("condense", "digits", "--epsilon", 1, "--per-class", 2, "--out", tmp_path / "made").code == 0
    ended = cli("sample", tmp_path / "made", "--count", 30, "--class", "3", "--out", tmp_path / "threes.npz")
    assert ended.code == 0 and verify(tmp_path / "made").settings["generator_kind"] == "gaussian"
    with np.load(tmp_path / "threes.npz") as drawn:
        assert drawn["x"].shape == (30, 1, 8, 8) and len({each.tobytes() for each in drawn["x"]}) == 30
    assert "Gaussian model of each class" in (tmp_path / "made" / "README.md").read_text()


def test_without_a_generator_the_reason_is_said(cli: Cli, kept: Path, tmp_path: Path) -> None:
    assert cli("distil", kept, *WANTED, "--out", tmp_path / "distilled").code == 0
    bare = ("--per-class", 2, "--epsilon", 1, "--set", "generator=0", "--ledger", tmp_path / "another.sqlite")
    assert cli("condense", "digits", *bare, "--out", tmp_path / "bare").code == 0
    for release, said in (
        (kept, f"limbeck distil {kept} --generator auto --out NEW"),
        (tmp_path / "distilled", "distilled without one"),
        (tmp_path / "bare", "generator=0"),
    ):
        ended = cli("sample", release, "--count", 5)
        assert ended.code == 2 and said in ended.err and "Traceback" not in ended.err


def test_ctrl_c_is_taken_up_by_resume(cli: Cli, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StepLog, "_save", stop)
        ended = cli("distil", kept, *WANTED, "--out", tmp_path / "more")
    assert ended.code == 130 and f"limbeck resume {tmp_path / 'more'}" in ended.err
    assert cli("distil", kept, *WANTED, "--out", tmp_path / "more").code == 8  # it holds an unfinished run
    assert cli("resume", tmp_path / "more").code == 0
    assert verify(tmp_path / "more").records == 30


def test_what_makes_no_sense_is_said_in_a_sentence(cli: Cli, kept: Path, tmp_path: Path) -> None:
    for words, said in (
        (("--per-class", 3, "--rows", 30), "not both"),
        (("--set", "speed=2"), "has no setting 'speed'"),
        (("--set", "part=0"), "part must be at least 1, got part=0"),
        (("--rows", 3), "rows=3 is less than one picture"),
        (("--set", "start=generator"), "the release has none"),
        (("--from", kept), "was not distilled from"),
        (("--from", kept, "--generator", 3), "starts from one place"),
    ):
        ended = cli("distil", kept, *words, "--out", tmp_path / "more")
        assert ended.code == 2 and said in ended.err and "Traceback" not in ended.err
        assert not (tmp_path / "more").exists()


def test_paths_that_hold_no_answers(cli: Cli, release: Path, tmp_path: Path) -> None:
    ended = cli("distil", release, "--out", tmp_path / "more")
    assert ended.code == 2 and "keeps no answers" in ended.err
    ended = cli("distil", tmp_path / "nowhere", "--out", tmp_path / "more")
    assert ended.code == 6 and "no release" in ended.err
    assert not (tmp_path / "more").exists()


def test_a_plan_says_how_much_a_release_will_keep(cli: Cli) -> None:
    assert cli("plan", "digits", *ELIXIR, "--json").json["kept_bytes"] > 10_000
    assert re.search(r"keeps its answers, 0\.\d MB", cli("plan", "digits", *ELIXIR).out)
    without = cli("plan", "digits", *ELIXIR, "--set", "answers=false")
    assert "keeps its answers" not in without.out and without.code == 0
