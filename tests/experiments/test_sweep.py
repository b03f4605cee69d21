"""Sweeps: every set is booked, the whole price is checked first, and a stopped sweep goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from limbeck.errors import BadInput
from limbeck.experiments import scored as scoring
from limbeck.experiments.jobs import Cost
from limbeck.experiments.sweep_plan import Sweep, plan_jobs
from limbeck.report.sweep_figure import Line, draw_curve
from limbeck.vault.ledger import Ledger
from working import DataReference, spend

Cli = Callable[..., Any]
SMALL = ("sweep", "digits", "--method", "ldpdc", "--set", "L=10", "--models", "linear", "--networks", 1)
VARY = ("--vary", "sigma=2,4", "--vary", "per_class=1", "--repeat", 2)


def test_a_sweep_books_makes_and_scores_every_set(cli: Cli, budget: None, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    ended = cli(*SMALL, *VARY, "--out", out, "--json")
    assert ended.code == 0, ended.err
    result = ended.json
    assert [point["values"] for point in result["points"]] == [
        {"sigma": "2", "per_class": "1"},
        {"sigma": "4", "per_class": "1"},
    ]
    for point in result["points"]:
        assert point["sets"] == 2 and len(point["accuracy"]["linear"]["runs"]) == 2
        assert point["noise_multiplier"] == float(point["values"]["sigma"]) and point["epsilon"] > 0
    assert result["price"]["sets"] == 4 and "edition" not in result
    assert spend() == (result["price"]["epsilon"], 4)
    kept = json.loads((out / "sweep.json").read_text())
    assert kept["points"] == result["points"]
    with Image.open(out / "curve.png") as picture:
        assert picture.format == "PNG" and min(picture.size) > 300
    assert len(list(out.glob("points/*/set-*"))) == 4 and cli("verify", out / "points/002/set-2").code == 0
    seeds = [
        json.loads((out / "points/001" / f"set-{n}/certificate.json").read_text())["settings"]["seed"] for n in (1, 2)
    ]
    assert seeds == [0, 1]

    again = cli(*SMALL, *VARY, "--out", out)
    assert again.code == 0 and spend()[1] == 4
    assert "still to pay: epsilon 0" in again.err and "curve" in again.out and "per_class" in again.out


def test_the_whole_price_is_refused_before_any_record_is_read(cli: Cli, never_loaded: None, tmp_path: Path) -> None:
    arguments = (*SMALL, "--vary", "sigma=1,2", "--set", "per_class=1", "--out", tmp_path / "out")
    priced = cli(*arguments, "--price", "--json").json
    first, second = (point["epsilon"] for point in priced["points"])
    assert priced["price"]["epsilon"] == pytest.approx(first + second) and priced["price"]["to_pay"]["sets"] == 2
    assert not (tmp_path / "out").exists()

    unset = cli(*arguments, "--json")
    assert unset.code == 3 and "has no budget" in unset.err and spend() == (0.0, 0)
    command = unset.json["error"]["next_command"].split()
    assert float(command[command.index("--epsilon") + 1]) == priced["price"]["epsilon"]

    # Enough for either set, but not for both.
    assert cli("budget", "set", "digits", "--epsilon", max(first, second), "--delta", 1e-3).code == 0
    refused = cli(*arguments)
    assert refused.code == 3 and f"requested {priced['price']['epsilon']}" in refused.err
    assert spend() == (0.0, 0) and not (tmp_path / "out").exists()


def test_the_budget_that_the_refusal_names_is_enough_and_is_used_up(cli: Cli, tmp_path: Path) -> None:
    arguments = (*SMALL, "--vary", "epsilon=0.5,1", "--set", "per_class=1", "--out", tmp_path / "out")
    command = cli(*arguments, "--json").json["error"]["next_command"].split()[1:]
    assert cli(*command).code == 0
    assert cli(*arguments).code == 0
    with Ledger.open() as ledger:
        account = ledger.account("digits")
    assert account is not None and account.remaining_epsilon == 0


def test_what_a_refusal_names_is_for_the_ledger_of_the_sweep(cli: Cli, tmp_path: Path) -> None:
    ledger = tmp_path / "my ledger.sqlite"
    arguments = (
        *SMALL,
        "--vary",
        "epsilon=0.5,1",
        "--set",
        "per_class=1",
        "--out",
        tmp_path / "out",
        "--ledger",
        ledger,
    )
    command = cli(*arguments, "--json").json["error"]["next_command"]
    assert command.endswith(f" --ledger '{ledger}'")


def test_a_stopped_sweep_goes_on_and_pays_nothing_twice(
    cli: Cli, budget: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, scored = tmp_path / "out", []
    real = scoring.evaluate_release

    def stop_at_the_second(*given: Any) -> dict[str, Any]:
        scored.append(given)
        if len(scored) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(scoring, "evaluate_release", stop_at_the_second)
    arguments = (*SMALL, "--vary", "sigma=2,3,4", "--set", "per_class=1", "--out", out)
    stopped = cli(*arguments)
    assert stopped.code == 130 and "same command" in stopped.err
    before = spend()
    assert before[1] == 2
    kept = json.loads((out / "sweep.json").read_text())
    assert [point["sets"] for point in kept["points"]] == [1, 0, 0] and not (out / "curve.png").exists()
    ended = cli(*arguments, "--json")
    assert ended.code == 0 and len(scored) == 4 and spend()[1] == 3
    assert ended.json["price"]["to_pay"]["sets"] == 1
    assert ended.json["points"][0] == kept["points"][0]


def test_an_interrupted_set_is_resumed(cli: Cli, budget: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*given: Any) -> None:
        raise KeyboardInterrupt

    arguments = (*SMALL, "--vary", "sigma=2,3", "--set", "per_class=1", "--out", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr("limbeck.runs.condense.carry_out", stopped)
        assert cli(*arguments).code == 130
    assert (tmp_path / "out/points/001/set-1/.run/run.json").exists() and spend()[1] == 1
    ended = cli(*arguments, "--json")
    assert ended.code == 0 and ended.json["price"]["to_pay"]["sets"] == 1 and spend()[1] == 2


def test_a_folder_belongs_to_one_specification(cli: Cli, budget: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (*SMALL, "--set", "per_class=1", "--out", out)
    assert cli(*arguments, "--vary", "sigma=2").code == 0
    for other in (("--vary", "sigma=3"), ("--vary", "sigma=2", "--repeat", 2), ("--vary", "sigma=2", "--delta", 1e-6)):
        refused = cli(*arguments, *other)
        assert refused.code == 8 and "other arguments" in refused.err
    assert spend()[1] == 1
    (out / "sweep.json").write_text("{")
    assert cli(*arguments, "--vary", "sigma=2").code == 4
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert cli(*SMALL, "--vary", "sigma=2", "--out", tmp_path / "full").code == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--vary", "nonsense=1,2"), "no setting 'nonsense'"),
        (("--vary", "epsilon"), "key=value,value"),
        (("--vary", "epsilon="), "needs different values"),
        (("--vary", "epsilon=1,1"), "needs different values"),
        (("--vary", "epsilon=1,-2"), "positive"),
        (("--vary", "epsilon=1,much"), "positive"),
        (("--vary", "epsilon=1", "--epsilon", "2"), "varied as well"),
        (("--vary", "epsilon=1", "--vary", "epsilon=2"), "varied twice"),
        (("--vary", "L=1", "--epsilon", "2"), "varied as well"),
        (("--vary", "epsilon=1", "--repeat", "0"), "at least one set"),
        (("--vary", "epsilon=1", "--models", "nonsense"), "Unknown model"),
        (("--vary", "epsilon=1", "--preset", "nonsense"), "Unknown preset"),
        (("--vary", "epsilon=1", "--networks", "0"), "repeats=0"),
        (("--vary", "epsilon=1", "--test", "adult"), "another shape or other classes"),
        (("--vary", "epsilon=1", "--test", "digits:train"), "trained on and tested on"),
        (("--vary", "epsilon=1", "--device", "nonsense"), "not available"),
    ],
)
def test_bad_input_spends_nothing(
    cli: Cli, never_loaded: None, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = cli(*SMALL, "--out", tmp_path / "out", *arguments)
    assert ended.code in (2, 4) and words in ended.err, ended.err
    assert spend() == (0.0, 0) and not (tmp_path / "out").exists()


def test_a_set_that_cannot_be_had_spends_nothing(cli: Cli, never_loaded: None, tmp_path: Path) -> None:
    arguments = ("sweep", "mnist", *SMALL[2:], "--vary", "epsilon=1", "--out", tmp_path / "out")
    ended = cli(*arguments)
    assert ended.code == 4 and "not on this machine" in ended.err
    assert spend() == (0.0, 0) and not (tmp_path / "out").exists()
    assert cli(*arguments, "--price").code == 0  # a price needs no record, so it fetches none


def test_a_set_of_ones_own_is_the_owners(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for split in ("train", "test"):
        x = np.random.default_rng(0).uniform(0, 1, (60, 4)).astype(np.float32)
        np.savez(folder / f"{split}.npz", x=x, y=np.arange(60) % 2)
    (tmp_path / "own.limbeck.toml").write_text(
        'name = "own"\nshape = [4]\nclasses = ["a", "b"]\nrecords = 60\nlow = 0\nhigh = 1\naugmentation = []\n'
    )
    ended = cli(
        "sweep", folder, "--method", "ldpdc", "--vary", "sigma=2", "--set", "per_class=1", "--models", "linear",
        "--networks", 1, "--out", tmp_path / "out", "--json",
    )  # fmt: skip
    assert ended.code == 0 and ended.json["edition"] == "owner"
    assert json.loads((tmp_path / "out" / "points/001/evaluation-1.json").read_text())["edition"] == "owner"
    assert "OWNER'S" in cli(
        "sweep", folder, "--method", "ldpdc", "--vary", "sigma=2", "--set", "per_class=1", "--models", "linear",
        "--networks", 1, "--out", tmp_path / "out",
    ).out  # fmt: skip


def test_models_are_swept_too(cli: Cli, tmp_path: Path) -> None:
    arguments = ("sweep", "digits", "--method", "dpsgd", "--set", "T=2", "--vary", "sigma=2", "--out", tmp_path / "out")
    refused = cli(*arguments, "--models", "linear")
    assert refused.code == 2 and "leave --models" in refused.err and spend() == (0.0, 0)
    ended = cli(*arguments, "--json")
    assert ended.code == 0 and len(ended.json["points"][0]["accuracy"]["model"]["runs"]) == 1


def test_points_are_all_combinations(tmp_path: Path) -> None:
    spec = Sweep(
        method="ldpdc", vary={"sigma": ("2", "4"), "per_class": ("1", "2")}, settings={"L": "10"}, epsilon=None,
        delta=1e-5, repeat=1, test="digits",
    )  # fmt: skip
    jobs, _ = plan_jobs(spec, DataReference(data="digits"), tmp_path)
    assert [tuple(job.values.values()) for job in jobs] == [("2", "1"), ("2", "2"), ("4", "1"), ("4", "2")]


def test_prices_add_up_exactly(tmp_path: Path) -> None:
    spec = Sweep(
        method="ldpdc", vary={"sigma": ("2", "4")}, settings={"per_class": "1", "L": "10"}, epsilon=None, delta=1e-5,
        repeat=3, test="digits",
    )  # fmt: skip
    jobs, _ = plan_jobs(spec, DataReference(data="digits"), tmp_path)
    assert [job.plan.settings["seed"] for job in jobs] == [0, 1, 2, 0, 1, 2]
    assert len({job.release for job in jobs}) == 6
    cost = Cost.of(jobs)
    assert cost.delta == 6e-5  # and not 5.9999999999999995e-05
    assert cost.epsilon == pytest.approx(sum(job.plan.price.epsilon for job in jobs))


# The curve


def test_the_same_points_give_the_same_picture() -> None:
    lines = [Line(title="convnet", points=(("0.1", 50.0, 1.0), ("10", 90.0, 2.0)))]
    assert draw_curve(lines, "epsilon", "accuracy") == draw_curve(lines, "epsilon", "accuracy")
    other = [Line(title="convnet", points=(("0.1", 50.0, 9.0), ("10", 90.0, 2.0)))]
    assert draw_curve(lines, "epsilon", "accuracy") != draw_curve(other, "epsilon", "accuracy")


def test_words_and_infinity_have_a_place_on_the_axis() -> None:
    for places in (("unit", "signed"), ("1", "inf"), ("0", "5"), ("3",)):
        points = tuple((place, 50.0, 0.0) for place in places)
        assert draw_curve([Line(title="", points=points)], "x", "y").startswith(b"\x89PNG")
    with pytest.raises(BadInput):
        draw_curve([], "x", "y")
