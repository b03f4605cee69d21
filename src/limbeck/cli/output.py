"""One JSON object or a few plain lines on standard output; everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from limbeck.errors import LimbeckError
from limbeck.progress import Bar, Lines, Reporter


class Stopped(LimbeckError):
    """The user pressed Ctrl-C."""

    exit_code = 130


class Usage(LimbeckError):
    """A command or an option that does not exist, or is used in the wrong way."""

    exit_code = 2


def own_rank() -> int:
    """Which of the processes this is that torchrun has started; 0 for a process by itself. Rank 0 alone prints results."""
    text = os.environ.get("RANK", "0")
    return int(text) if "MASTER_ADDR" in os.environ and text.isdecimal() else 0


def is_rank() -> bool:
    """Whether torchrun has started this process beside others."""
    return "MASTER_ADDR" in os.environ and os.environ.get("WORLD_SIZE", "1") != "1"


def emit(as_json: bool, values: dict[str, Any], lines: Sequence[str]) -> None:
    """The result of a command."""
    print(json.dumps(values, allow_nan=False) if as_json else "\n".join(lines))


def table(rows: Sequence[Sequence[object]]) -> list[str]:
    """Columns lined up with spaces: readable on a terminal and in a pipe."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))] if texts else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in texts]


def std_text(std: float | None) -> str:
    return "-" if std is None else f"{std:.2f}"


def fail(error: LimbeckError, as_json: bool) -> int:
    """Show a foreseen failure and return its exit code."""
    if as_json:
        details = {
            "kind": type(error).__name__,
            "message": error.message,
            "exit_code": error.exit_code,
            "next_command": error.next_command,
        }
        print(json.dumps({"error": details}))
    who = f"limbeck: rank {own_rank()}" if own_rank() else "limbeck"
    print(f"{who}: {error.message}", file=sys.stderr)
    if error.next_command and error.next_command not in error.message:
        print(f"  next: {error.next_command}", file=sys.stderr)
    return error.exit_code


@contextlib.contextmanager
def reporter() -> Iterator[Reporter]:
    """A bar on a terminal, lines elsewhere."""
    if sys.stderr.isatty():
        with Bar() as bar:
            yield bar
    else:
        yield Lines()
