"""Runs on a part of a data set: declared by its owner, booked below the whole, with the records of that part alone."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
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
from limbeck.vault.ledger import Ledger, Split
from limbeck.vault.ledger.booking import same_plan
from limbeck.vault.ledger.splits import split_from_row
from limbeck.vault.part_records import in_hash_part, load_records

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


TABLE = """name = "people"
shape = [1]
classes = {classes}
records = 400
{persons}
[[columns]]
name = "age"
low = 0
high = {high}
"""


@pytest.fixture
def people(tmp_path: Path) -> Callable[..., Path]:
    """A table with four classes of 100 records each, and schemas of it."""
    rows = [f"{number / 4},{number % 80},{'abcd'[number % 4]}" for number in range(400)]
    (tmp_path / "people.csv").write_text("\n".join(["age,who,label", *rows]) + "\n")

    def described(name: str, classes: str = "abcd", high: int = 100, persons: str = "") -> Path:
        path = tmp_path / f"{name}.toml"
        path.write_text(TABLE.format(classes=list(classes), high=high, persons=persons))
        return path

    return described


@pytest.mark.parametrize(
    ("split", "changed"),
    [
        (("--classes", "0,1;2,3"), {"classes": "cdab"}), (("--hash", 2), {"classes": "cdab"}),
        (("--hash", 2), {"high": 120}),
    ],
)  # fmt: skip
def test_a_changed_schema_does_not_bring_a_record_into_a_second_part(
    cli: Cli, people: Callable[..., Path], tmp_path: Path, split: tuple[Any, ...], changed: dict[str, Any]
) -> None:
    data, first, second = tmp_path / "people.csv", people("first"), people("second", **changed)
    assert cli("budget", "set", "people", "--epsilon", 1, "--delta", 1e-5).code == 0
    assert cli("budget", "split", data, "two", *split, "--schema", first).code == 0

    def made(part: int, schema: Path, out: str) -> Any:
        return cli("condense", data, "--schema", schema, "--part", f"two/{part}", *WORDS, "--out", tmp_path / out)

    assert made(1, first, "a").code == 0
    refused = made(2, second, "b")
    assert refused.code == 8 and "schema of 'people' was changed" in refused.err and not (tmp_path / "b").exists()
    assert made(2, first, "c").code == 0


def test_a_wider_column_does_not_change_the_class_of_a_record(
    cli: Cli, people: Callable[..., Path], tmp_path: Path
) -> None:
    data, schemas = tmp_path / "people.csv", (people("first"), people("second", high=120))
    assert cli("budget", "split", data, "two", "--classes", "0,1;2,3", "--schema", schemas[0]).code == 0
    for part, schema in enumerate(schemas, 1):
        words = ("--schema", schema, "--part", f"two/{part}", *WORDS, "--out", tmp_path / str(part))
        assert cli("condense", data, *words).code == 0


def test_a_part_by_hash_has_its_share_of_the_persons(cli: Cli, people: Callable[..., Path], tmp_path: Path) -> None:
    data, schema = tmp_path / "people.csv", people("s", persons='unit = "who"\nunits = 80\nunit_records = 50')
    assert cli("budget", "split", data, "ten", "--hash", 10, "--schema", schema).code == 0
    made = cli("condense", data, "--schema", schema, "--part", "ten/1", *WORDS, "--out", tmp_path / "out")
    assert made.code == 0, made.err
    public = verify(tmp_path / "out").public_assumptions
    assert (public.records, public.units, public.unit_records) == (40, 8, 40)


def test_other_records_under_the_name_of_a_part_are_not_taken_apart(
    cli: Cli, people: Callable[..., Path], tmp_path: Path
) -> None:
    data, schema, named = tmp_path / "people.csv", people("s"), tmp_path / "named.toml"
    named.write_text(schema.read_text().replace('"people"', '"people/two/1"'))
    assert cli("budget", "split", data, "two", "--hash", 2, "--schema", schema).code == 0
    assert cli("budget", "split", data, "deep", "--hash", 2, "--schema", named).code == 0
    words = ("--schema", named, "--part", "deep/1", *WORDS, "--out", tmp_path / "out")
    refused = cli("condense", data, *words)
    assert refused.code == 8 and "'people/two/1' is the account of a part" in refused.err


def test_what_is_said_next_can_be_typed(cli: Cli, people: Callable[..., Path], tmp_path: Path) -> None:
    """With the schema and the ledger; without them it would be for another data set, or another budget."""
    data, schema, ledger = tmp_path / "people.csv", people("my schema"), tmp_path / "my ledger.sqlite"
    given = ("--schema", schema, "--ledger", ledger)
    assert cli("budget", "set", "people", "--epsilon", 0.5, "--ledger", ledger).code == 0
    wanted = ("condense", data, *given, "--part", "two/1", *WORDS, "--out", tmp_path / "a", "--json")

    def then(command: str) -> Any:
        return cli(*shlex.split(command)[1:])

    split = then(cli(*wanted).json["error"]["next_command"])
    assert split.code == 0 and "2 parts" in split.out
    assert then(cli(*wanted).json["error"]["next_command"]).code == 0  # the budget that it takes
    said = next(line for line in split.out.splitlines() if line.startswith("next")).removeprefix("next").strip()
    run = then(said.replace("OUT", shlex.quote(str(tmp_path / "a"))) + " --method ldpdc --set per_class=2 --set L=999")
    assert run.code == 0, run.err
    lower = cli("budget", "set", "people", "--epsilon", 0.1, "--ledger", ledger, "--json")
    assert then(lower.json["error"]["next_command"]).code == 0
    for words in (("show", "others"), ("void", "people", "nothing")):
        failed = cli("budget", *words, "--ledger", ledger, "--json")
        assert failed.code == 4 and then(failed.json["error"]["next_command"]).code == 0
    assert not Path(os.environ["LIMBECK_LEDGER"]).exists()


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


def part_of_hash(records: Records, split: Split, part: int) -> Records:
    return records.only(in_hash_part(records, split, part))


SCHEMA = Schema(name="all", shape=(3,), classes=("a", "b"), records=400, augmentation=(), low=0, high=255)


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
        return [frozenset(map(tuple, part_of_hash(records_of(values), split, n).x.tolist())) for n in range(1, 6)]

    whole, fewer, turned = parts(x), parts(x[1:]), parts(x[::-1].copy())
    assert whole == turned and sum(before != after for before, after in zip(whole, fewer, strict=True)) == 1


def test_a_record_is_in_one_part_whether_it_is_held_in_bytes_or_floats(tmp_path: Path) -> None:
    """Pictures of 8 bits become floats where the schema's range is wider, or where a file holds them so."""
    eight = np.random.default_rng(5).integers(0, 256, size=(300, 3)).astype(np.uint8)
    eight[:2] = 0
    held = eight.astype(np.float32)
    held[1] = -0.0
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        split = ledger.declare_split("all", "parts", parts=5)
    for part in range(1, 6):
        assert np.array_equal(in_hash_part(records_of(eight), split, part), in_hash_part(records_of(held), split, part))
    odd = np.array([[0.5, 0, 0], [-1, 0, 0], [256, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0]], dtype=np.float32)
    key = b"k" * 32
    assert np.array_equal(unit_hashes(records_of(odd), key, by_value=True), record_hashes(records_of(odd), key))


