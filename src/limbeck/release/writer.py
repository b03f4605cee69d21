"""The release folder: a synthetic set with its pictures, or a model, and its card and its certificate.

It holds nothing that was not paid for. A model's files are written by `limbeck.release.model`, a generator's by
`limbeck.release.generator`. Pages for people are handed in: a release does not know how it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from limbeck.files import as_json, write_atomic
from limbeck.methods import Result, SyntheticSet, TrainedModel
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.release.answers import write_answers
from limbeck.release.certificate import MODEL, NAME, SET, Certificate, certify
from limbeck.release.distilled import Distilled
from limbeck.release.editions import require_no_owner_copy
from limbeck.release.formats import SNAPSHOTS, TRAINING_CURVES, Sizes, write_npz, write_parquet, write_snapshots
from limbeck.release.generator import write_generator
from limbeck.release.joined import Joined
from limbeck.release.model import write_model
from limbeck.release.parts import Endorser
from limbeck.release.signature import Signer
from limbeck.release.verification import file_hash
from limbeck.vault.noise import Randomness

# The files that people look at, by name, from what the certificate will say, the schema, the result and how large its table is.
Pages = Callable[[Certificate, Schema, Result, Sizes | None], Mapping[str, bytes]]


@dataclass(frozen=True, kw_only=True)
class ReleaseWriter:
    """Writes a synthetic set or a model and everything around it. Knows public values only."""

    plan: Plan
    schema: Schema
    randomness: Randomness
    signer: Signer
    drawn: Callable[[], Mapping[str, int]]  # answers given, as the ledger counted them
    pages: Pages
    endorser: Endorser | None = None  # for the sites of a federation
    joined: Joined | None = None  # the parts of a union
    distilled: Distilled | None = None  # whose answers it is made of

    def write(self, folder: Path, result: Result) -> None:
        """The certificate comes last, so a folder that has one is complete."""
        # Card and page show the certificate, and the certificate hashes card and page: they get it without the hashes.
        shown = self._certificate(result, {})
        sizes = None
        if isinstance(result, TrainedModel):
            write_model(folder, result, self.schema)
        else:
            sizes = self._write_set(folder, result)
        for name, page in self.pages(shown, self.schema, result, sizes).items():
            write_atomic(folder / name, page)
        write_atomic(folder / "config.json", as_json({"plan": self.plan.to_dict(), "schema": self.schema.to_dict()}))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        require_no_owner_copy(files)
        hashes = {path.relative_to(folder).as_posix(): file_hash(path) for path in files}
        stated = self._certificate(result, hashes)
        if self.endorser is not None:
            stated = self.endorser.endorsed(stated)
        signature = self.signer.sign(stated.to_dict())
        write_atomic(folder / NAME, as_json(replace(stated, signature=signature).to_dict()))

    def _write_set(self, folder: Path, result: SyntheticSet) -> Sizes:
        (folder / "data").mkdir(exist_ok=True)
        write_npz(folder / "set.npz", result.x, result.y)
        if result.snapshots is not None:
            write_snapshots(folder / SNAPSHOTS, result.snapshots, result.y, np.asarray(result.snapshots_after))
        if result.course:
            write_atomic(folder / TRAINING_CURVES, as_json(result.course))
        sizes = write_parquet(folder / "data" / "train.parquet", result.x, result.y, self.schema)
        if result.generator is not None:
            counts = np.bincount(result.y, minlength=len(self.schema.classes)).tolist()
            write_generator(folder, result.generator, self.schema, counts)
        if result.answers is not None:
            write_answers(folder, result.answers, self.plan.method)
        return sizes

    def _certificate(self, result: Result, hashes: dict[str, str]) -> Certificate:
        certificate = certify(
            plan=self.plan,
            schema=self.schema,
            drawn=self.drawn(),
            randomness=self.randomness,
            records=len(result.y) if isinstance(result, SyntheticSet) else 0,
            files=hashes,
            content=SET if isinstance(result, SyntheticSet) else MODEL,
            federation=None if self.endorser is None else self.endorser.federated(self.plan),
        )
        return replace(certificate, joined=self.joined, distilled=self.distilled)
