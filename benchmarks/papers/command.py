"""measure, render: the papers' tables, measured here. `python -m benchmarks.papers` runs them from the repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.options import Json, Root
from limbeck.cli.output import Stopped, emit, reporter, table
from limbeck.errors import BadInput, DataNotFound, LimbeckError

if TYPE_CHECKING:
    from benchmarks.papers.run import Workshop
    from benchmarks.papers.spec import Run, Table
    from limbeck.progress import Reporter

CHECKOUT = Path("benchmarks")
Results = Annotated[
    Path | None,
    typer.Option(
        "--results",
        help="The folder of kept results. Default: benchmarks/results/papers in a checkout, else limbeck-bench.",
    ),
]
app = typer.Typer(
    name="python -m benchmarks.papers",
    help="Measure the papers' tables and write ours beside theirs.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("measure")
def measure(
    tables: Annotated[
        str | None, typer.Option("--table", help="Which tables, with commas, such as dpdc-2 or psg-1; or 'all'.")
    ] = None,
    scale: Annotated[
        str, typer.Option("--scale", help="small (seconds a row), cpu (minutes) or full (the paper's own setting).")
    ] = "small",
    rows: Annotated[
        str | None, typer.Option("--rows", help="Only runs whose name holds one of these texts, with commas.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="List the tables and their runs, and measure nothing.")] = False,
    results: Results = None,
    sets: Annotated[
        Path | None, typer.Option("--sets", help="Where the sets are kept. Default: in Limbeck's cache folder.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew, with fresh noise, what is kept already.")
    ] = False,
    taken: Annotated[
        Path | None,
        typer.Option("--from", help="Take the figure of one run from this result of 'limbeck evaluate' instead."),
    ] = None,
    device: Annotated[str, typer.Option("--device", help="Where to compute.")] = "cpu",
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Measure the rows of the papers' tables and keep every figure as JSON. What is kept already is not measured again."""
    from benchmarks.papers.run import Workshop
    from benchmarks.papers.scales import checked_scale
    from benchmarks.papers.tables import tables_named
    from limbeck.data.fetch import cache_folder
    from limbeck.release.destination import require_outside
    from limbeck.runs.execution import checked_device

    if tables is None and not show:
        raise BadInput(
            "Name a table with --table, or see them all with --list.", "python -m benchmarks.papers measure --list"
        )
    chosen = [(found, run) for found in tables_named(tables or "all") for run in _filtered(found, rows)]
    checked_scale(scale)
    checked_device(device)
    folder = results or _default_results()
    for place in (folder, sets):
        if place is not None:
            require_outside(place)
    if show:
        _list(chosen, folder, as_json)
        return
    if not chosen:
        raise BadInput(
            f"No run of {tables} has a name with {rows}.",
            f"python -m benchmarks.papers measure --table {tables} --list",
        )
    if taken is not None:
        _take(chosen, scale, taken, folder, as_json)
        return
    shop = Workshop(
        sets=sets or cache_folder() / "bench", root=None if root is None else str(root), device=device, again=again
    )
    with reporter() as shown:
        try:
            done, skipped = _measure(chosen, scale, folder, shop, shown)
        except KeyboardInterrupt:
            raise Stopped("Stopped; what was measured is kept. The same command goes on.") from None
    lines = [f"{entry['state']:9}  {entry['table']}  {entry['run']}  {entry['figures']}" for entry in done]
    lines += [f"skipped    {entry['table']}  {entry['run']}  {entry['reason']}" for entry in skipped]
    emit(as_json, {"scale": scale, "results": str(folder), "runs": done, "skipped": skipped}, lines)


def _filtered(found: Table, rows: str | None) -> list[Run]:
    """Runs by their whole name, or by a part of it where no run has that name."""
    words = [word.strip().lower() for word in (rows or "").split(",") if word.strip()]
    whole = {run.name for run in found.runs} & set(words)
    return [
        run
        for run in found.runs
        if not words or run.name in whole or any(word in run.name for word in words if word not in whole)
    ]


