"""sample: more records from the generator of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.checks import ReleaseFolder
from limbeck.cli.options import Json
from limbeck.cli.output import emit, reporter
from limbeck.errors import BadInput, NotReleasable, OutputFault, RunConflict

FORMS = (".npz", ".parquet", ".csv")


def register(app: typer.Typer) -> None:
    app.command()(sample)


def sample(
    release: ReleaseFolder,
    count: Annotated[int, typer.Option("--count", help="How many records, in the set's own shares of the classes.")],
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same records.")] = 0,
    label: Annotated[str | None, typer.Option("--class", help="Draw records of this class only.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            help='Of a table: draw rows that keep to this only, as "age>60", with = != < <= > >=, or "age = missing". May be '
            "repeated; all of them count.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Where they go: a new .npz (like set.npz) or .parquet, of a table .csv. Default: RELEASE-sample-SEED.npz.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw more labelled records from a release that has a generator. Costs nothing: no private record is read."""
    from limbeck.release.formats import write_csv, write_npz, write_parquet
    from limbeck.release.generator import load_generator

    _require_finished(release)
    out = out or default_path(release, seed)
    require_free(out)
    generator = load_generator(release)
    x, y = generator.sample(count, seed, label, where or ())
    if out.suffix == ".npz":
        write_npz(out, x, y)
    else:
        write = write_csv if out.suffix == ".csv" else write_parquet
        write(out, x, y, generator.schema)
    releasable = generator.certificate.releasable
    if generator.fitted:
        with reporter() as shown:
            shown.say(
                f"This generator was trained on {generator.fitted} fixed latents per class, those of the set; records "
                "from fresh latents may be worse than the set's own."
            )
    values = {
        "release": str(release),
        "out": str(out),
        "count": count,
        "seed": seed,
        "class": label,
        "where": list(where or ()),
        "fitted_latents": generator.fitted,
        "releasable": releasable,
    }
    lines = [f"records   {count}", f"out       {out}", "cost      none: they are made from the release alone"]
    if where:
        lines.insert(1, f"where     {' and '.join(where)}")
    if not releasable:
        lines.append("NOT RELEASABLE: the release is not private, so these records are not. Never share them.")
    emit(as_json, values, lines)


def require_free(out: Path) -> None:
    """Never write over a file, nor into a release, which holds only what its certificate lists."""
    from limbeck.release.destination import require_outside

    if out.suffix not in FORMS:
        raise BadInput(f"--out must end in {', '.join(FORMS[:-1])} or {FORMS[-1]}, got --out {out}.")
    folder = out.absolute().resolve().parent
    require_outside(out, NotReleasable)
    if out.exists() or out.is_symlink():
        raise RunConflict(f"{out} exists; nothing is overwritten. Choose another --out.")
    if not folder.is_dir():
        raise OutputFault(f"The folder {folder} for the records does not exist.")


def default_path(release: Path, seed: int) -> Path:
    """Beside the release, never in it."""
    release = release.absolute()
    return release.with_name(f"{release.name}-sample-{seed}.npz")


def _require_finished(release: Path) -> None:
    from limbeck.release.destination import is_unfinished, resume_command

    if is_unfinished(release):
        raise RunConflict(
            f"{release} holds a run that is not finished; there is nothing to sample yet.", resume_command(release)
        )
