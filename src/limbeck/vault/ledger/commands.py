"""The commands that a refusal names, for the ledger that refused: typed without it they would go to the default one."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from limbeck.errors import LimbeckError
from limbeck.vault.ledger.address import default_path, resolved, shown

_OF_A_LEDGER = "limbeck budget "


def on_ledger(command: str | None, ledger: Path) -> str | None:
    """
    >>> on_ledger("limbeck budget set scans --epsilon 1 && limbeck data list", Path("my book.sqlite"))
    "limbeck budget set scans --epsilon 1 --ledger 'my book.sqlite' && limbeck data list"
    """
    if command is None or resolved(ledger) == resolved(default_path()):
        return command
    option = f" --ledger {shlex.quote(shown(ledger))}"
    return " && ".join(
        f"{each}{option}" if each.startswith(_OF_A_LEDGER) and " --ledger " not in each else each
        for each in command.split(" && ")
    )


@contextlib.contextmanager
def naming(ledger: Path | None) -> Iterator[None]:
    """Every command about budgets that a failure in the block names is for this ledger. None: the default one."""
    try:
        yield
    except LimbeckError as error:
        error.next_command = on_ledger(error.next_command, default_path() if ledger is None else ledger)
        raise
