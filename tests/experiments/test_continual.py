"""Continual learning: every stage its own party, finished stages kept, and the curves as JSON and picture."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from limbeck import verify
from limbeck.cli.continual import settings_by_method
from limbeck.errors import BadInput, BudgetRefused, LedgerFault
from limbeck.experiments.continual_plan import stage_classes
from limbeck.progress import Silent
from limbeck.release.model import read_model
from limbeck.vault.ledger import Ledger
from working import asked, condense, plan_for

Cli = Callable[..., Any]
# Every record in every answer, so that prices are exact and quick to compute.
SETTINGS = {
    "ldpdc.per_class": 3, "ldpdc.L": 999, "dpsgd.B": 9999, "dpsgd.T": 8, "dpsgd.net": "mlp", "dpsgd.depth": 1,
}  # fmt: skip
SCORED = ("--model", "linear", "--repeats", "2")


def options(out: Path, methods: str = "ldpdc,dpsgd", stages: int = 2, **changed: Any) -> list[Any]:
    values = {key: value for key, value in {**SETTINGS, **changed}.items() if key.split(".")[0] in methods.split(",")}
    sets = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    return [
        "continual",
        "digits",
        "--epsilon",
        8,
        "--methods",
        methods,
        "--stages",
        stages,
        "--out",
        out,
        *sets,
        *SCORED,
    ]


def allow(path: Path | None = None) -> None:
    """What an owner does first: a budget for the whole data set."""
    with Ledger.open(path) as ledger:
        ledger.set_budget("digits", 16.0, 2e-5)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A course of two stages with two methods, run by the command line."""
    import subprocess
    import sys

    root = tmp_path_factory.mktemp("continual")
    allow(root / "ledger.sqlite")
    words = [*map(str, options(root / "out")), "--ledger", str(root / "ledger.sqlite"), "--json"]
    run = subprocess.run([sys.executable, "-m", "limbeck", *words], capture_output=True, text=True, check=True)
    return root, json.loads(run.stdout)


def test_the_curves_are_means_over_the_stages_so_far(course: tuple[Path, dict[str, Any]]) -> None:
    root, result = course
    assert json.loads((root / "out" / "continual.json").read_text()) == result
    assert result["benchmarks"]["test"]["set"] == "digits:test" and "edition" not in result
    assert (root / "out" / "continual.png").read_bytes().startswith(b"\x89PNG")
    for curve in result["curves"].values():
        assert [len(scores) for scores in curve["by_stage"]] == [1, 2]
        for mean, scores in zip(curve["mean"], curve["by_stage"], strict=True):
            assert mean == pytest.approx(sum(scores) / len(scores), abs=1e-3) and 0 <= mean <= 100
    assert result["curves"]["dpsgd"]["std"] == [None, None]


def test_sets_remember_what_a_model_that_is_handed_on_forgets(course: tuple[Path, dict[str, Any]]) -> None:
    curves = course[1]["curves"]
    assert curves["ldpdc"]["mean"][-1] > curves["dpsgd"]["mean"][-1]
    assert curves["dpsgd"]["by_stage"][1][0] < curves["dpsgd"]["by_stage"][0][0]


def test_every_stage_is_a_party_with_a_release_and_a_booking_of_its_own(course: tuple[Path, dict[str, Any]]) -> None:
    root, result = course
    with Ledger.open(root / "ledger.sqlite") as ledger:
        accounts = {account.dataset: account for account in ledger.accounts()}
    assert list(accounts) == ["digits", "digits/stages-2/1", "digits/stages-2/2"]
    whole = accounts.pop("digits")
    assert whole.bookings == () and not any(account.own_budget for account in accounts.values())
    assert whole.spent_epsilon_sum == max(account.spent_epsilon for account in accounts.values()) <= 16
    for stage, account in enumerate(accounts.values()):
        assert account.parent == "digits" == whole.dataset
        certificates = [verify(root / "out" / name / f"stage-{stage + 1}") for name in ("ldpdc", "dpsgd")]
        assert all(certificate.dataset == account.dataset for certificate in certificates)
        assert account.spent_epsilon == pytest.approx(sum(certificate.epsilon for certificate in certificates))
        assert len(certificates[0].public_assumptions.classes) == 5
        assert len(certificates[1].public_assumptions.classes) == 10
    for curve in result["curves"].values():
        assert curve["epsilon"] == max(curve["epsilon_by_stage"]) <= 8


