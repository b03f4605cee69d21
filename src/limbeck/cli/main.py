"""Commands, exit codes and the last line of defence: a foreseen failure is a sentence, an unforeseen one no leak."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from limbeck.cli import budgets, checks, datasets, runs
from limbeck.cli.output import fail
from limbeck.errors import LimbeckError, OutputFault

app = typer.Typer(
    name="limbeck",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Differentially private synthetic sets. Exit codes: docs/exit-codes.md.",
)
for register in (runs.register, checks.register, budgets.register, datasets.register):
    register(app)


def main() -> None:
    """Entry point of the `limbeck` command."""
    as_json = "--json" in sys.argv
    try:
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except LimbeckError as error:
        sys.exit(fail(error, as_json))
    except KeyboardInterrupt:
        print("limbeck: stopped. What was answered so far is stored.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        sys.exit(fail(OutputFault(f"{error.strerror or 'A file could not be used'}: {error.filename}."), as_json))
    except Exception as error:
        sys.exit(_unexpected(error, as_json))


def _unexpected(error: Exception, as_json: bool) -> int:
    show = getattr(error, "format_message", None)
    if show is not None:  # a usage error of the command line library
        return fail(_Usage(f"{show()} Try 'limbeck --help'."), as_json)
    if type(error).__name__ == "Abort":
        print("limbeck: stopped.", file=sys.stderr)
        return 130
    if os.environ.get("LIMBECK_DEBUG"):
        traceback.print_exc()
    # The message of an unforeseen error may quote a record, so only its kind and place are shown.
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    text = f"An unforeseen error ({type(error).__name__} at {where}). Set LIMBECK_DEBUG=1 to see it whole, on your own screen."
    return fail(LimbeckError(text), as_json)


class _Usage(LimbeckError):
    exit_code = 2
