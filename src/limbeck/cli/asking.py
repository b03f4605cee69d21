"""What is said before a run is paid for, and the question on a terminal; without one it is printed and the run goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.output import Stopped
from limbeck.progress import Reporter

if TYPE_CHECKING:
    from limbeck.data import DataSource
    from limbeck.privacy.plan import Plan
    from limbeck.privacy.schema import Schema
    from limbeck.runs.premises import Elsewhere

Yes = Annotated[bool, typer.Option("--yes", help="Go on without asking, also where a warning is shown.")]


def agree(warnings: list[str], yes: bool, shown: Reporter) -> None:
    """Show the warnings; on a terminal ask whether to go on. Nothing is booked yet."""
    for warning in warnings:
        shown.say(f"WARNING: {warning}")
    if not warnings or yes or not _on_terminal():
        return
    sys.stderr.write("Go on, and spend the budget? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stopped("Stopped; nothing was booked. With --yes it goes on without asking.")


def _on_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def warnings_for(
    schema: Schema, plan: Plan, source: DataSource | Elsewhere, real_accuracy: float | None = None
) -> list[str]:
    """Of the forecast, from public numbers; and of ranges, which the owner alone sees because the records are here."""
    from limbeck.data.ranges import range_warning
    from limbeck.data.source import DataSource
    from limbeck.runs.forecasting import forecast

    expected = forecast(schema, plan, real_accuracy=real_accuracy).warning
    ranges = range_warning(source) if isinstance(source, DataSource) else None
    return [text for text in (expected, ranges) if text is not None]
