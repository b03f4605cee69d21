"""A run over a federation: the same method, folder, checkpoint and release as any other; only the vault is many."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from limbeck.errors import BadInput
from limbeck.federated import routing
from limbeck.federated.folders import Federation
from limbeck.federated.owner import OwnersVault
from limbeck.federated.transport import Transport
from limbeck.federated.vault import FederatedVault
from limbeck.methods import Method
from limbeck.privacy.calibration import calibrate
from limbeck.privacy.federation import Terms, as_of_sites, views
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Query
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.release.certificate import Certificate
from limbeck.release.destination import is_unfinished
from limbeck.release.federated import Federated
from limbeck.release.signature import KeyFile, Signer
from limbeck.runs.condense import Outcome, condense
from limbeck.runs.log import SECONDS_BETWEEN_CHECKPOINTS
from limbeck.runs.planning import make_plan, method_for
from limbeck.runs.premises import Elsewhere
from limbeck.runs.record import RunRecord
from limbeck.runs.request import DataReference, Request
from limbeck.runs.resume import resume
from limbeck.vault.api import Grant
from limbeck.vault.ledger import Ledger
from limbeck.vault.sharded.group import Group
from limbeck.vault.source import PrivateSource


@dataclass(frozen=True)
class Endorsing:
    """Has the sites sign their parts."""

    vault: FederatedVault
    grant: Grant

    def federated(self, plan: Plan) -> Federated:
        return Federated(terms=self.vault.terms, views=views(plan.queries, plan.price.delta, self.vault.terms))

    def endorsed(self, stated: Certificate) -> Certificate:
        assert stated.federation is not None
        parts = self.vault.endorsements(self.grant, stated.to_dict())
        return replace(stated, federation=replace(stated.federation, parts=parts))


@dataclass(frozen=True)
class Joined:
    """The premises of a federated run; the server's own key signs the whole. `folder`: the server's."""

    vault: FederatedVault
    folder: Path
    ledger_created: bool = False

    def with_records(
        self, record: RunRecord, source: PrivateSource | None, device: torch.device, group: Group | None = None
    ) -> FederatedVault:
        return self.vault

    def signer(self, grant: Grant) -> Signer:
        return KeyFile(self.folder / "signing-key")

    def endorser(self, grant: Grant) -> Endorsing:
        return Endorsing(self.vault, grant)


def federated_plan(
    federation: Federation,
    method: str | None,
    settings: Mapping[str, Any],
    epsilon: float | None,
    delta: float,
    whole_site: bool = False,
) -> Plan:
    """What each site is asked, at what price for a record of its own. whole_site: epsilon is for all records of a site."""
    schema, terms = federation.schema, federation.terms
    made = method_for(schema, method, settings, None)
    noise = noise_for_sites(schema, terms, made, epsilon, delta) if whole_site else None
    wanted = None if whole_site else epsilon
    return make_plan(schema, made, wanted, delta, lambda queries: routing.as_asked(queries, terms), noise)


def noise_for_sites(schema: Schema, terms: Terms, method: Method, epsilon: float | None, delta: float) -> float:
    """The noise multiplier at which all answers of one site cost `epsilon` if the whole site is the unit."""
    if epsilon is None or math.isinf(epsilon) or method.fixed_noise is not None:
        raise BadInput("With a whole site as the unit give --epsilon, a number, and leave sigma out.")
    method = method.resolved(schema, epsilon)

    def at(noise: float) -> Sequence[Query]:
        found = as_of_sites(routing.as_asked(method.queries(schema, noise), terms))
        if found is None:
            raise BadInput(
                f"Method '{method.name}' adds up records, and nothing bounds what a whole site adds. A whole site can be the "
                "unit with gswgan, datalens, gpate and pategan.",
                "limbeck methods",
            )
        return found

    return calibrate(at, epsilon, delta)


def run_federated(
    folder: Path,
    federation: Federation,
    transport: Transport,
    plan: Plan | None,
    out: Path,
    reporter: Reporter,
    owner: Path | None = None,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
) -> Outcome:
    """A new run of `plan`, or the unfinished one in `out`. owner: of a simulation, the ledger that the records belong to.

    Guarantee: that of `condense` and `resume`; what is booked, is booked at every site or at none.
    """
    if owner is None:
        vault = FederatedVault(federation.terms, federation.schema, transport)
        return run_over(vault, folder, plan, out, reporter, checkpoint_seconds)
    with Ledger.open(owner) as ledger:
        vault = OwnersVault(federation.terms, federation.schema, transport, ledger)
        return run_over(vault, folder, plan, out, reporter, checkpoint_seconds)


def run_over(
    vault: FederatedVault,
    folder: Path,
    plan: Plan | None,
    out: Path,
    reporter: Reporter,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
) -> Outcome:
    """The same over a vault that is there already. folder: the server's, whose key signs the whole."""

    @contextlib.contextmanager
    def joined(*_: object) -> Iterator[Joined]:
        yield Joined(vault, folder)

    if plan is None or is_unfinished(out):
        return resume(out, reporter, reopen=joined)
    request = Request(data=DataReference(data=None, federation=str(folder)))
    return condense(request, plan, Elsewhere(vault.describe()), out, reporter, checkpoint_seconds, open_premises=joined)
