"""Small releases for tests: made once, copied by whoever changes one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import working as work
from limbeck.files import as_json
from limbeck.progress import Silent
from limbeck.release import certificate as certificates

SETTINGS = {"per_class": 2, "L": 10, "sigma": 2.0}


def digits_release(root: Path, name: str = "digits", seed: int | None = None) -> Path:
    """A release of the digits in `root`, booked in a ledger there."""
    root.mkdir(parents=True, exist_ok=True)
    request = work.asked(ledger=str(root / "ledger.sqlite"), insecure_seed=seed)
    plan, source = work.plan_for(request.data, "ldpdc", SETTINGS, None, 1e-5)
    return work.condense(request, plan, source, root / name, Silent()).release


def copied(release: Path, target: Path) -> Path:
    shutil.copytree(release, target)
    return target


def signed_anew(release: Path, key: Path) -> None:
    """Sign a release again after its files were changed, as a hasty owner with a script could."""
    values: dict[str, Any] = json.loads((release / certificates.NAME).read_text())
    values.pop("signature")
    files = [path for path in release.rglob("*") if path.is_file() and path.name != certificates.NAME]
    values["files"] = {path.relative_to(release).as_posix(): certificates.file_hash(path) for path in sorted(files)}
    signed = certificates.sign(values, certificates.signing_key(key))
    (release / certificates.NAME).write_bytes(as_json(signed))
