"""The release folder: a synthetic set with its pictures, or a model, and its card and its certificate.

It holds nothing that was not paid for. What a model's files are is in `limbeck.model`, a generator's in `limbeck.generator`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck import certificate as certificates
from limbeck.data.arrays import stored
from limbeck.data.writer import write_atomic, write_npz, write_parquet, write_snapshots
from limbeck.editions import require_no_owner_copy
from limbeck.errors import BadInput, DataNotFound, DataUnreadable, NotAuthentic
from limbeck.generator import write_generator
from limbeck.methods import Result, SyntheticSet, TrainedModel
from limbeck.model import write_model
from limbeck.plan import Plan
from limbeck.schema import Schema
from limbeck.vault.noise import Randomness

SNAPSHOTS = "snapshots.npz"  # the set as it was on the way, where a method keeps that
COURSE = "course.json"  # numbers by step, made of answers, where a method writes them down


@dataclass(frozen=True, kw_only=True)
class ReleaseWriter:
    """Writes a synthetic set or a model and everything around it. Knows public values only."""

    plan: Plan
    schema: Schema
    randomness: Randomness
    key: Path
    drawn: Callable[[], Mapping[str, int]]  # answers given, as the ledger counted them

    def write(self, folder: Path, result: Result) -> None:
        """The certificate comes last, so a folder that has one is complete."""
        # Card and page show the certificate, and the certificate hashes card and page: they get it without the hashes.
        shown = self._certificate(result, {})
        if isinstance(result, TrainedModel):
            self._write_model(folder, result, shown)
        else:
            self._write_set(folder, result, shown)
        write_atomic(folder / "config.json", as_json({"plan": self.plan.to_dict(), "schema": self.schema.to_dict()}))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        require_no_owner_copy(files)
        hashes = {path.relative_to(folder).as_posix(): certificates.file_hash(path) for path in files}
        signed = certificates.sign(self._certificate(result, hashes), certificates.signing_key(self.key))
        write_atomic(folder / certificates.NAME, as_json(signed))

    # The plotting and template libraries take a second to import, which planning and asking need not wait for.

    def _write_set(self, folder: Path, result: SyntheticSet, shown: dict[str, Any]) -> None:
        from limbeck.report.card import data_card
        from limbeck.report.page import Report, render
        from limbeck.report.pictures import release_grid, save_png
        from limbeck.report.strips import class_strips, way_strips

        (folder / "data").mkdir(exist_ok=True)
        write_npz(folder / "set.npz", result.x, result.y)
        if result.snapshots is not None:
            write_snapshots(folder / SNAPSHOTS, result.snapshots, result.y, np.asarray(result.snapshots_after))
        if result.course:
            write_atomic(folder / COURSE, as_json(result.course))
        write_parquet(folder / "data" / "train.parquet", result.x, result.y, self.schema)
        save_png(release_grid(result.x, result.y, self.schema), folder / "grid.png")
        counts = np.bincount(result.y, minlength=len(self.schema.classes)).tolist()
        if result.generator is not None:
            write_generator(folder, result.generator, self.schema, counts)
        made_by = None if result.generator is None else result.generator.spec
        write_atomic(folder / "README.md", data_card(shown, self.schema, counts, made_by).encode())
        strips = class_strips(result.x, result.y, self.schema) if self.schema.is_image else ()
        kept = result.snapshots if self.schema.is_image else None
        report = Report(
            certificate=shown,
            schema=self.schema,
            grid=None if strips else (folder / "grid.png").read_bytes(),
            strips=strips,
            way=() if kept is None else way_strips(kept, np.asarray(result.snapshots_after), result.y, self.schema),
            course=result.course,
            generator=made_by is not None,
        )
        write_atomic(folder / "report.html", render(report).encode())

    def _write_model(self, folder: Path, result: TrainedModel, shown: dict[str, Any]) -> None:
        from limbeck.report.model_card import model_card
        from limbeck.report.page import report_page

        write_model(folder, result, self.schema)
        write_atomic(folder / "README.md", model_card(shown, self.schema, result.net).encode())
        write_atomic(folder / "report.html", report_page(shown, self.schema, None, None).encode())

    def _certificate(self, result: Result, hashes: dict[str, str]) -> dict[str, Any]:
        return certificates.certify(
            plan=self.plan,
            schema=self.schema,
            drawn=self.drawn(),
            randomness=self.randomness,
            records=len(result.y) if isinstance(result, SyntheticSet) else 0,
            files=hashes,
            content=certificates.SET if isinstance(result, SyntheticSet) else certificates.MODEL,
        )


@dataclass(frozen=True, eq=False)
class Release:
    """A release read back: the exact numbers, and what its certificate says."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    certificate: dict[str, Any]
    schema: Schema


def read_release(folder: Path) -> Release:
    """Read the set of a release. `limbeck verify` checks it; this only needs it to be whole."""
    certificate = certificates.read(folder)
    if certificates.content_of(certificate) == certificates.MODEL:
        raise BadInput(f"The release in {folder} is a trained model, not a set; in Python limbeck.load_model opens it.")
    try:
        content = stored(folder / "set.npz", ("x", "y"))
        schema = Schema.from_dict(certificate["public_assumptions"])
        return Release(content["x"], content["y"], certificate, schema)
    except (OSError, KeyError, TypeError, BadInput, DataNotFound, DataUnreadable):
        raise NotAuthentic(
            f"The release in {folder} is damaged: set.npz cannot be read.", f"limbeck verify {folder}"
        ) from None


def as_json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