def _default_results() -> Path:
    return CHECKOUT / "results" / "papers" if CHECKOUT.is_dir() else Path("limbeck-bench")


def _measure(
    chosen: list[tuple[Table, Run]], scale: str, folder: Path, shop: Workshop, shown: Reporter
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from benchmarks.papers.kept import path_of, read_result, write_result
    from benchmarks.papers.run import carry_out, exists

    done: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    missing: LimbeckError | None = None
    for found, run in chosen:
        place = {"table": found.name, "run": run.name}
        if not exists(run):
            skipped.append({**place, "reason": f"there is no method '{run.method}' yet"})
            continue
        result = None if shop.again else read_result(folder, found, run, scale)
        state = "kept"
        if result is None:
            try:
                result, state = carry_out(found, run, scale, shop, shown), "measured"
            except DataNotFound as error:  # the other rows may well have their data
                missing = missing or error
                skipped.append({**place, "reason": error.message})
                continue
            write_result(folder, found, run, scale, result)
        figures = {model: score["mean"] for model, score in result["accuracy"].items()}
        file = str(path_of(folder, found, run, scale))
        done.append({**place, "state": state, "epsilon": result["epsilon"], "figures": figures, "file": file})
    if missing is not None and not done:
        raise missing
    return done, skipped


def _take(chosen: list[tuple[Table, Run]], scale: str, taken: Path, folder: Path, as_json: bool) -> None:
    from benchmarks.papers.kept import import_result, write_result

    if len(chosen) != 1:
        raise BadInput(f"--from gives the figure of one run, but {len(chosen)} are chosen; name one with --rows.")
    ((found, run),) = chosen
    path = write_result(folder, found, run, scale, import_result(found, run, scale, taken))
    emit(as_json, {"table": found.name, "run": run.name, "scale": scale, "file": str(path)}, [f"kept  {path}"])


def _list(chosen: list[tuple[Table, Run]], folder: Path, as_json: bool) -> None:
    from benchmarks.papers.kept import path_of
    from benchmarks.papers.run import exists
    from benchmarks.papers.spec import SCALES

    entries: list[dict[str, Any]] = [
        {
            "table": found.name,
            "title": found.title,
            "run": run.name,
            "method": run.method,
            "models": list(run.models),
            "has_method": exists(run),
            "kept": [scale for scale in SCALES if path_of(folder, found, run, scale).exists()],
        }
        for found, run in chosen
    ]
    rows: list[tuple[object, ...]] = [("table", "run", "kept")]
    for entry in entries:
        kept = ", ".join(entry["kept"]) if entry["has_method"] else "no method yet"
        rows.append((entry["table"], entry["run"], kept or "-"))
    emit(as_json, {"runs": entries}, table(rows))


@app.command("render")
def render(
    results: Results = None,
    page: Annotated[Path, typer.Option("--page", help="The Markdown file to write.")] = Path("docs/results.md"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if the page is not what the kept results say.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the page of results from the kept JSON files, and from nothing else. A page that marks places for tables
    (<!-- dpdc-1 --> ... <!-- end of dpdc-1 -->) keeps its own text around them."""
    from benchmarks.papers.render import filled, is_marked
    from benchmarks.papers.render import render as render_page
    from benchmarks.papers.tables import TABLES
    from limbeck.errors import OutputFault
    from limbeck.files import write_atomic
    from limbeck.release.destination import require_outside

    require_outside(page)
    folder = results or _default_results()
    there = page.read_text(encoding="utf-8") if page.is_file() else ""
    marked = is_marked(there, TABLES.values())
    text = filled(there, TABLES.values(), folder) if marked else render_page(TABLES.values(), folder, page)
    fresh = there == text
    if check and not fresh:
        raise BadInput(
            f"{page} is not what the results in {folder} say.", f"python -m benchmarks.papers render --page {page}"
        )
    if not check:
        if not page.parent.is_dir():
            raise OutputFault(f"The folder {page.parent} for the page does not exist.")
        write_atomic(page, text.encode())
    emit(as_json, {"page": str(page), "results": str(folder), "changed": not fresh}, [f"page  {page}"])
