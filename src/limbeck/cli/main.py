"""Commands, exit codes and the last line of defence: a foreseen failure is a sentence, an unforeseen one no leak."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from importlib.metadata import version as installed_version
from typing import Annotated, Any, NoReturn

import typer

from limbeck.cli import (
    budgets,
    checks,
    compare,
    continual,
    curve,
    datasets,
    distil,
    doctor,
    evaluation,
    federated_runs,
    fidelity,
    join,
    ledger_roles,
    owner,
    publish,
    rehearse,
    report,
    runs,
    sampling,
    serve,
    sweep,
    vault,
)
from limbeck.cli.groups import lay_out
from limbeck.cli.memory import keep_freed_memory, limit_words
from limbeck.cli.output import Stopped, Usage, fail, is_rank, own_rank
from limbeck.errors import LimbeckError, OutputFault, out_of_memory, ran_out

ON_RANKS = ("condense", "resume")  # what several processes of torchrun do together
app = typer.Typer(name="limbeck", pretty_exceptions_enable=False)
for commands in (
    runs, rehearse, checks, doctor, sampling, evaluation, fidelity, sweep, compare, report, publish, serve, continual, curve,
    budgets, ledger_roles, owner, datasets, vault, federated_runs, join, distil,
):  # fmt: skip
    commands.register(app)
lay_out(app)


@app.callback(invoke_without_command=True)
def limbeck_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    """Turn a private labelled data set into a small synthetic one that is safe to share.

    Begin with 'limbeck demo'. For your own data: schema draft, plan, condense, evaluate, verify.

    A command ends with 0 if all went well, else with a number that docs/exit-codes.md explains.
    """
    if own_rank() and context.invoked_subcommand not in ON_RANKS:
        raise typer.Exit  # rank 0 does it, once
    if version:
        print(f"limbeck {installed_version('limbeck')}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Entry point of the `limbeck` command."""
    run(app)


def run(commands: typer.Typer) -> NoReturn:
    """Run one command and end the process with its exit code."""
    as_json = "--json" in sys.argv and not own_rank()
    keep_freed_memory()
    try:
        code = _built(commands)(standalone_mode=False)
        _end(code if isinstance(code, int) else 0)
    except LimbeckError as error:
        _end(fail(error, as_json))
    except KeyboardInterrupt:
        _end(fail(Stopped("Stopped."), as_json))
    except BrokenPipeError:
        # Whoever read our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if ran_out(error):
            _end(fail(out_of_memory(f"for this command{limit_words()}"), as_json))
        _end(fail(OutputFault(f"{error.strerror or 'A file could not be used'}: {error.filename}."), as_json))
    except Exception as error:
        _end(_unexpected(error, as_json))


def _end(code: int) -> NoReturn:
    """End the process. Ranks do not wait for the threads of torch.distributed, which may neither end nor keep the code."""
    if is_rank():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


@functools.cache
def _built(commands: typer.Typer) -> Any:
    """The tree of commands, built once: reading all signatures takes longer than most commands."""
    return typer.main.get_command(commands)


def _said_once(text: str) -> str:
    """Two libraries suggest the same word for a misspelt one, each in a sentence of its own.

    >>> _said_once("No such command 'x'. Did you mean 'y'? Did you mean 'y'?")
    "No such command 'x'. Did you mean 'y'?"
    """
    sentences = dict.fromkeys(re.split(r"(?<=[.?!]) ", text.strip()))
    return " ".join(sentences)


def _ended(text: str) -> str:
    """
    >>> _ended("No such option"), _ended("Did you mean 'y'?")
    ('No such option.', "Did you mean 'y'?")
    """
    return text if text.endswith("?") else f"{text.rstrip('. ')}."


def _unexpected(error: Exception, as_json: bool) -> int:
    show = getattr(error, "format_message", None)
    if show is not None:  # a usage error of the command line library
        return fail(Usage(f"{_ended(_said_once(show()))} See: {_help_command(error)}"), as_json)
    if type(error).__name__ == "Abort":
        return fail(Stopped("Stopped."), as_json)
    if os.environ.get("LIMBECK_DEBUG"):
        traceback.print_exc()
    if ran_out(error):
        return fail(out_of_memory(f"for this command{limit_words()}"), as_json)
    # The message of an unforeseen error may quote a record, so only its kind and place are shown.
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    text = f"An unforeseen error ({type(error).__name__} at {where}). Set LIMBECK_DEBUG=1 to see it whole, on your own screen."
    return fail(LimbeckError(text), as_json)


def _help_command(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'limbeck'} --help"
