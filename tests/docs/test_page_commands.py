"""Every command that a document shows is one: the command is there, with these options, and takes values of this kind."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import click
import pytest
from tests.docs.blocks import PAGES, REPOSITORY, Block, blocks, inline_commands
from typer.main import get_command

from limbeck.cli.main import app

OTHERS = {"source", "pre-commit", "cd", "export", "mkdir", "docker", "python3"}  # not ours to check
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which speaks of what was, too
SHELL = [block for page in CURRENT for block in blocks(page) if block.is_shell]


def found(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that these words name, and what is left for it."""
    command, rest = get_command(app), list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(click.Context(command), rest[0])
        assert inner is not None, f"there is no command {rest[0]!r} in 'limbeck {' '.join(words)}'"
        command, rest = inner, rest[1:]
    return command, rest


def check_limbeck(words: list[str]) -> None:
    command, rest = found(words)
    assert not isinstance(command, click.Group), f"'limbeck {' '.join(words)}' is no whole command"
    command.make_context("limbeck", rest)


def check(words: list[str]) -> None:
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    match words:
        case ["limbeck", *rest]:
            check_limbeck(rest)
        case ["torchrun", *rest]:
            check_limbeck(rest[rest.index("limbeck") + 1 :])
        case ["make", target, *_]:
            assert re.search(rf"^{re.escape(target)}:", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None
        case ["python", path, *_]:
            assert (REPOSITORY / path).exists()
        case ["pip", "install", *things]:
            check_extras(things)
        case [other, *_]:
            assert other in OTHERS, f"{other!r} is no command that this project knows; tag the block ```text"


def check_extras(things: list[str]) -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = [name for thing in things for part in re.findall(r"\[([^\]]+)\]", thing) for name in part.split(",")]
    assert set(asked) <= set(extras)


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.name)
def test_commands_of_a_block_are_commands(block: Block) -> None:
    assert block.commands, "an empty block, or one of remarks alone"
    for words in block.commands:
        check(words)


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_commands_in_running_text_are_commands(page: Path) -> None:
    for text in inline_commands(page):
        words = text.split()[1:]
        if words == ["COMMAND", "--help"] or not words[0][0].isalpha() or words[0].isupper():
            continue
        command, rest = found(words)
        if isinstance(command, click.Group):
            continue
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        options = {word.partition("=")[0].rstrip(",.") for word in rest if re.match(r"--[a-z]", word)}
        assert options <= known | {"--help", "--version"}, f"{text}: {options - known}"


def test_a_command_that_is_none_is_noticed() -> None:
    for wrong in (
        "condens mnist --epsilon 1",
        "condense mnist --epsilom 1 --out x",
        "plan mnist --per-class many",
        "budget",
    ):
        with pytest.raises((AssertionError, click.UsageError)):
            check(["limbeck", *wrong.split()])
    with pytest.raises(AssertionError):
        check(["make", "nothing"])
    with pytest.raises(AssertionError):
        check(["pip", "install", "limbeck[nothing]"])
    with pytest.raises(AssertionError):
        check(["limbek", "plan"])
