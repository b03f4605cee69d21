"""The debugging task of GS-WGAN's federated part: some sites hold inverted pictures, and nobody may look.

    python -m benchmarks.debugging     two federations on MNIST, a score for each site, and the picture of docs/federated.md

Twenty sites share MNIST out by chance. In the first federation all is well, in the second one every other site has its
intensities inverted. GS-WGAN goes round the sites. Two things then show the fault, and neither costs anything beyond the run: the
generated pictures (both rows, as in the paper's figure), and a score for each site, the mean over its noised answers: in which
direction its critics push the brightness of the same kind of pictures. The AUC is that of the score between the two groups.

Sites are in this process (limbeck.federated.transport.InProcess); ledgers, frames and prices are as over Flower.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from PIL import Image

from limbeck.data import Records, open_source
from limbeck.federated.folders import Federation
from limbeck.federated.running import federated_plan, run_over
from limbeck.federated.site import desk_of
from limbeck.federated.splits import Share, SharedOut
from limbeck.federated.transport import InProcess
from limbeck.federated.vault import FederatedVault
from limbeck.privacy.federation import Terms
from limbeck.privacy.schema import Schema
from limbeck.progress import Lines
from limbeck.release.formats import TRAINING_CURVES
from limbeck.release.reader import read_release
from limbeck.release.signature import signing_key
from limbeck.release.verification import verify
from limbeck.report.convergence import read_training_curves
from limbeck.report.pictures import save_png
from limbeck.report.sites import site_scores
from limbeck.vault.ledger import Ledger
from limbeck.vault.noise import Randomness
from limbeck.vault.source import PrivateSource

HERE = Path(__file__).parent
SITES, BLOCK, DELTA = 20, 1, 1e-5
SETTINGS: dict[str, Any] = {"per_class": 4, "K": 15, "T": 240, "B": 60, "M": 10, "snapshots": 0}


@dataclass(frozen=True)
class Inverted:
    """The same records with black for white."""

    source: PrivateSource

    @property
    def schema(self) -> Schema:
        return self.source.schema

    def load(self) -> Records:
        records = self.source.load()
        return Records(self.schema.high + self.schema.low - records.x, records.y)


def trained(epsilon: float, inverted: bool, folder: Path) -> Path:
    source, books = open_source("mnist"), {}
    for number in range(SITES):
        (folder / f"s{number}").mkdir(parents=True)
        books[f"s{number}"] = Ledger.open(folder / f"s{number}" / "ledger.sqlite")
    keys = tuple(
        signing_key(book.path.with_name("signing-key")).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        for book in books.values()
    )
    terms = Terms(name="debugging", sites=tuple(books), keys=keys, block=BLOCK)
    federation = Federation(terms=terms, schema=source.schema, address="127.0.0.1:1", nodes=tuple(books))
    plan = federated_plan(federation, "gswgan", SETTINGS, epsilon, DELTA)
    held, desks = _Held(source), {}
    for number, (name, book) in enumerate(books.items()):
        part: PrivateSource = SharedOut(held, Share(kind="iid", sites=SITES, number=number))
        part = Inverted(part) if inverted and number % 2 else part
        book.set_budget(part.schema.name, plan.price.epsilon, DELTA)
        desks[name] = desk_of(part, book, terms, name, Randomness(), "cpu", print).answer
    vault = FederatedVault(terms, source.schema, InProcess(desks))
    return run_over(vault, folder, plan, folder / "out", Lines()).release


def scored(release: Path) -> dict[str, float]:
    """The score of each site, as the release's report shows it."""
    return site_scores(verify(release), read_training_curves(release / TRAINING_CURVES))


class _Held:
    """Read once for all sites."""

    def __init__(self, source: PrivateSource) -> None:
        self.schema, self._source, self._records = source.schema, source, None

    def load(self) -> Records:
        self._records = self._records or self._source.load()  # type: ignore[assignment]
        assert self._records is not None
        return self._records


def area(scores: dict[str, float]) -> float:
    """The AUC of the score between inverted (odd) and other sites."""
    bad, good = ([score for site, score in scores.items() if int(site[1:]) % 2 == odd] for odd in (1, 0))
    return float(np.mean([(b > g) + 0.5 * (b == g) for b in bad for g in good]))


def rows(releases: list[Path], path: Path) -> None:
    """The pictures of each release in one row, above each other."""
    strips = []
    for release in releases:
        x = (np.clip(read_release(release).x[:, 0], -1, 1) + 1) * 127.5
        chosen = x[np.arange(20) * (len(x) // 20)].astype(np.uint8)
        strips.append(np.concatenate([np.pad(each, 2, constant_values=128) for each in chosen], axis=1))
    save_png(Image.fromarray(np.concatenate(strips)).resize((20 * 64, 2 * 64), Image.Resampling.NEAREST), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--picture", type=Path, default=HERE.parent / "docs" / "images" / "federated-debugging.png")
    parser.add_argument(
        "--keep", type=Path, help="keep the release of the federation with the fault in this new folder"
    )
    given = parser.parse_args()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        made = [trained(given.epsilon, inverted, Path(scratch) / f"{inverted}") for inverted in (False, True)]
        certificate, scores = verify(made[1]), [scored(release) for release in made]
        rows(made, given.picture)
        brightness = [float(read_release(release).x.mean()) for release in made]
        if given.keep is not None:
            shutil.copytree(made[1], given.keep)
    result = {
        "data": "mnist",
        "sites": SITES,
        "settings": SETTINGS,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "unit": certificate.unit,
        "auc": area(scores[1]),
        "auc_without_fault": area(scores[0]),
        "scores": scores[1],
        "mean_of_pictures": {"without": brightness[0], "with": brightness[1]},
        "transport": "in this process",
        "cpu_seconds": round(time.process_time() - began),
    }
    path = HERE / "results" / "federated-debugging.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({name: result[name] for name in ("epsilon", "auc", "auc_without_fault", "cpu_seconds")}))


if __name__ == "__main__":
    main()
