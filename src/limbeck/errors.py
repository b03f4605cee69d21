"""Every failure that Limbeck foresees, and the exit code that the command line gives it.

    LimbeckError                 1
     |- BadInput                 2   a value, an option or a file that cannot be right
     |   `- BadSettings          2   a method's --set key=value
     |- BudgetRefused            3   the ledger will not book the plan
     |- DataNotFound             4   no such data set, file or folder
     |   `- VaultUnreachable     4   the process that holds the records does not answer
     |- DataUnreadable           4   it is there, but it is not what it should be
     |- LedgerFault              5   the ledger file is damaged, locked or on a full disk
     |- NotAuthentic             6   a release that does not verify
     |- NotReleasable            7   intact, but not private: never share it
     |- RunConflict              8   a run folder that exists, is damaged, or belongs to another configuration
     |- OutputFault              9   the result could not be written
     |- WallBreach              10   code outside the vault broke a rule; a defect of a method, nothing was released
     |- OutOfMemory             11   the work needs more memory than this machine gives
     |   `- TooLarge            11   a file that would take more than it is allowed to; refused before it is unpacked
     `- RankLost                12   a process of a run on several ranks is gone, silent, or could not do its part

An error is a sentence for a data owner: what is wrong, with the value, and what to do next. It never holds a record.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class LimbeckError(Exception):
    """Base of all foreseen failures.

    message: a sentence for a data owner. next_command: what to type next, where there is something to type.

    >>> try:
    ...     raise BudgetRefused("The budget is spent.", "limbeck budget show")
    ... except LimbeckError as error:
    ...     print(error, error.exit_code, error.next_command)
    The budget is spent. 3 limbeck budget show
    """

    exit_code = 1

    def __init__(self, message: str, next_command: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_command = next_command


class BadInput(LimbeckError):
    exit_code = 2


class BadSettings(BadInput):
    pass


class BudgetRefused(LimbeckError):
    exit_code = 3


class DataNotFound(LimbeckError):
    exit_code = 4


class VaultUnreachable(DataNotFound):
    pass


class DataUnreadable(LimbeckError):
    exit_code = 4


class LedgerFault(LimbeckError):
    exit_code = 5


class NotAuthentic(LimbeckError):
    exit_code = 6


class NotReleasable(LimbeckError):
    exit_code = 7


class RunConflict(LimbeckError):
    exit_code = 8


class OutputFault(LimbeckError):
    exit_code = 9


class WallBreach(LimbeckError):
    exit_code = 10


class OutOfMemory(LimbeckError):
    exit_code = 11


class TooLarge(OutOfMemory):
    pass


class RankLost(LimbeckError):
    exit_code = 12


# PyTorch has no class of its own for the processor's memory, only these words.
_WORDS = ("can't allocate memory", "not enough memory", "bad_alloc", "out of memory", "Storage size calculation")


# What the loader says of a library for which there is no room in the address space.
_LOADER = ("failed to map segment", "cannot allocate memory", "cannot map zero-fill")


def ran_out(error: BaseException) -> bool:
    """Whether an error of Python, NumPy, Arrow or PyTorch means that there was too little memory."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == errno.ENOMEM
    if isinstance(error, ImportError | OSError):
        return any(word in str(error).lower() for word in _LOADER)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in _WORDS)
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about a word that is not known: what it is close to; nothing where it is close to nothing.

    >>> did_you_mean("elixer", ["elixir", "mosaic"]), did_you_mean("x", ["elixir"])
    (" Did you mean 'elixir'?", '')
    """
    names = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f" Did you mean '{names[close[0]]}'?" if close else ""


def out_of_memory(doing: str, next_command: str | None = None) -> OutOfMemory:
    """The sentence for it, without what the library says: that may tell about the records."""
    return OutOfMemory(
        f"There is not enough memory {doing}. Free some, use a larger machine, or take fewer records, smaller ones, "
        "or settings with smaller batches.",
        next_command,
    )
