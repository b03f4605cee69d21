"""What to type next, where a command has made something."""

from __future__ import annotations

from pathlib import Path


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
