"""What to type next, where a command has made something."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limbeck.runs.planning import Quote


def next_commands(release: Path) -> list[str]:
    """What to type after a set was made; sampling only where the release holds a generator."""
    from limbeck.release.certificate import GENERATOR_FILES
    from limbeck.release.destination import command_on

    commands = [
        command_on("verify", release),
        f"{command_on('evaluate', release)} --test TEST",
        command_on("report", release),
    ]
    if (release / GENERATOR_FILES[0]).exists():
        commands.append(f"{command_on('sample', release)} --count 1000")
    return [*commands, command_on("bundle", release)]


def after_the_demo(release: Path) -> list[tuple[str, str]]:
    """What to try next: the same release, then the reader's own data."""
    from limbeck.release.destination import command_on

    checks = [(command_on("verify", release), "check its epsilon, files and signature, as anybody can")]
    if any("limbeck sample" in command for command in next_commands(release)):
        checks.append((f"{command_on('sample', release)} --count 100", "more records, free"))
    return [
        *checks,
        (command_on("serve", release.parent), "look at it in a browser"),
        ("limbeck schema draft DATA --out DATA.limbeck.toml", "your own data: say what is public"),
        ("limbeck plan DATA --epsilon 1", "what a set of it will ask and cost"),
        ("limbeck condense DATA --epsilon 1 --out release", "make it"),
    ]


def after_the_plan(found: Quote, ledger: Path | None = None) -> str:
    """What to type now: a look at a budget that is too small, an attempt for nothing where there is a warning, else the run."""
    left = found.forecast.remaining_after
    if left is not None and left < 0:
        return shlex.join(
            ["limbeck", "budget", "show", found.plan.dataset, *([] if ledger is None else ["--ledger", str(ledger)])]
        )
    words = (
        [word for word in sys.argv[1:] if word not in ("plan", "--json")]
        if "plan" in sys.argv[1:2]
        else [found.plan.dataset]
    )
    verb = "condense" if found.forecast.warning is None else "rehearse"
    if verb == "rehearse":
        words = without(words, ("--ledger", "--real-accuracy"))
    return shlex.join(
        ["limbeck", verb, *words, "--out", f"{found.plan.dataset}-{'set' if verb == 'condense' else 'rehearsal'}"]
    )


def without(words: list[str], options: tuple[str, ...]) -> list[str]:
    """The words but for these options and their values.

    >>> without(["scans", "--ledger", "book", "--json", "--ledger=other"], ("--ledger",))
    ['scans', '--json']
    """
    kept, value = [], False
    for word in words:
        if not value and word not in options and word.partition("=")[0] not in options:
            kept.append(word)
        value = not value and word in options
    return kept