def test_a_split_from_before_keeps_its_parts(tmp_path: Path) -> None:
    """Splits of versions before 0.6.0 go by the bytes in memory; their row holds the number of parts alone."""
    held = np.arange(300, dtype=np.float32).reshape(100, 3) % 256
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        split = ledger.declare_split("all", "parts", parts=2)
        assert ledger.split("all", "parts") == split and split.by_value
    row = ("all", "before", "hash", "2", "yes", split.secret.hex())
    before = split_from_row(row)
    assert not before.by_value and before.listed == "2" and before.same_parts(dataclasses.replace(split, name="before"))
    places = record_hashes(records_of(held), split.secret)[:, 0] % 2
    assert np.array_equal(in_hash_part(records_of(held), before, 1), places == 0)
    assert not np.array_equal(in_hash_part(records_of(held), split, 1), places == 0)
    for listed in ('{"parts": 2, "by": "name"}', '{"parts": 2}', '{"by": "value"}', '["value"]', "null"):
        with pytest.raises((ValueError, TypeError, KeyError)):
            split_from_row((*row[:3], listed, *row[4:]))


PICTURES = Schema(name="all", shape=(1, 2, 2), classes=("a", "b"), records=400, augmentation=(), low=0, high=255)


def reading_of(schema: Schema, text: str = "parts/1:hash 2") -> str:
    part = part_of(DataSource(schema, "here", lambda _: records_of(np.zeros((1, 1)))), text).part
    assert part is not None
    return part.reading


def test_another_range_of_deep_pictures_is_another_reading() -> None:
    """A scan of more than 8 bits is cut to the declared range as it is read, so its numbers follow the schema."""
    ranges = [(0, 255), (0, 4095), (0, 65535), (-1024, 3071)]
    read = [reading_of(dataclasses.replace(PICTURES, low=low, high=high)) for low, high in ranges]
    assert len(set(read)) == 4 and " in " not in read[0] and {each.split(" in ")[0] for each in read} == {read[0]}
    by_class = [
        reading_of(dataclasses.replace(PICTURES, low=low, high=high), "kinds/1:0,1 of all") for low, high in ranges
    ]
    assert len(set(by_class)) == 1


def test_a_run_from_before_pictures_said_their_range_goes_on() -> None:
    reading = reading_of(dataclasses.replace(PICTURES, high=4095))
    now, before = (json.dumps({"plan": {"a": 1}, "reading": text}) for text in (reading, reading.split(" in ")[0]))
    assert same_plan(now, now) and same_plan(before, now) and not same_plan(now, before)
    assert not same_plan(before.replace("1", "2", 1), now) and not same_plan(json.dumps({"plan": {"a": 1}}), now)
    other = json.dumps({"plan": {"a": 1}, "reading": reading.replace("4095", "9")})
    assert not same_plan(other, now)


def test_another_key_shares_out_otherwise(tmp_path: Path) -> None:
    x = np.random.default_rng(3).normal(size=(100, 3)).astype(np.float32)
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        first, second = (ledger.declare_split("all", name, parts=2) for name in "ab")
    assert not np.array_equal(part_of_hash(records_of(x), first, 1).x, part_of_hash(records_of(x), second, 1).x)


def test_persons_stay_together(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    units = generator.integers(0, 40, size=300)
    records = Records(generator.normal(size=(300, 3)).astype(np.float32), generator.integers(0, 2, size=300), units)
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        split = ledger.declare_split("all", "parts", parts=3, unit="patient")
    found = [part_of_hash(records, split, n) for n in (1, 2, 3)]
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
