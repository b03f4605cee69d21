"""Comparisons: every set is booked, the whole price is checked first, and a stopped comparison goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from limbeck.experiments import scored as scoring
from limbeck.report.comparison_table import comparison_page
from working import spend

Cli = Callable[..., Any]
TWO = ("compare", "digits", "--methods", "ldpdc,dpmix", "--set", "ldpdc.sigma=2", "--set", "dpmix.sigma=2")
SMALL = ("--set", "ldpdc.per_class=1", "--set", "dpmix.per_class=1", "--models", "linear", "--networks", 2)


def test_every_set_is_booked_made_and_scored(cli: Cli, budget: None, tmp_path: Path) -> None:
    out = tmp_path / "compared"
    ended = cli(*TWO, *SMALL, "--repeats", 2, "--out", out, "--json")
    assert ended.code == 0, ended.err
    result = ended.json
    assert [row["method"] for row in result["methods"]] == ["ldpdc", "dpmix"]
    for row in result["methods"]:
        score = row["accuracy"]["linear"]
        assert row["sets"] == 2 and row["seconds"] > 0 and row["epsilon"] > 0
        assert [len(fits) for fits in score["fits"]] == [2, 2]
        # The spread is that over released sets, not over the networks that see one of them.
        means = [np.mean(fits) for fits in score["fits"]]
        assert score["runs"] == pytest.approx(means, abs=1e-3)
        assert score["mean"] == pytest.approx(np.mean(means), abs=1e-3)
        assert score["std"] == pytest.approx(np.std(means, ddof=1), abs=1e-3)
    # The ledger composes what was booked, and may need less than the sum.
    assert result["price"]["sets"] == 4 and spend()[1] == 4 and 0 < spend()[0] <= result["price"]["epsilon"]
    assert "edition" not in result
    kept = json.loads((out / "compare.json").read_text())
    assert kept["methods"] == result["methods"]
    page = (out / "compare.md").read_text()
    first = result["methods"][0]
    assert f"| ldpdc | {first['accuracy']['linear']['mean']:.2f} ± " in page and "| method | linear |" in page
    with Image.open(out / "compare.png") as picture:
        assert picture.format == "PNG" and min(picture.size) > 300
    assert cli("verify", out / "dpmix" / "set-2").code == 0
    seeds = [json.loads((out / "ldpdc" / f"set-{n}/certificate.json").read_text())["settings"]["seed"] for n in (1, 2)]
    assert seeds == [0, 1]

    again = cli(*TWO, *SMALL, "--repeats", 2, "--out", out)
    assert again.code == 0 and spend()[1] == 4 and "still to pay: epsilon 0" in again.err
    assert "compare.md" in again.out and "dpmix" in again.out


def test_a_full_budget_is_refused_before_any_record_is_read(cli: Cli, never_loaded: None, tmp_path: Path) -> None:
    arguments = (*TWO, *SMALL, "--repeats", 3, "--out", tmp_path / "out")
    priced = cli(*arguments, "--price", "--json").json
    whole = priced["price"]["epsilon"]
    assert (
        whole == pytest.approx(sum(3 * row["epsilon"] for row in priced["methods"])) and not (tmp_path / "out").exists()
    )

    unset = cli(*arguments, "--json")
    assert unset.code == 3 and "has no budget" in unset.err and f"this comparison costs epsilon {whole}" in unset.err
    command = unset.json["error"]["next_command"].split()
    assert float(command[command.index("--epsilon") + 1]) == whole

    # Enough for any one set, but not for all.
    enough = max(row["epsilon"] for row in priced["methods"])
    assert cli("budget", "set", "digits", "--epsilon", enough, "--delta", 1e-3).code == 0
    refused = cli(*arguments, "--json")
    assert refused.code == 3 and "requested" in refused.err and f"{enough}" in refused.err
    assert refused.json["error"]["next_command"].startswith("limbeck budget set digits --epsilon ")
    assert spend() == (0.0, 0) and not (tmp_path / "out").exists()

    assert cli(*refused.json["error"]["next_command"].split()[1:]).code == 0
    assert cli(*arguments, "--price").code == 0


def test_a_stopped_comparison_goes_on_and_pays_nothing_twice(
    cli: Cli, budget: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, scored = tmp_path / "out", []
    real = scoring.evaluate_release

    def stop_at_the_second(*given: Any) -> Any:
        scored.append(given)
        if len(scored) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(scoring, "evaluate_release", stop_at_the_second)
    arguments = (*TWO, *SMALL, "--repeats", 2, "--out", out)
    stopped = cli(*arguments)
    assert stopped.code == 130 and "same command" in stopped.err and spend()[1] == 2
    # The first set of each method, then the second of each: what is there compares them.
    kept = json.loads((out / "compare.json").read_text())
    assert [row["sets"] for row in kept["methods"]] == [1, 0] and not (out / "compare.png").exists()
    ended = cli(*arguments, "--json")
    assert ended.code == 0 and len(scored) == 5 and spend()[1] == 4
    assert ended.json["price"]["to_pay"]["sets"] == 2
    assert (
        ended.json["methods"][0]["accuracy"]["linear"]["fits"][0] == kept["methods"][0]["accuracy"]["linear"]["fits"][0]
    )


def test_an_interrupted_set_is_resumed_on_its_booking(
    cli: Cli, budget: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: Any) -> None:
        raise KeyboardInterrupt

    arguments = (*TWO, *SMALL, "--out", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr("limbeck.runs.condense.carry_out", stopped)
        assert cli(*arguments).code == 130
    assert (tmp_path / "out/ldpdc/set-1/.run/run.json").exists() and spend()[1] == 1
    ended = cli(*arguments, "--json")
    assert ended.code == 0 and ended.json["price"]["to_pay"]["sets"] == 1 and spend()[1] == 2
    # How long the first part took is not known, so no figure is made up.
    assert [row["seconds"] is None for row in ended.json["methods"]] == [True, False]


@pytest.mark.slow
def test_a_killed_comparison_goes_on(cli: Cli, budget: None, tmp_path: Path) -> None:
    words = [str(word) for word in (*TWO, *SMALL, "--repeats", 2, "--out", tmp_path / "out")]
    with subprocess.Popen([sys.executable, "-m", "limbeck", *words], env=dict(os.environ)) as run:
        while run.poll() is None and not (tmp_path / "out/dpmix/set-1").exists():
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    before = spend()[1]
    assert before < 4
    ended = cli(*words, "--json")
    assert ended.code == 0 and spend()[1] == 4
    assert ended.json["price"]["to_pay"]["sets"] == 4 - before


def test_a_folder_belongs_to_one_comparison(cli: Cli, budget: None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli(*TWO, *SMALL, "--out", out).code == 0
    for other in (("--repeats", 2), ("--delta", 1e-6), ("--set", "ldpdc.L=9")):
        refused = cli(*TWO, *SMALL, "--out", out, *other)
        assert refused.code == 8 and "other arguments" in refused.err
    refused = cli("sweep", "digits", "--method", "ldpdc", "--vary", "sigma=2", "--out", out)
    assert refused.code == 8 and "is no sweep" in refused.err
    (out / "compare.json").write_text("{")
    assert cli(*TWO, *SMALL, "--out", out).code == 4
    assert spend()[1] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--methods", "ldpcd"), "no method 'ldpcd'. Did you mean 'ldpdc'"),
        (("--methods", ","), "at least one method"),
        (("--methods", "ldpdc,dpmix,ldpdc"), "names 'ldpdc' twice"),
        (("--set", "psg.R=2"), "not among --methods"),
        (("--set", "L=2"), "METHOD.key=value"),
        (("--set", "ldpdc.nonsense=2"), "no setting 'nonsense'"),
        (("--methods", "ldpdc,dm"), "not private"),
        (("--repeats", "0"), "at least one set, got --repeats 0"),
        (("--epsilon", "much"), "positive number"),
        (("--models", "nonsense"), "Unknown model"),
        (("--test", "adult"), "another shape or other classes"),
        (("--test", "digits:train"), "trained on and tested on"),
        (("--vault", "socket"), "does not show its budget"),
    ],
)
def test_bad_input_spends_nothing(
    cli: Cli, never_loaded: None, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = cli("compare", "digits", "--methods", "ldpdc,dpmix", "--epsilon", 1, "--out", tmp_path / "out", *arguments)
    assert ended.code == 2 and words in ended.err, ended.err
    assert spend() == (0.0, 0) and not (tmp_path / "out").exists()


def test_models_stand_beside_sets(cli: Cli, budget: None, tmp_path: Path) -> None:
    settings = ("ldpdc.sigma=2", "ldpdc.per_class=1", "dpsgd.T=2", "dpsgd.sigma=4", "dpsgd.net=linear")
    given = [word for setting in settings for word in ("--set", setting)]
    words = ("compare", "digits", "--methods", "ldpdc,dpsgd", *given, "--models", "linear", "--networks", 1)
    ended = cli(*words, "--out", tmp_path / "o", "--json")
    assert ended.code == 0, ended.err
    assert [list(row["accuracy"]) for row in ended.json["methods"]] == [["linear"], ["model"]]
    assert "| dpsgd | - | " in (tmp_path / "o" / "compare.md").read_text()


def test_a_comparison_on_private_records_is_the_owners(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for split in ("train", "test"):
        x = np.random.default_rng(0).uniform(0, 1, (60, 4)).astype(np.float32)
        np.savez(folder / f"{split}.npz", x=x, y=np.arange(60) % 2)
    (tmp_path / "own.limbeck.toml").write_text(
        'name = "own | `a`"\nshape = [4]\nclasses = ["a", "b"]\nrecords = 60\nlow = 0\nhigh = 1\naugmentation = []\n'
    )
    words = ("compare", folder, "--methods", "ldpdc", "--epsilon", 1, "--models", "linear", "--networks", 1)
    ended = cli(*words, "--set", "ldpdc.per_class=1", "--out", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["edition"] == "owner"
    page = (tmp_path / "out" / "compare.md").read_text()
    assert "OWNER'S EDITION" in page and page.startswith("# own \\| 'a': ")


def test_what_nobody_scored_is_a_dash() -> None:
    row = {"method": "ldpdc", "epsilon": 1.0, "seconds": None, "sets": 0, "accuracy": {}}
    price = {"sets": 1, "epsilon": 1.0, "delta": 1e-5, "adjacency": "add or remove one record", "unit": "record"}
    page = comparison_page({"dataset": "digits", "test": "digits:test", "methods": [row], "price": price})
    assert "| ldpdc | 1.0 | - | 0 |" in page


def test_what_cannot_be_learned_is_refused_before_it_is_paid(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("age\n" + "".join(f"{20 + row}\n" for row in range(40)))
    (tmp_path / "people.csv.limbeck.toml").write_text(
        'name = "people"\nshape = [1]\nrecords = 40\nlow = -1\nhigh = 1\naugmentation = []\n'
        '[[columns]]\nname = "age"\nlow = 0\nhigh = 100\n'
    )
    (tmp_path / "test.csv").write_text(table.read_text())
    words = ("compare", table, "--methods", "mosaic", "--epsilon", 1, "--test", tmp_path / "test.csv")
    ended = cli(*words, "--schema", tmp_path / "people.csv.limbeck.toml", "--out", tmp_path / "out")
    assert ended.code == 2 and "no label that classifiers could learn" in ended.err, ended.err
    assert not (tmp_path / "out").exists()


def test_a_comparison_from_before_there_were_sizes_goes_on_with_pictures_as_they_are(
    cli: Cli, budget: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first sets were scored so; figures of two kinds would make one mean."""
    out, sizes, real = tmp_path / "out", [], scoring.evaluate_release

    def listen(folder: Path, test: Any, protocol: Any, reporter: Any) -> Any:
        sizes.append(protocol.size)
        return real(folder, test, protocol, reporter)

    monkeypatch.setattr(scoring, "evaluate_release", listen)
    arguments = (*TWO, *SMALL, "--out", out)
    assert cli(*arguments).code == 0
    kept = json.loads((out / "compare.json").read_text())
    assert kept["specification"].pop("size") is None
    (out / "compare.json").write_text(json.dumps(kept))
    (out / "dpmix" / "evaluation-1.json").unlink()
    assert cli(*arguments).code == 0 and sizes == [None, None, 0]
    assert "size" not in json.loads((out / "compare.json").read_text())["specification"]
    assert cli(*arguments, "--size", 4).code != 0  # another one
    other = cli(*TWO, *SMALL, "--size", 4, "--out", tmp_path / "smaller", "--json")
    assert other.code == 0, other.err
    assert sizes[-1] == 4 and [row["size"] for row in other.json["methods"]] == [4, 4]
    assert "so many pixels of the longer side: ldpdc (4), dpmix (4)" in (tmp_path / "smaller/compare.md").read_text()
