"""What every command promises: one JSON object with --json, plain lines without, progress on standard error only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import limbeck
from limbeck.vault.ledger import Ledger

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 2, "--set", "L=10", "--set", "sigma=2")


def test_privacy_of_a_noise_multiplier(cli: Cli) -> None:
    arguments = ("privacy", "--rate", 0.01, "--steps", 100, "--noise-multiplier", 2, "--delta", 1e-5)
    values = cli(*arguments, "--json").json
    assert {"epsilon", "epsilon_pld", "epsilon_rdp", "delta", "adjacency"} <= set(values)
    assert 0 < values["epsilon"] == min(values["epsilon_pld"], values["epsilon_rdp"])
    shown = cli(*arguments)
    assert shown.code == 0 and str(values["epsilon"]) in shown.out and values["adjacency"] in shown.out


def test_privacy_of_an_epsilon(cli: Cli) -> None:
    values = cli("privacy", "--rate", 1, "--steps", 10, "--epsilon", 1, "--json").json
    assert values["noise_multiplier"] > 1 and 0.99 < values["epsilon"] <= 1


def test_plan(cli: Cli) -> None:
    ended = cli("plan", "digits", *SMALL, "--json")
    assert {"queries", "noise_multiplier", "epsilon", "delta", "adjacency", "method", "settings"} <= set(ended.json)
    assert ended.json["noise_multiplier"] == 2.0 and ended.json["queries"][0]["count"] == 2
    shown = cli("plan", "digits", *SMALL)
    assert f"epsilon {ended.json['epsilon']}" in shown.out and "groups" in shown.out
    with Ledger.open() as ledger:
        assert ledger.accounts() == []


def test_plan_explains_how_the_budget_is_split(cli: Cli) -> None:
    values = cli("plan", "digits", "--epsilon", 1, "--set", "first=0.25", "--set", "T=50", "--json").json
    shares = {query["label"]: query["share"] for query in values["queries"]}
    assert values["method"] == "elixir" and sum(shares.values()) == pytest.approx(1)
    assert shares["features"] == pytest.approx(0.75) and shares["moments"] == pytest.approx(0.18)
    shown = cli("plan", "digits", "--epsilon", 1, "--set", "T=50").out
    assert "share of the budget" in shown and "75.0%" in shown


def test_plan_shows_the_chance_of_a_teacher(cli: Cli) -> None:
    shown = cli("plan", "digits", "--method", "gswgan", "--epsilon", 10, "--set", "K=20", "--set", "T=50").out
    assert " 0.05 " in shown and "100.0%" in shown


def test_plan_finds_the_noise(cli: Cli) -> None:
    values = cli("plan", "digits", "--method", "ldpdc", "--per-class", 2, "--epsilon", 1, "--json").json
    assert 0.99 < values["epsilon"] <= 1 and values["noise_multiplier_rdp"] > values["noise_multiplier"] > 0


def test_condense_evaluate_verify_and_budget(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    ended = cli("condense", "digits", *SMALL, "--out", out, "--json")
    assert ended.code == 0
    assert {"release", "epsilon", "delta", "seconds", "releasable", "adjacency"} <= set(ended.json)
    assert ended.json["release"] == str(out) and ended.json["releasable"] is True
    assert f"epsilon booked {ended.json['epsilon']:g}" in ended.err
    assert re.search(r"2/2, 0:00:00 left", ended.err)

    verified = cli("verify", out, "--json")
    assert verified.code == 0 and verified.json["verified"] is True
    assert verified.json["epsilon"] == ended.json["epsilon"]

    account = cli("budget", "show", "digits", "--json").json
    assert account["spent_epsilon"] == ended.json["epsilon"] and account["remaining_epsilon"] == 0.0

    result = tmp_path / "result.json"
    arguments = ("evaluate", out, "--test", "digits", "--models", "linear", "--repeats", 2, "--out", result)
    scores = cli(*arguments, "--json")
    assert scores.code == 0 and json.loads(result.read_text())["accuracy"] == scores.json["accuracy"]
    linear = scores.json["accuracy"]["linear"]
    assert set(linear) == {"mean", "std", "runs"} and len(linear["runs"]) == 2
    assert "2/2" in scores.err
    assert cli("verify", out).code == 0  # evaluating changes nothing


def test_condense_for_people(cli: Cli, tmp_path: Path) -> None:
    ended = cli("condense", "digits", *SMALL, "--out", tmp_path / "out", "--insecure-seed", 1)
    assert ended.code == 0
    assert f"release   {tmp_path / 'out'}" in ended.out and "NOT RELEASABLE" in ended.out
    assert "left" not in ended.out and "left" in ended.err
    refused = cli("verify", tmp_path / "out", "--json")
    assert refused.code == 7 and refused.json["error"]["exit_code"] == 7


def test_verify_for_people(cli: Cli, release: Path) -> None:
    shown = cli("verify", release)
    assert shown.code == 0 and "verified: epsilon" in shown.out and shown.err == ""


def test_budget_set_and_show(cli: Cli) -> None:
    assert "No data set has a budget yet" in cli("budget", "show").out
    assert cli("budget", "show", "--json").json["accounts"] == []
    values = cli("budget", "set", "digits", "--epsilon", 2, "--delta", 1e-5, "--json").json
    assert (values["epsilon"], values["spent_epsilon"], values["remaining_epsilon"]) == (2.0, 0.0, 2.0)
    assert [found["dataset"] for found in cli("budget", "show", "--json").json["accounts"]] == ["digits"]
    assert "digits" in cli("budget", "show", "digits").out
    assert cli("budget", "set", "digits", "--epsilon", "inf", "--json").json["epsilon"] == "infinity"


def test_methods(cli: Cli) -> None:
    found = {entry["name"]: entry for entry in cli("methods", "--json").json["methods"]}
    assert {"ldpdc", "ndpdc", "dm"} <= set(found)
    assert found["ndpdc"]["defaults"]["L"] == 50
    assert found["ndpdc"]["bounds"]["L"] == {"type": "int", "optional": False, "least": 1}
    assert all(entry["bounds"].keys() == entry["defaults"].keys() for entry in found.values())
    shown = cli("methods").out
    assert "ldpdc: Linear DP dataset condensation" in shown and "L=50" in shown
    assert "int, at least 1" in shown and "unit or signed" in shown


def test_one_method_by_its_name(cli: Cli) -> None:
    assert [entry["name"] for entry in cli("methods", "ldpdc", "--json").json["methods"]] == ["ldpdc"]
    unknown = cli("methods", "ldpcd", "--json")
    assert unknown.code == 2 and "Did you mean 'ldpdc'?" in unknown.json["error"]["message"]
    mistyped = cli("plan", "digits", "--epsilon", 1, "--method", "ldpdc", "--set", "l=3", "--json").json["error"]
    assert mistyped["next_command"] == "limbeck methods ldpdc"  # its settings, not those of all


def test_data_list_and_get(cli: Cli) -> None:
    found = {entry["name"]: entry for entry in cli("data", "list", "--json").json["sets"]}
    assert {"digits", "mnist"} <= set(found)
    assert "digits" in cli("data", "list").out
    assert cli("data", "get", "digits", "--json").json["name"] == "digits"
    missing = cli("data", "get", "mnist", "--json")
    assert missing.code == 4 and missing.json["error"]["exit_code"] == 4
    assert cli("data", "get", "nonsense").code in (2, 4)


def test_schema_draft(cli: Cli, table: Path, tmp_path: Path) -> None:
    text = cli("schema", "draft", table, "--label", "buys", "--json").json["schema"]
    assert "unconfirmed" in text and "age" in text
    assert cli("schema", "draft", table, "--label", "buys").out.strip() == text.strip()
    out = tmp_path / "draft.toml"
    assert cli("schema", "draft", table, "--label", "buys", "--out", out, "--json").json["path"] == str(out)
    assert out.read_text() == text and out.stat().st_mode & 0o077 == 0
    assert cli("schema", "draft", table, "--label", "buys", "--out", out).code == 8
    refused = cli("plan", table, "--schema", out, *SMALL)
    assert refused.code == 2 and "not confirmed as public" in refused.err


@pytest.mark.parametrize("arguments", [(), ("--help",), ("condense", "--help"), ("budget", "set", "--help")])
def test_help(cli: Cli, arguments: tuple[str, ...]) -> None:
    shown = cli(*arguments)
    assert shown.code == 0 and "Usage" in shown.out and shown.err == ""


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"limbeck {limbeck.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("--nonsense",),
        ("budget",),
        ("budget", "nonsense"),
        ("condense", "digits"),
        ("condense", "digits", "--nonsense"),
        ("condense", "digits", "--per-class", "many", "--out", "x"),
        ("privacy", "--rate", "often", "--steps", "1"),
    ],
)
def test_wrong_use_is_one_line(cli: Cli, arguments: tuple[str, ...]) -> None:
    refused = cli(*arguments)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("limbeck: ") and refused.err.count("\n") == 1 and "--help" in refused.err
    assert cli(*arguments, "--json").json["error"]["exit_code"] == 2


def test_an_unforeseen_error_shows_no_content(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the record of Jane Doe")

    monkeypatch.setattr("limbeck.runs.planning.plan_for", broken)
    refused = cli("plan", "digits", *SMALL, "--json")
    assert refused.code == 1 and "RuntimeError" in refused.err
    assert "Jane" not in refused.err + refused.out and "Traceback" not in refused.err


@pytest.mark.slow
def test_demo(cli: Cli, tmp_path: Path) -> None:
    ended = cli("demo", "--out", tmp_path / "demo", "--json")
    assert ended.code == 0
    assert {"release", "report", "pictures", "epsilon", "delta", "seconds", "accuracy"} <= set(ended.json)
    assert ended.json["epsilon"] <= 1
    assert max(score["mean"] for score in ended.json["accuracy"].values()) > 50
    assert all(Path(ended.json[name]).exists() for name in ("release", "report", "pictures"))
    assert cli("verify", ended.json["release"]).code == 0
    with Ledger.open() as ledger:
        assert ledger.accounts() == []  # the demonstration has a ledger of its own


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_demo_touches_nothing_of_others(cli: Cli, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "mine"
    if kind == "folder":
        out.mkdir()
    mine = out if kind == "file" else out / "letter.txt"
    mine.write_text("text")
    assert cli("demo", "--out", out).code == 8
    assert mine.read_text() == "text"
