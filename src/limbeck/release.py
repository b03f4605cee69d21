"""The release folder: the synthetic set, its pictures, its card and its certificate. Holds nothing that was not paid for."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck import certificate as certificates
from limbeck.data.writer import write_atomic, write_npz, write_parquet
from limbeck.errors import BadInput, NotAuthentic
from limbeck.methods import SyntheticSet
from limbeck.plan import Plan
from limbeck.schema import Schema
from limbeck.vault.noise import Randomness


@dataclass(frozen=True, kw_only=True)
class ReleaseWriter:
    """Writes a synthetic set and everything around it. Knows public values only."""

    plan: Plan
    schema: Schema
    randomness: Randomness
    key: Path
    drawn: Callable[[], Mapping[str, int]]  # answers given, as the ledger counted them

    def write(self, folder: Path, result: SyntheticSet) -> None:
        """The certificate comes last, so a folder that has one is complete."""
        # The plotting and template libraries take a second to import, which planning and asking need not wait for.
        from limbeck.report.card import data_card
        from limbeck.report.page import report_page
        from limbeck.report.pictures import release_grid, save_png

        (folder / "data").mkdir(exist_ok=True)
        write_npz(folder / "set.npz", result.x, result.y)
        write_parquet(folder / "data" / "train.parquet", result.x, result.y, self.schema)
        save_png(release_grid(result.x, result.y, self.schema), folder / "grid.png")
        write_atomic(folder / "config.json", as_json({"plan": self.plan.to_dict(), "schema": self.schema.to_dict()}))
        # Card and page show the certificate, and the certificate hashes card and page: they get it without the hashes.
        shown = self._certificate(result, {})
        counts = np.bincount(result.y, minlength=len(self.schema.classes)).tolist()
        write_atomic(folder / "README.md", data_card(shown, self.schema, counts).encode())
        page = report_page(shown, self.schema, (folder / "grid.png").read_bytes(), None)
        write_atomic(folder / "report.html", page.encode())
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        hashes = {path.relative_to(folder).as_posix(): certificates.file_hash(path) for path in files}
        signed = certificates.sign(self._certificate(result, hashes), certificates.signing_key(self.key))
        write_atomic(folder / certificates.NAME, as_json(signed))

    def _certificate(self, result: SyntheticSet, hashes: dict[str, str]) -> dict[str, Any]:
        return certificates.certify(
            plan=self.plan,
            schema=self.schema,
            drawn=self.drawn(),
            randomness=self.randomness,
            records=len(result.y),
            files=hashes,
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
    try:
        content = np.load(io.BytesIO((folder / "set.npz").read_bytes()), allow_pickle=False)
        schema = Schema.from_dict(certificate["public_assumptions"])
        return Release(content["x"], content["y"], certificate, schema)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, BadInput):
        raise NotAuthentic(
            f"The release in {folder} is damaged: set.npz cannot be read.", f"limbeck verify {folder}"
        ) from None


def as_json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
