"""Help, examples, suggestions and `doctor`: what a newcomer meets before anything works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from limbeck.cli.groups import COMMANDS, epilog
from limbeck.cli.main import app

TREE: Any = typer.main.get_command(app)


def commands(group: Any = TREE, words: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*words, name))
        else:
            found[" ".join((*words, name))] = command
    return found


ALL = commands()
EXAMPLES = [(name, example) for name, (_, examples) in COMMANDS.items() for example in examples if name in ALL]


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("federate")])
def test_every_command_has_an_example_in_its_help(name: str, cli: Any) -> None:
    shown = " ".join(cli(*name.split(), "--help").out.split())
    assert "Example" in shown and f"limbeck {name}" in shown


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_every_example_is_a_command_that_can_be_read(name: str, example: str) -> None:
    """Parsed with all its options, and not run."""
    import shlex

    words = shlex.split(example)
    assert words[: 1 + len(name.split())] == ["limbeck", *name.split()]
    with click.Context(TREE, info_name="limbeck") as context:
        ALL[name].make_context(name, words[1 + len(name.split()) :], parent=context).close()


def test_every_command_at_the_top_stands_in_a_group(cli: Any) -> None:
    assert {name.split()[0] for name in ALL} <= set(COMMANDS)
    shown = cli("--help").out
    places = [shown.index(title) for title in ("Know before you spend", "Make a set", "Share it", "Use and judge it")]
    assert places == sorted(places) and "─ Commands" not in shown and "--install-completion" in shown


def test_an_epilog_has_a_line_for_each_example() -> None:
    assert epilog(()) == "" and epilog(("a", "b")).split("\n\n") == ["Examples:", "a", "b"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("condens", "digits"), "Did you mean 'condense'?"),
        (("plan", "digits", "--method", "elixer", "--epsilon", "1"), "Did you mean 'elixir'?"),
        (("plan", "digits", "--method", "ldpdc", "--set", "sigm=2", "--epsilon", "1"), "Did you mean 'sigma'?"),
        (("plan", "fashon-mnist", "--epsilon", "1"), "Did you mean 'fashion-mnist'?"),
        (("data", "get", "minst"), "Did you mean 'mnist'?"),
        (("plan", "digits", "--epsilom", "1"), "--epsilon"),
    ],
)
def test_misspelt_words_are_answered_with_the_right_one(words: tuple[str, ...], hint: str, cli: Any) -> None:
    ended = cli(*words)
    assert ended.code in (2, 4) and ended.err.count(hint) == 1 and "?." not in ended.err


def test_a_misspelt_file_is_answered_with_the_one_that_is_there(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    assert f"Did you mean '{tmp_path / 'people.csv'}'?" in cli("plan", tmp_path / "peolpe.csv", "--epsilon", "1").err


def test_a_sweep_has_the_same_default_method_as_all_others(cli: Any, tmp_path: Path) -> None:
    ended = cli("sweep", "digits", "--vary", "epsilon=1", "--set", "per_class=2", "--out", tmp_path / "out", "--price")
    assert ended.code == 0 and "by elixir" in ended.err
    ours = {word for command in ALL.values() for each in command.params for word in each.opts if word == "--method"}
    assert ours == {"--method"}
    assert all(each.default is None for command in ALL.values() for each in command.params if "--method" in each.opts)


def test_the_shell_completes_commands() -> None:
    words = {"_LIMBECK_COMPLETE": "complete_bash", "COMP_WORDS": "limbeck conde", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'limbeck'; from limbeck.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["condense"]


# --- doctor ---


def test_doctor_finds_a_machine_that_is_ready(cli: Any, own_home: Path) -> None:
    ended = cli("doctor")
    assert ended.code == 0 and ended.out.rstrip().endswith("ready") and "WRONG" not in ended.out
    assert not (own_home / "ledger.sqlite").exists()
    values = cli("doctor", "--json").json
    found = {each["name"]: each for each in values["findings"]}
    assert values["ready"] is True and {"python", "torch", "threads", "device", "free memory", "ledger"} <= set(found)
    assert found["kernel stacked convolution"]["ok"] is True and "none yet" in found["ledger"]["value"]


def test_doctor_says_what_to_install(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "psycopg" else find(name, *more)
    )
    shown = cli("doctor").out
    assert "pip install 'limbeck[postgres]'" in shown and "not installed (psycopg)" in shown


def test_doctor_finds_a_damaged_ledger_and_leaves_it(cli: Any, own_home: Path) -> None:
    path = own_home / "ledger.sqlite"
    path.write_bytes(b"no ledger at all, but long enough to be looked at" * 40)
    before = path.read_bytes()
    ended = cli("doctor", "--json")
    assert ended.code == 5 and json.loads(ended.out)["ready"] is False and path.read_bytes() == before
    assert "limbeck: " in ended.err


def test_doctor_finds_a_kernel_that_computes_wrongly(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from limbeck.nets.kernels import self_test

    plain = self_test.plain_norm_relu_pool
    monkeypatch.setattr(self_test, "plain_norm_relu_pool", lambda *given: plain(*given) * 1.01)
    ended = cli("doctor")
    assert ended.code == 1 and "NOT READY" in ended.out and "WRONG" in ended.out