def test_a_model_goes_on_from_the_one_of_the_stage_before(course: tuple[Path, dict[str, Any]]) -> None:
    out = course[0] / "out" / "dpsgd"
    first, second = read_model(out / "stage-1"), read_model(out / "stage-2")
    assert first.certificate.settings["start"] == "random"
    assert second.certificate.settings["start"] == first.model.fingerprint()


def test_the_same_course_again_changes_and_pays_nothing(course: tuple[Path, dict[str, Any]], cli: Cli) -> None:
    root, result = course
    before = {path: path.stat().st_mtime_ns for path in (root / "out").rglob("certificate.json")}
    again = cli(*options(root / "out"), "--ledger", root / "ledger.sqlite", "--json")
    assert again.code == 0 and again.json == result
    assert before == {path: path.stat().st_mtime_ns for path in (root / "out").rglob("certificate.json")}
    with Ledger.open(root / "ledger.sqlite") as ledger:
        assert [len(account.bookings) for account in ledger.accounts()] == [0, 2, 2]


def test_another_course_in_the_same_folder_is_refused(course: tuple[Path, dict[str, Any]], cli: Cli) -> None:
    root, _ = course
    refused = cli(*options(root / "out", **{"ldpdc.L": 998}), "--ledger", root / "ledger.sqlite")
    assert refused.code == 8 and "another course" in refused.err


