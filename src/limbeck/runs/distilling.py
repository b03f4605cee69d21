"""`limbeck.distil`: the same as the command, from Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from limbeck.progress import Reporter, Silent
from limbeck.release.signature import KeyFile
from limbeck.runs.condense import Outcome
from limbeck.runs.distil import distil as carry_out
from limbeck.runs.distil import wanted_from
from limbeck.runs.planning import sized
from limbeck.runs.request import RunOptions
from limbeck.vault.ledger.address import home


def distil(
    release: str | Path,
    out: str | Path,
    *,
    per_class: int | None = None,
    drawing: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    ledger: str | Path | None = None,
    reporter: Reporter | None = None,
) -> Outcome:
    """Make another set, of any size, of the answers that a release keeps. Costs no budget; `resume` takes it up again.

    Args:
        release: the folder of a release that keeps its answers, as those of elixir on images do.
        out: where the new release goes: a folder that is empty or not there yet.
        per_class: records of each class; None for 500, or for `rows` of the settings.
        drawing: a set that was distilled from this very release with a generator, whose pictures are the start.
        settings: by name, such as seed, rows, updates, generator; see `limbeck distil --help`.
        ledger: beside which the key lies that signs it; nothing else is used of it. None for the default one.
        reporter: told how far it is; None shows nothing.

    >>> distil("digits-set", "digits-more", per_class=20)
    Traceback (most recent call last):
    ...
    limbeck.errors.BadInput: The release in digits-set keeps no answers, so nothing more can be made of it (method 'ldpdc'). \
Sets of elixir on images keep them from version 0.6.0 on, unless answers=false.
    """
    wanted = wanted_from(sized(settings, per_class))
    key = KeyFile.beside(home(RunOptions(ledger=None if ledger is None else str(ledger)).ledger_path)).path
    started = None if drawing is None else Path(drawing)
    return carry_out(Path(release), Path(out), wanted, key, reporter or Silent(), drawing=started)
