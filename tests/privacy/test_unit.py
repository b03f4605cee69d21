"""The unit may be a person: what a schema must then say, where delta lies, and that nothing is answered by record instead."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from test_certificate import original, owner, stated, write
from tiny import MemorySource

from limbeck.data.records import Records
from limbeck.errors import BadInput, NotAuthentic, WallBreach
from limbeck.methods import method_named
from limbeck.privacy.accounting import require_delta
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Column, Schema
from limbeck.privacy.unit import adjacency_and_unit
from limbeck.release.statement import read_certificate
from limbeck.release.verification import verify
from limbeck.runs.planning import make_plan
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.source import checked_records

__all__ = ["original", "owner"]  # fixtures
KEPT = sorted((Path(__file__).parents[1] / "kept").glob("*/**/certificate.json"))
GOOD: dict[str, Any] = {"name": "own", "shape": [1], "classes": ["a", "b"], "records": 5000, "label": "ill"}
PERSONS: dict[str, Any] = {**GOOD, "unit": "patient_id", "units": 700}


@pytest.fixture
def release(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "release")
    return tmp_path / "release"


# --- the schema ---


def test_absence_means_one_record() -> None:
    schema = Schema.from_dict(GOOD)
    assert (schema.unit, schema.units, schema.unit_records) == ("record", None, None)
    assert not schema.by_person and schema.privacy_units == 5000 and schema.unit_words == "one record"
    assert Schema.from_dict({**GOOD, "unit": "record"}) == schema


def test_a_person_is_named_and_counted() -> None:
    schema = Schema.from_dict(PERSONS)
    assert schema.by_person and schema.privacy_units == 700 and schema.unit_words == "one person (patient_id)"
    assert Schema.from_dict({**PERSONS, "unit_records": 4.0, "units": 7e2}).unit_records == 4


@pytest.mark.parametrize("value", [None, 0, -1, 5001, 1.5, math.nan, math.inf, True, "5", [700], 10**400])
def test_units_is_a_number_of_persons(value: object) -> None:
    with pytest.raises(BadInput, match="needs units") as caught:
        Schema.from_dict({**PERSONS, "units": value})
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("value", [0, -1, 5001, 1.5, math.nan, True, "5", [4], 10**400])
def test_unit_records_is_a_number_of_records(value: object) -> None:
    with pytest.raises(BadInput, match="unit_records must be"):
        Schema.from_dict({**PERSONS, "unit_records": value})


@pytest.mark.parametrize("edge", [{"units": 1}, {"units": 5000}, {"unit_records": 1}, {"unit_records": 5000}])
def test_the_edges_are_allowed(edge: dict[str, int]) -> None:
    assert Schema.from_dict({**PERSONS, **edge}).by_person


@pytest.mark.parametrize(
    "unit", ["", " ", " patient", "patient\n", "a\0b", "a\u2028b", "x" * 201, 3, None, ["patient"]]
)
def test_the_name_of_the_unit_is_a_plain_text(unit: object) -> None:
    with pytest.raises(BadInput, match="unit must be") as caught:
        Schema.from_dict({**PERSONS, "unit": unit})
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("entry", ["units", "unit_records"])
def test_a_record_has_no_number_of_persons(entry: str) -> None:
    with pytest.raises(BadInput, match=f"{entry}=4 is for persons"):
        Schema.from_dict({**GOOD, entry: 4})


def test_who_a_record_is_about_is_no_part_of_it() -> None:
    column = {"name": "patient_id", "low": 0, "high": 9}
    with pytest.raises(BadInput, match="'patient_id' is also listed as a column"):
        Schema.from_dict({**PERSONS, "columns": [column]})
    with pytest.raises(BadInput, match="'ill' is also the label"):
        Schema.from_dict({**PERSONS, "unit": "ill"})
    Schema.from_dict({**GOOD, "shape": [1], "columns": [{**column, "name": "record"}]})  # the word, not a column


def test_the_adjacency_stays() -> None:
    with pytest.raises(BadInput, match="Only adjacency 'add_remove'"):
        Schema.from_dict({**PERSONS, "adjacency": "replace"})


def test_what_is_not_said_is_not_written() -> None:
    """An old reader refuses what it does not know, and must not meet it where the unit is a record."""
    assert not {"units", "unit_records"} & set(Schema.from_dict(GOOD).to_dict())
    assert Schema.from_dict(GOOD).to_dict()["class_sizes"] is None  # as in every earlier version
    for values in (PERSONS, {**PERSONS, "unit_records": 3}):
        schema = Schema.from_dict(values)
        written = json.loads(json.dumps(schema.to_dict()))
        assert written["units"] == 700 and written.get("unit_records") == values.get("unit_records")
        assert Schema.from_dict(written) == schema


@pytest.mark.parametrize("path", KEPT, ids=lambda path: "/".join(path.parts[-4:-1]))
def test_schemas_of_kept_certificates_read_and_write_as_they_were(path: Path) -> None:
    values = json.loads(path.read_text())
    certificate = read_certificate(path.parent)
    assert "units" not in values["public_assumptions"] and not certificate.public_assumptions.by_person
    assert json.loads(json.dumps(certificate.public_assumptions.to_dict())) == values["public_assumptions"]
    assert json.loads(json.dumps(certificate.to_dict())) == values


def test_the_unit_is_said_where_it_is_no_record() -> None:
    assert adjacency_and_unit("add_remove", "record") == "add_remove"
    assert adjacency_and_unit("add_remove", "patient") == "add_remove of one person (patient)"


# --- delta ---


def test_delta_is_below_one_over_the_persons() -> None:
    require_delta(0.9 / 700, 700, by_person=True)
    for delta in (1 / 700, 0.5):
        with pytest.raises(BadInput, match="for N = 700 persons: it would allow all records of a person to leak"):
            require_delta(delta, 700, by_person=True)
    with pytest.raises(BadInput, match="for N = 700 records: it would allow whole records to leak"):
        require_delta(0.5, 700)


def plan_with(schema: Schema, delta: float) -> Plan:
    return make_plan(schema, method_named("ldpdc", {"per_class": 2, "L": 10, "sigma": 2.0}), None, delta)


def test_a_plan_needs_a_delta_for_the_persons() -> None:
    """More records than persons: a delta that is right for the records may be wrong for them, and the other way round never."""
    schema = Schema.from_dict({**GOOD, "records": 100_000, "unit": "patient", "units": 10_000, "class_sizes": [5, 5]})
    plan_with(schema, 0.9e-4)
    with pytest.raises(BadInput, match="N = 10000 persons"):
        plan_with(schema, 1e-4)
    with pytest.raises(BadInput, match="N = 100000 records"):
        plan_with(dataclasses.replace(schema, unit="record", units=None), 0.9e-4)


def by_person(values: dict[str, Any], units: int, unit: str = "patient") -> None:
    values["unit"] = unit
    values["public_assumptions"].update(unit="patient", units=units)


def test_a_certificate_for_persons_verifies(release: Path, owner: Ed25519PrivateKey) -> None:
    values = stated(release)
    by_person(values, 700)
    write(release, values, owner)
    certificate = verify(release)
    assert certificate.unit == "patient" and certificate.public_assumptions.units == 700
    assert json.loads(json.dumps(certificate.to_dict())) == stated(release)


def test_a_certificate_whose_unit_is_said_twice_and_differently_does_not(
    release: Path, owner: Ed25519PrivateKey
) -> None:
    for unit in ("record", "person", "Patient"):
        values = stated(release)
        by_person(values, 700, unit)
        write(release, values, owner)
        with pytest.raises(NotAuthentic, match="adjacency and unit do not fit"):
            verify(release)
    values = stated(release)
    values.update(unit="patient")
    values["public_assumptions"].update(unit="record")
    write(release, values, owner)
    with pytest.raises(NotAuthentic):
        verify(release)


@pytest.mark.parametrize(
    "entries", [{"units": None}, {"units": 0}, {"units": 10**9}, {"unit_records": 0}, {"persons": 3}]
)
def test_a_certificate_with_persons_that_cannot_be_does_not(
    entries: dict[str, Any], release: Path, owner: Ed25519PrivateKey
) -> None:
    values = stated(release)
    by_person(values, 700)
    values["public_assumptions"].update(entries)
    write(release, values, owner)
    with pytest.raises(NotAuthentic):
        verify(release)


def test_a_certificate_with_a_delta_for_records_does_not(release: Path, owner: Ed25519PrivateKey) -> None:
    """A delta of 1e-5 is too large for a million persons and small enough for a thousand, however many records they have."""
    values = stated(release)
    values["public_assumptions"].update(records=2_000_000)
    by_person(values, 1_000_000)
    write(release, values, owner)
    with pytest.raises(NotAuthentic, match="N = 1000000 persons"):
        verify(release)
    by_person(values, 1000)
    write(release, values, owner)
    verify(release)


# --- the vault ---


@pytest.fixture
def persons(schema: Schema) -> Schema:
    return dataclasses.replace(schema, unit="patient", units=20)


def test_the_vault_takes_no_delta_for_records(persons: Schema, records: Records, ledger: Ledger) -> None:
    codes = np.arange(len(records), dtype=np.int64)
    source = MemorySource(persons, dataclasses.replace(records, units=codes))
    of_records = dataclasses.replace(persons, unit="record", units=None, records=10)
    plan = plan_with(of_records, 0.06)
    with pytest.raises(BadInput, match="N = 20 persons"):
        LocalVault(source, ledger).grant(plan)
    assert ledger.accounts() == []


CHANGES: list[Callable[[Any], Any]] = [
    lambda codes: None,
    lambda codes: codes[:-1],
    lambda codes: codes[:, None],
    lambda codes: codes.astype(np.int32),
    lambda codes: codes.astype(np.float64),
    lambda codes: codes.astype(str),
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_vault_checks_that_every_record_has_its_person(
    change: Callable[[Any], Any], persons: Schema, records: Records
) -> None:
    codes = np.arange(len(records), dtype=np.int64)
    assert checked_records(dataclasses.replace(records, units=codes), persons).units is codes
    with pytest.raises(WallBreach, match="persons"):
        checked_records(dataclasses.replace(records, units=change(codes)), persons)


def test_the_vault_wants_no_persons_where_the_unit_is_a_record(schema: Schema, records: Records) -> None:
    assert checked_records(records, schema).units is None
    with pytest.raises(WallBreach, match="gave persons, but its unit is one record"):
        checked_records(dataclasses.replace(records, units=np.arange(len(records))), schema)


def test_columns_and_a_unit_go_together() -> None:
    schema = Schema(
        name="own", shape=(1,), classes=("a", "b"), records=9, columns=(Column(name="age", low=0, high=1),), unit="who", units=3
    )  # fmt: skip
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