def test_a_course_that_broke_off_goes_on_where_it_was(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, stored = Ledger.store, [0]

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 12:  # in the second stage
            raise KeyboardInterrupt
        return store(*arguments, **named)

    allow()
    words = options(tmp_path / "out", "dpsgd")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", interrupted)
        stopped = cli(*words)
    assert stopped.code == 130 and "same command again" in stopped.err
    assert (tmp_path / "out" / "dpsgd" / "stage-2" / ".run").exists()
    assert cli(*words).code == 0
    with Ledger.open() as ledger:
        states = [booking.state for account in ledger.accounts() for booking in account.bookings]
    assert states == ["finished", "finished"]


def test_a_stage_that_broke_off_can_be_resumed_by_itself(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, stored = Ledger.store, [0]

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 12:
            raise KeyboardInterrupt
        return store(*arguments, **named)

    allow()
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", interrupted)
        cli(*options(tmp_path / "out", "dpsgd"))
    assert cli("resume", tmp_path / "out" / "dpsgd" / "stage-2").code == 0
    assert cli(*options(tmp_path / "out", "dpsgd")).code == 0


def test_a_budget_that_an_owner_has_set_for_a_stage_is_kept(cli: Cli, tmp_path: Path) -> None:
    allow()
    with Ledger.open() as ledger:
        ledger.set_budget("digits/stages-2/1", 1.0, 1e-5)
    refused = cli(*options(tmp_path / "out", "ldpdc"))
    assert refused.code == 3 and "digits/stages-2/1" in refused.err and "'digits'" not in refused.err
    with Ledger.open() as ledger:
        account = ledger.account("digits/stages-2/1")
    assert account is not None and account.epsilon == 1.0 and not account.bookings


def test_a_spent_data_set_is_not_spent_again_in_stages(cli: Cli, tmp_path: Path) -> None:
    """All stages of all methods are refused at once, before anything is booked or made."""
    with Ledger.open() as ledger:
        ledger.set_budget("digits", 1.0, 1e-5)
        ledger.book("digits", plan="{}", method="dm", epsilon=1.0, delta=1e-5, counts={"sum": 1})
    refused = cli(*options(tmp_path / "out"), "--json")
    message = refused.json["error"]["message"]
    assert refused.code == 3 and "Nothing was booked" in message and "remaining 0.0" in message
    command = refused.json["error"]["next_command"].split()
    assert command[:4] == ["limbeck", "budget", "set", "digits"] and not (tmp_path / "out").exists()
    with Ledger.open() as ledger:
        assert [(found.dataset, found.spent_epsilon) for found in ledger.accounts()] == [("digits", 1.0)]
    assert cli(*command[1:]).code == 0  # the owner's decision; what the refusal names is enough
    assert cli(*options(tmp_path / "out")).code == 0


def test_the_whole_after_the_stages_is_refused_where_nothing_is_left(cli: Cli, tmp_path: Path) -> None:
    with Ledger.open() as ledger:
        ledger.set_budget("digits", 8.0, 1e-5)
    assert cli(*options(tmp_path / "out", "ldpdc")).code == 0
    words = ("--method", "ldpdc", "--epsilon", 8, "--set", "per_class=2", "--set", "L=999", "--out", tmp_path / "whole")
    refused = cli("condense", "digits", *words)
    assert refused.code == 3 and "'digits'" in refused.err and not (tmp_path / "whole").exists()


def test_a_first_booking_is_no_budget_for_a_course(cli: Cli, tmp_path: Path) -> None:
    with Ledger.open() as ledger:
        ledger.book("digits", plan="{}", method="dm", epsilon=1.0, delta=1e-6, counts={"sum": 1})
    refused = cli(*options(tmp_path / "out", "ldpdc"))
    assert refused.code == 3 and "Nobody has set a budget for data set 'digits'" in refused.err
    with Ledger.open() as ledger:
        assert ledger.split("digits", "stages-2") is None
    for part in ("stage-1:0,1", "stages-2/1:0,1,2,3,4"):
        with pytest.raises(BudgetRefused, match="part of a data set"):
            one_stage(tmp_path / "stage", part)
    assert not (tmp_path / "stage").exists()


def test_a_stage_makes_no_ledger(cli: Cli, tmp_path: Path, own_home: Path) -> None:
    refused = cli(*options(tmp_path / "out", "ldpdc"))
    assert refused.code == 3 and "limbeck budget set digits --epsilon" in refused.err
    with pytest.raises(LedgerFault, match="There is no ledger"):
        one_stage(tmp_path / "stage")
    assert not list(own_home.iterdir()) and not (tmp_path / "out").exists()


def test_what_the_refusal_names_for_two_methods_is_enough(cli: Cli, tmp_path: Path) -> None:
    refused = cli(*options(tmp_path / "out"), "--json")
    command = refused.json["error"]["next_command"].split()
    assert cli(*command[1:]).code == 0
    assert cli(*options(tmp_path / "out")).code == 0


def one_stage(out: Path, part: str = "stages-5/1:0,1") -> None:
    """A stage by itself, past the checks of a course."""
    request = asked(data="digits", part=part)
    plan, source = plan_for(request.data, "ldpdc", {"per_class": 2, "L": 999}, 1.0, 1e-5)
    condense(request, plan, source, out, Silent())


def test_stages_share_out_the_classes() -> None:
    assert stage_classes(10, 5) == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
    for classes, stages in ((10, 3), (10, 0), (10, -1), (10, 10), (3, 2)):
        with pytest.raises(BadInput, match="stages"):
            stage_classes(classes, stages)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--methods", "nonsense"), "no method 'nonsense'"), (("--methods", ""), "at least one method"),
        (("--methods", "dm"), "not private"), (("--methods", "ldpdc", "--stages", 3), "stages"),
        (("--methods", "ldpdc", "--set", "L=3"), "METHOD.key=value"), (("--methods", "ldpdc", "--epsilon", "inf"), "epsilon"),
        (("--methods", "ldpdc", "--set", "dpsgd.T=3"), "not among --methods"),
        (("--methods", "ldpdc", "--repeats", 0), "repeats"),
        (("--methods", "ldpdc", "--model", "nonsense"), "nonsense"), (("--methods", "ldpdc", "--preset", "nonsense"), "nonsense"),
    ],
)  # fmt: skip
def test_bad_input_costs_nothing(cli: Cli, tmp_path: Path, words: tuple[Any, ...], shown: str) -> None:
    refused = cli("continual", "digits", "--epsilon", 1, "--out", tmp_path / "out", *words)
    assert refused.code == 2 and shown in refused.err and "Traceback" not in refused.err
    assert not (tmp_path / "out").exists()
    with Ledger.open() as ledger:
        assert ledger.accounts() == []


def test_settings_belong_to_a_method() -> None:
    assert settings_by_method("a, b", ["a.x=1", "a.y=2=3"]) == {"a": {"x": "1", "y": "2=3"}, "b": {}}


def test_a_course_from_before_there_were_sizes_goes_on_with_pictures_as_they_are(
    course: tuple[Path, dict[str, Any]], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from limbeck.experiments import continual

    shutil.copytree(course[0], tmp_path / "kept")
    out, sizes, real = tmp_path / "kept" / "out", [], continual.score_sets

    def listen(folders: Any, tests: Any, protocol: Any) -> Any:
        sizes.append(protocol.size)
        return real(folders, tests, protocol)

    monkeypatch.setattr(continual, "score_sets", listen)
    arguments = [*options(out), "--ledger", tmp_path / "kept" / "ledger.sqlite"]
    (out / "ldpdc" / "stage-2.json").unlink()
    assert cli(*arguments).code == 0 and sizes == [None]
    asked = json.loads((out / "course.json").read_text())
    assert asked.pop("size") is None
    (out / "course.json").write_text(json.dumps(asked))
    (out / "ldpdc" / "stage-2.json").unlink()
    assert cli(*arguments).code == 0 and sizes == [None, 0]
