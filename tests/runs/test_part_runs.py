"""Runs on a part of a data set: declared by its owner, booked below the whole, with the records of that part alone."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from limbeck import condense, open_source, verify
from limbeck.data.parts import PartSource, hash_part_text, part_of, part_text
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.errors import BadInput, WallBreach
from limbeck.privacy.schema import Schema
from limbeck.vault.keyed_hash import record_hashes, unit_hashes
from limbeck.vault.ledger import Ledger
from limbeck.vault.part_records import hash_part, load_records

Cli = Callable[..., Any]
WORDS = ("--method", "ldpdc", "--set", "per_class=2", "--set", "L=999", "--epsilon", 1)


@pytest.fixture
def thirds(cli: Cli) -> None:
    assert cli("budget", "set", "digits", "--epsilon", 1.5, "--delta", 2e-5).code == 0
    made = cli("budget", "split", "digits", "thirds", "--hash", 3, "--json")
    assert made.code == 0 and made.json["parts"] == [f"digits/thirds/{n}" for n in (1, 2, 3)] and made.json["disjoint"]


# Commands


def test_parts_by_hash_are_condensed_and_cost_the_dearest(cli: Cli, thirds: None, tmp_path: Path) -> None:
    for part in (1, 2):
        made = cli("condense", "digits", "--part", f"thirds/{part}", *WORDS, "--out", tmp_path / str(part), "--json")
        assert made.code == 0 and made.json["dataset"] == f"digits/thirds/{part}", made.err
        assert verify(tmp_path / str(part)).dataset == f"digits/thirds/{part}"
    shown = cli("budget", "show", "--json").json["accounts"]
    whole, first, second = shown
    assert [account["dataset"] for account in shown] == ["digits", "digits/thirds/1", "digits/thirds/2"]
    assert whole["spent_epsilon_sum"] == max(first["spent_epsilon"], second["spent_epsilon"]) < 1.01
    assert first["parent"] == "digits" and not first["own_budget"] and whole["splits"][0]["parts"] == 3
    text = cli("budget", "show", "digits").out
    assert "  digits/thirds/1" in text and "split 'thirds' (3 parts by keyed hash) costs it epsilon" in text
    assert [part["dataset"] for part in cli("budget", "show", "digits", "--json").json["parts"]] == [
        "digits/thirds/1", "digits/thirds/2",
    ]  # fmt: skip
    refused = cli("condense", "digits", *WORDS, "--out", tmp_path / "whole")
    assert refused.code == 3 and "'digits'" in refused.err


def test_the_key_is_nowhere_but_in_the_ledger(cli: Cli, thirds: None, tmp_path: Path) -> None:
    with Ledger.open() as ledger:
        split = ledger.split("digits", "thirds")
    assert split is not None
    out = [cli("budget", "show", "--json").out, cli("budget", "show").out]
    out.append(cli("budget", "split", "digits", "thirds", "--hash", 3, "--json").out)
    assert cli("condense", "digits", "--part", "thirds/1", *WORDS, "--out", tmp_path / "out").code == 0
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert split.secret.hex() not in "".join(out) and split.secret not in written
    assert split.secret.hex().encode() not in written


@pytest.mark.parametrize("kind", ["hash", "classes"])
def test_a_run_on_a_part_is_resumed_and_paid_once(
    cli: Cli, thirds: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    name = "thirds/2" if kind == "hash" else "kinds/2"
    assert cli("budget", "split", "digits", "kinds", "--classes", "0,1,2;3,4,5,6;7,8,9").code == 0
    store, stored = Ledger.store, [0]

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 2:
            raise KeyboardInterrupt
        return store(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", interrupted)
        assert cli("condense", "digits", "--part", name, *WORDS, "--out", tmp_path / "out").code == 130
    kept = json.loads((tmp_path / "out" / ".run" / "run.json").read_text())["request"]["part"]
    assert kept == ("thirds/2:hash 3" if kind == "hash" else "kinds/2:3,4,5,6")
    assert cli("resume", tmp_path / "out").code == 0
    with Ledger.open() as ledger:
        account = ledger.account(f"digits/{name}")
    assert account is not None and [booking.state for booking in account.bookings] == ["finished"]
    assert len(verify(tmp_path / "out").public_assumptions.classes) == (10 if kind == "hash" else 4)


def test_a_run_on_a_part_whose_classes_were_changed_meanwhile_is_refused(
    cli: Cli, thirds: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("budget", "split", "digits", "kinds", "--classes", "0,1;2,3").code == 0

    def stopped(*_: Any, **__: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "store", stopped)
        assert cli("condense", "digits", "--part", "kinds/1", *WORDS, "--out", tmp_path / "out").code == 130
    path = tmp_path / "out" / ".run" / "run.json"
    values = json.loads(path.read_text())
    del values["sha256"]
    values["request"]["part"] = "kinds/1:2,3"
    values["schema"]["classes"] = ["2", "3"]
    values["schema"]["class_sizes"] = list((open_source("digits").schema.class_sizes or ())[2:4])
    values["schema"]["records"] = sum(values["schema"]["class_sizes"])
    path.write_text(json.dumps(values))
    refused = cli("resume", tmp_path / "out")
    assert refused.code == 10 and "other classes" in refused.err


def test_a_part_of_one_class_keeps_the_others_as_classes(cli: Cli, thirds: None, tmp_path: Path) -> None:
    assert cli("budget", "split", "digits", "each", "--classes", "0;1;2").code == 0
    made = cli("condense", "digits", "--part", "each/1", *WORDS, "--out", tmp_path / "out")
    assert made.code == 0 and len(verify(tmp_path / "out").public_assumptions.classes) == 10


def test_from_python(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.declare_split("digits", "halves", parts=2)
    made = condense(
        "digits", tmp_path / "out", epsilon=1.0, method="ldpdc", per_class=2, settings={"L": 999}, part="halves/2",
        ledger=tmp_path / "l.sqlite",
    )  # fmt: skip
    assert made.plan.dataset == "digits/halves/2"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("split", "digits", "a"), "one of the two"), (("split", "digits", "a", "--hash", 1), "2 to"),
        (("split", "digits", "a", "--hash", 2, "--classes", "0;1"), "one of the two"),
        (("split", "digits", "a", "--classes", "0,1;1"), "two parts"), (("split", "digits", "a", "--classes", "x"), "indices"),
        (("split", "digits", "a", "--classes", "0;10"), "0 to 9"), (("split", "digits", "a/b", "--hash", 2), "no slash"),
        (("split", "digits", "thirds", "--hash", 4), "already"),
    ],
)  # fmt: skip
def test_bad_splits_are_a_sentence(cli: Cli, thirds: None, words: tuple[Any, ...], shown: str) -> None:
    refused = cli("budget", *words)
    assert refused.code == 2 and shown in refused.err and "Traceback" not in refused.err


@pytest.mark.parametrize("name", ["thirds", "thirds/0", "thirds/4", "fifths/1", "thirds/1/2", "", "thirds/x"])
def test_bad_parts_are_a_sentence_and_cost_nothing(cli: Cli, thirds: None, tmp_path: Path, name: str) -> None:
    refused = cli("condense", "digits", "--part", name, *WORDS, "--out", tmp_path / "out")
    assert refused.code == 2 and "Traceback" not in refused.err and not (tmp_path / "out").exists()


def test_a_part_without_a_ledger_makes_none(cli: Cli, tmp_path: Path, own_home: Path) -> None:
    refused = cli("condense", "digits", "--part", "thirds/1", *WORDS, "--out", tmp_path / "out")
    assert refused.code == 5 and not list(own_home.iterdir())


# Which records


def records_of(x: np.ndarray, y: np.ndarray | None = None) -> Records:
    return Records(x, np.zeros(len(x), dtype=np.int64) if y is None else y)


SCHEMA = Schema(name="all", shape=(3,), classes=("a", "b"), records=400, augmentation=())


def test_hash_parts_are_disjoint_and_together_the_whole(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(400, 3)).astype(np.float32)
    y = np.arange(400) % 2
    source = DataSource(SCHEMA, "here", lambda _: Records(x, y))
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.declare_split("all", "parts", parts=4)
        found = [load_records(part_of(source, hash_part_text(f"parts/{n}", 4)), ledger) for n in (1, 2, 3, 4)]
    rows = [{tuple(row) for row in part.x.tolist()} for part in found]
    assert sum(map(len, rows)) == 400 == len(set.union(*rows))
    assert all(60 < len(part) < 140 for part in found) and all(set(part.y.tolist()) == {0, 1} for part in found)


def test_one_record_more_changes_one_part_and_the_order_of_the_file_none(tmp_path: Path) -> None:
    x = np.random.default_rng(2).normal(size=(200, 3)).astype(np.float32)
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        split = ledger.declare_split("all", "parts", parts=5)

    def parts(values: np.ndarray) -> list[frozenset[tuple[float, ...]]]:
        return [frozenset(map(tuple, hash_part(records_of(values), split, n).x.tolist())) for n in range(1, 6)]

    whole, fewer, turned = parts(x), parts(x[1:]), parts(x[::-1].copy())
    assert whole == turned and sum(before != after for before, after in zip(whole, fewer, strict=True)) == 1


def test_another_key_shares_out_otherwise(tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(size=(100, 3)).astype(np.float32)
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        first, second = (ledger.declare_split("all", name, parts=2) for name in "ab")
    assert not np.array_equal(hash_part(records_of(x), first, 1).x, hash_part(records_of(x), second, 1).x)


def test_persons_stay_together(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    units = generator.integers(0, 40, size=300)
    records = Records(generator.normal(size=(300, 3)).astype(np.float32), generator.integers(0, 2, size=300), units)
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        split = ledger.declare_split("all", "parts", parts=3, unit="patient")
    found = [hash_part(records, split, n) for n in (1, 2, 3)]
    persons = [set(part.units.tolist()) for part in found if part.units is not None]
    assert len(persons) == 3 and sum(map(len, persons)) == len(set(units.tolist())) and sum(map(len, found)) == 300
    assert np.array_equal(
        unit_hashes(records_of(records.x), b"k" * 32), record_hashes(records_of(records.x), b"k" * 32)
    )


def test_persons_without_their_numbers_are_not_shared_out(tmp_path: Path) -> None:
    source = DataSource(SCHEMA, "here", lambda _: records_of(np.zeros((4, 3), dtype=np.float32)))
    part = part_of(source, "parts/1:hash 4")
    assert part.part is not None
    personal = dataclasses.replace(part, part=dataclasses.replace(part.part, unit="patient"))
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.declare_split("all", "parts", parts=4)
        with pytest.raises(WallBreach, match="whose each record is"):
            load_records(personal, ledger)


def test_a_part_by_hash_cannot_be_read_outside_the_vault() -> None:
    part = part_of(open_source("digits"), hash_part_text("thirds/1", 3))
    assert isinstance(part, PartSource) and part.schema.class_sizes is None
    assert part.schema.records == open_source("digits").schema.records // 3
    with pytest.raises(WallBreach, match="Only a vault"):
        part.load()


def test_a_part_by_class_says_which_and_an_earlier_stage_does_not() -> None:
    part = part_of(open_source("digits"), part_text("kinds/2", [3, 4]))
    assert part.part is not None and (part.part.classes, part.part.account) == ((3, 4), "digits/kinds/2")
    assert part.schema.name == "digits/kinds/2"
    assert part_of(open_source("digits"), "stage-1:0,1").part is None


@pytest.mark.parametrize(
    "text", ["thirds/4:hash 3", "thirds:hash 3", "thirds/1:hash x", "thirds/1:hash ", "thirds/0:hash 3"]
)
def test_what_is_no_part_by_hash_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        part_of(open_source("digits"), text)


def test_the_ledger_stays_the_owners_alone(cli: Cli, thirds: None) -> None:
    with Ledger.open() as ledger:
        path = ledger.path
    assert os.stat(path).st_mode & 0o077 == 0
