"""The vault signs for others: what it booked and answered, and nothing else."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract import SCHEMA, Source, plan_of, query_of, records_of
from process_serving import Served, served

from limbeck.errors import LimbeckError, RunConflict, WallBreach
from limbeck.privacy.accounting import price
from limbeck.release.booked import sign_booked
from limbeck.release.certificate import certify
from limbeck.release.signature import ENTRY, KeyFile, Signer, check_signature
from limbeck.vault.api import Grant, Identity, Randomness
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault

FILES = {"set.npz": "0" * 64, "data/train.parquet": "a" * 64}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as book:
        book.set_budget(SCHEMA.name, 1000.0, 0.005)
        yield book


@pytest.fixture
def at(ledger: Ledger) -> Iterator[Served]:
    with served(Source(records_of()), ledger) as found:
        yield found


def booked(at: Served, **changes: Any) -> Grant:
    grant = at.vault.grant(plan_of(query_of(**changes)))
    at.vault.ask(grant, "sums", 0, Identity())
    return grant


def stated(at: Served, grant: Grant) -> dict[str, Any]:
    """As the writer of a release states it."""
    vault = at.vault
    certificate = certify(
        plan=grant.plan,
        schema=vault.describe(),
        drawn=vault.drawn(grant),
        randomness=vault.randomness,
        records=20,
        files=FILES,
    )
    return json.loads(json.dumps(certificate.to_dict()))


def test_what_was_booked_and_answered_is_signed(at: Served, ledger: Ledger) -> None:
    grant = booked(at)
    values = stated(at, grant)
    signature = at.vault.sign(grant, values)
    check_signature({**values, ENTRY: dict(signature)})
    # With the owner's own key, which lies beside the ledger.
    assert signature["public_key"] == KeyFile.beside(ledger.path).sign(values).public_key
    # What was drawn since is stated, too.
    at.vault.ask(grant, "sums", 1, Identity())
    with pytest.raises(WallBreach):
        at.vault.sign(grant, values)
    # Stated once: a second statement may be of the next second.
    values = stated(at, grant)
    check_signature({**values, ENTRY: dict(at.vault.sign(grant, values))})


QUIETER = plan_of(query_of(noise_multiplier=9.0))
CHANGES: dict[str, Any] = {
    "dataset": "other",
    "method": "other",
    "settings": {"per_class": 3},
    "private": False,
    "releasable": False,
    "epsilon": 0.1,
    "delta": 1e-9,
    "adjacency": "replace",
    "unit": "person",
    "queries": [query.to_dict() for query in QUIETER.queries],
    "drawn": {"sums": 0},
    "accounting": QUIETER.price.to_dict(),
    "generator": "insecure seed: for tests, not releasable",
    "public_assumptions": dataclasses.replace(SCHEMA, records=91).to_dict(),
    "versions": {"limbeck": 3},
    "created": "2020-01-01T00:00:00+00:00",
    "records": 0,
    "files": {"set.npz": "no hash"},
    "content": "model",
    "signature": {"algorithm": "ed25519", "public_key": "0" * 64, "value": "0" * 128},
    "format": 2,
    "sampler_delta": 0.5,
    "unknown": 1,
}


@pytest.mark.parametrize("entry", CHANGES)
def test_no_entry_may_say_anything_else(entry: str, at: Served) -> None:
    grant = booked(at)
    values = stated(at, grant)
    with pytest.raises(WallBreach):
        at.vault.sign(grant, {**values, entry: json.loads(json.dumps(CHANGES[entry]))})
    if entry in values:
        del values[entry]
        with pytest.raises(WallBreach):
            at.vault.sign(grant, values)


def test_every_entry_of_a_certificate_is_tried_here(at: Served) -> None:
    assert set(stated(at, booked(at))) <= set(CHANGES)


def test_a_smaller_price_that_agrees_with_itself_is_refused(at: Served) -> None:
    """The worst a client can do: a whole certificate of a cheaper plan, true in itself, for answers that cost more."""
    grant = booked(at)
    cheaper = dataclasses.replace(grant, plan=QUIETER)
    values = stated(at, grant)
    other = json.loads(
        json.dumps(
            certify(
                plan=QUIETER, schema=SCHEMA, drawn={"sums": 1}, randomness=Randomness(), records=20, files=FILES
            ).to_dict()
        )
    )
    for with_grant, words in ((grant, other), (cheaper, other), (cheaper, values)):
        with pytest.raises((WallBreach, RunConflict)):
            at.vault.sign(with_grant, words)


@pytest.mark.parametrize(
    "files",
    [
        {"../set.npz": "0" * 64},
        {"/set.npz": "0" * 64},
        {"a//b": "0" * 64},
        {"certificate.json": "0" * 64},
        {"set.npz": "0" * 63},
        {"set.npz": "G" * 64},
        {"a\nb": "0" * 64},
        {},
    ],
    ids=str,
)
def test_files_have_plain_names_and_hashes(files: dict[str, str], at: Served) -> None:
    grant = booked(at)
    listed = files if not files or "set.npz" in files else {**FILES, **files}
    with pytest.raises(WallBreach):
        at.vault.sign(grant, {**stated(at, grant), "files": listed})


@pytest.mark.parametrize("created", ["now", "", "2026-13-01T00:00:00+00:00", "2199-01-01T00:00:00+00:00", "x" * 5000])
def test_a_certificate_is_of_now(created: str, at: Served) -> None:
    grant = booked(at)
    with pytest.raises(WallBreach):
        at.vault.sign(grant, {**stated(at, grant), "created": created})


def test_nothing_is_signed_for_a_grant_that_is_not_open(at: Served) -> None:
    grant = booked(at)
    values = stated(at, grant)
    at.vault.close(grant)
    void = at.vault.grant(plan_of())
    at.vault.give_back(void)
    for other in (grant, void, Grant("e" * 32, grant.plan)):
        with pytest.raises(WallBreach):
            at.vault.sign(other, values)


def test_an_insecure_vault_signs_no_secure_certificate(ledger: Ledger) -> None:
    with served(Source(records_of()), ledger, Randomness(insecure_seed=3)) as at:
        grant = booked(at)
        values = stated(at, grant)
        assert values["releasable"] is False
        at.vault.sign(grant, values)
        with pytest.raises(WallBreach):
            at.vault.sign(grant, {**values, "generator": Randomness().mode, "releasable": True})


def test_whole_numbers_are_not_taken_for_others_that_are_equal(at: Served) -> None:
    """6e4 is 60000, but not the same text; one of them is signed."""
    grant = booked(at)
    values = stated(at, grant)
    other = copy.deepcopy(values)
    other["drawn"]["sums"] = 1.0
    with pytest.raises(WallBreach):
        at.vault.sign(grant, other)
    at.vault.sign(grant, values)


def test_the_same_rule_holds_for_a_vault_of_this_process(ledger: Ledger, tmp_path: Path) -> None:
    vault = LocalVault(Source(records_of()), ledger)
    grant = vault.grant(plan_of())
    vault.ask(grant, "sums", 0, Identity())
    made = certify(
        plan=grant.plan, schema=SCHEMA, drawn=vault.drawn(grant), randomness=Randomness(), records=20, files=FILES
    )
    key: Signer = KeyFile(tmp_path / "key")
    values = json.loads(json.dumps(made.to_dict()))
    check_signature({**values, ENTRY: dict(sign_booked(vault, grant, values, key))})
    spent = ledger.account(SCHEMA.name)
    assert spent is not None and spent.spent_epsilon == pytest.approx(price(grant.plan.queries, 1e-5).epsilon)
    with pytest.raises(LimbeckError):
        sign_booked(vault, grant, {**values, "method": "other"}, key)
