"""Join releases of several owners into one: records one after the other, and a certificate that cites all parts."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from limbeck.errors import BadInput
from limbeck.methods import SyntheticSet
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import NAME, Certificate
from limbeck.release.joined import Joined, part_file, require_one_kind
from limbeck.release.reader import read_release
from limbeck.release.signature import KeyFile
from limbeck.release.verification import require_releasable, verify
from limbeck.release.writer import Pages, ReleaseWriter
from limbeck.vault.noise import Randomness


def join(parts: Sequence[Path], name: str, out: Path, key: Path, pages: Pages) -> Certificate:
    """Write the union of these releases to `out`, which is not there yet, signed with `key`.

    Guarantee: every part is verified first; nothing is read but releases, so nothing is spent.
    """
    if len(parts) < 2:
        raise BadInput(f"There is something to join from two releases on, got {len(parts)}.")
    certificates = [verify(part) for part in parts]
    for part, certificate in zip(parts, certificates, strict=True):
        require_releasable(certificate)
        if certificate.is_model or certificate.joined is not None:
            raise BadInput(f"{part} is a model, or joined itself; join the sets of the owners.")
        if certificate.distilled is not None:
            # Whoever distilled it signed it, so its key would not tell whose records are behind it.
            raise BadInput(f"{part} was distilled from another release; join that one.")
    require_one_kind(certificates)
    dearest = max(certificates, key=lambda certificate: certificate.epsilon)
    sets = [read_release(part) for part in parts]
    plan = Plan(
        dataset=name,
        method=dearest.method,
        settings=dict(dearest.settings),
        queries=dearest.queries,
        price=dearest.accounting,
    )
    writer = ReleaseWriter(
        plan=plan,
        schema=_union_schema(name, certificates),
        randomness=Randomness(),
        signer=KeyFile(key),
        drawn=lambda: dearest.drawn,
        pages=pages,
        joined=Joined(tuple(json.loads((part / NAME).read_bytes()) for part in parts)),
    )
    out.mkdir(parents=True)
    try:
        for number, part in enumerate(parts):
            (out / part_file(number)).parent.mkdir(parents=True)
            shutil.copyfile(part / "set.npz", out / part_file(number))
        x, y = (np.concatenate([getattr(each, axis) for each in sets]) for axis in ("x", "y"))
        writer.write(out, SyntheticSet(x, y))
        return verify(out)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def _union_schema(name: str, certificates: Sequence[Certificate]) -> Schema:
    schemas = [certificate.public_assumptions for certificate in certificates]
    units = [schema.units for schema in schemas if schema.units is not None]
    return dataclasses.replace(
        schemas[0],
        name=name,
        records=sum(schema.records for schema in schemas),
        class_sizes=None,
        units=sum(units) if len(units) == len(schemas) else None,
    )
