"""Accuracy against the epsilon spent so far, from the sets that one run kept on the way."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.data import DataSource
from limbeck.data.arrays import stored
from limbeck.errors import BadInput, DataUnreadable
from limbeck.evaluate.downstream import evaluate, require_repeats
from limbeck.evaluate.marks import marks
from limbeck.evaluate.presets import preset_named
from limbeck.evaluate.release import require_same_form
from limbeck.evaluate.spread import spread
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import finite_or_word
from limbeck.progress import Reporter
from limbeck.release.formats import SNAPSHOTS
from limbeck.release.reader import Release, read_release
from limbeck.vault.encoding import encode


def curve_of(
    folder: Path,
    test: DataSource,
    model: str,
    preset: str | None,
    repeats: int,
    seed: int,
    device: str,
    shown: Reporter,
) -> dict[str, Any]:
    """Train on every kept set and score each on the test records; whose figures they are is stated."""
    require_repeats(repeats)
    found = read_release(folder)
    require_same_form(found, test)
    sets, after = read_snapshots(folder, found)
    chosen = preset_named(preset or ("cpu" if device == "cpu" else "paper")).fitted(found.schema)
    records = test.load()
    scored = encode(records.x, found.schema), torch.from_numpy(records.y)
    labels, classes = torch.from_numpy(found.y), len(found.schema.classes)
    points = []
    shown.start(f"curve of {folder.name}", len(sets), 0)
    for place, (x, answers) in enumerate(zip(sets, after, strict=True)):
        score = evaluate(
            torch.from_numpy(x), labels, *scored, classes, (model,), chosen, repeats, seed, device
        )[model]  # fmt: skip
        measured = spread(score.runs)
        points.append(
            {
                "step": int(answers),
                "epsilon": spent_after(found, int(answers)),
                "accuracy": measured.pop("mean"),
                **measured,
            }
        )
        shown.advance(place + 1)
    return {
        "title": f"{found.certificate.method} on {found.schema.name}: accuracy against the epsilon spent so far",
        "x": "epsilon spent",
        "release": folder.name,
        "method": found.certificate.method,
        "model": model,
        "preset": chosen.name,
        "repeats": repeats,
        "delta": found.certificate.delta,
        "adjacency": found.certificate.adjacency,
        "test": test.where,
        "points": points,
        **marks(test=test),
    }


def read_snapshots(folder: Path, found: Release) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    path = folder / SNAPSHOTS
    if not path.exists():
        raise BadInput(
            f"The release in {folder} keeps no sets of the way there, so there is no curve; the methods psg, psg-prior, dc and "
            "dsa keep them with --set snapshots=10."
        )
    try:
        content = stored(path, ("x", "after"))
        x, after = content["x"], content["after"]
    except (OSError, DataUnreadable):
        raise BadInput(f"{path} is damaged.", f"limbeck verify {folder}") from None
    if len(x) != len(after) or x.shape[1:] != found.x.shape:
        raise BadInput(f"{path} does not fit the set beside it.", f"limbeck verify {folder}")
    return x, after


def spent_after(found: Release, answers: int) -> float | str:
    """What the release's queries cost when the repeated one had given so many answers.

    Guarantee: an upper bound like the certificate's own epsilon; queries asked once count in full from the start.
    """
    queries = found.certificate.queries
    repeated = max(queries, key=lambda query: query.count)
    others = [query for query in queries if query is not repeated]
    asked = dataclasses.replace(repeated, count=min(answers, repeated.count))
    return finite_or_word(price([*others, asked], found.certificate.delta).epsilon)
