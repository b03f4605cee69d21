"""The model of a table in a release: written, verified, read back; rows drawn for nothing, each of them as it was asked for."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import limbeck
from limbeck.data import table
from limbeck.errors import BadInput, NotAuthentic
from limbeck.release.generator import load_generator
from limbeck.release.reader import read_release
from limbeck.release.table_generator import TableGenerator
from limbeck.release.verification import verify
from people import SCHEMA, released

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Do not change it."""
    return released(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "people")
    return tmp_path / "people"


def table_of(folder: Path) -> TableGenerator:
    generator = load_generator(folder)
    assert isinstance(generator, TableGenerator)
    return generator


def test_its_files_are_on_the_certificate_and_state_their_format(made: Path) -> None:
    assert {"generator.safetensors", "generator.json"} <= set(verify(made).files)
    described = json.loads((made / "generator.json").read_text())
    assert described["format"] == 1 and described["generator"]["kind"] == "mosaic"
    assert table_of(made).spec.to_dict() == described["generator"]
    assert sum(described["shares"]) == 600


def test_card_and_page_tell_of_it(made: Path) -> None:
    card = (made / "README.md").read_text()
    assert "The model that the rows were drawn from" in card and "limbeck sample FOLDER" in card and "--where" in card
    assert "limbeck.load_generator" in (made / "report.html").read_text()


def test_more_rows_are_like_those_of_the_set(made: Path) -> None:
    """The set, too, was drawn from the model: means of its columns agree, for every class."""
    there, (x, y) = read_release(made), table_of(made).sample(20_000, seed=1)
    assert x.shape == (20_000, *SCHEMA.shape) and x.dtype == np.float32
    assert np.bincount(y, minlength=3) / len(y) == pytest.approx(np.bincount(there.y, minlength=3) / 600, abs=0.03)
    assert x.mean(0) == pytest.approx(there.x.mean(0), abs=0.08)
    for label in (0, 1):
        assert x[y == label].mean(0) == pytest.approx(there.x[there.y == label].mean(0), abs=0.12)


def test_the_same_arguments_give_the_same_rows(made: Path) -> None:
    arguments: list[dict[str, Any]] = [
        {"count": 500, "seed": 5},
        {"count": 500, "seed": 6},
        {"count": 499, "seed": 5},
        {"count": 500, "seed": 5, "label": "yes"},
        {"count": 500, "seed": 5, "where": ["age>60"]},
    ]
    drawn = [limbeck.sample(made, **each) for each in arguments]
    for each, (x, y) in zip(arguments, drawn, strict=True):
        again = table_of(made).sample(**each)
        assert np.array_equal(x, again[0]) and np.array_equal(y, again[1]) and len(y) == each["count"]
    assert len({x[:400].tobytes() for x, _ in drawn}) == len(drawn)


def test_more_than_one_piece(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.release.table_generator.MADE_AT_ONCE", 64)
    for where in ((), ("grade = high", "paid != no")):
        x, y = table_of(made).sample(1000, where=where)
        assert len(x) == len(y) == 1000 and len({row.tobytes() for row in x}) > 900 - 600 * bool(where)


def test_labels_of_very_many_rows_are_those_of_a_few(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = table_of(made)
    few = generator.sample(20_000, seed=2)
    monkeypatch.setattr("limbeck.release.table_generator.MOST_BALANCED", 10_000)
    many = generator.sample(20_000, seed=2)
    assert not np.array_equal(few[1], many[1])
    for label in (0, 1):
        (one, same), (two, other) = few, many
        assert (same == label).mean() == pytest.approx((other == label).mean(), abs=0.015)
        assert one[same == label].mean(0) == pytest.approx(two[other == label].mean(0), abs=0.03)


def test_one_class_can_be_drawn(made: Path) -> None:
    assert set(table_of(made).sample(50, label="yes")[1].tolist()) == {1}
    with pytest.raises(BadInput, match="no class 'maybe'; its classes are: no, yes"):
        table_of(made).sample(5, label="maybe")


def test_so_many_of_each_class_stay_so_many(tmp_path: Path) -> None:
    out = released(tmp_path, rows=None, per_class=20)
    generator = table_of(out)
    assert generator.spec.opinion is None
    assert np.bincount(generator.sample(90)[1]).tolist() == pytest.approx([30] * 3, abs=1)
    assert set(generator.sample(9, label="<=1")[1].tolist()) == {2}
    assert set(generator.sample(90, where=["paid != yes"])[1].tolist()) == {0, 2}


VALUES: dict[str, Any] = {
    "age": st.integers(18, 89),
    "gain": st.one_of(st.just("missing"), st.sampled_from([0, 1, 4999, 20_000, 99_998])),
    "price": st.floats(0.5, 55),
    "grade": st.sampled_from(["low", "middle", "high", "top"]),
    "city": st.sampled_from(["Rome", "Oslo", '"missing"', "missing"]),
    "paid": st.sampled_from(["no", "yes"]),
}
ORDERED = ("age", "gain", "price", "grade")


@st.composite
def condition(draw: Any) -> tuple[str, str, Any]:
    name = draw(st.sampled_from(list(VALUES)))
    value = draw(VALUES[name])
    signs = ["=", "!="] + ([] if value == "missing" or name not in ORDERED else ["<", "<=", ">", ">="])
    return name, draw(st.sampled_from(signs)), value


def keeps(found: Any, sign: str, value: Any, name: str) -> bool:
    """The meaning in plain words, value by value."""
    if value == "missing":
        return (found is None) == (sign == "=")
    if found is None:
        return False
    if name == "grade":
        found, value = (("low", "middle", "high", "top").index(each) for each in (found, value))
    value = "missing" if value == '"missing"' else value
    return bool({
        "=": lambda: found == value, "!=": lambda: found != value, "<": lambda: found < value, "<=": lambda: found <= value,
        ">": lambda: found > value, ">=": lambda: found >= value,
    }[sign]())  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(condition(), min_size=1, max_size=3), st.integers(0, 50))
def test_every_row_keeps_to_every_condition_when_it_is_decoded(
    made: Path, tmp_path: Path, asked: list[tuple[str, str, Any]], seed: int
) -> None:
    """Through the Parquet file, as a user reads it. Where nothing is drawn, it is because hardly any row fits."""
    from limbeck.release.formats import write_parquet

    where = [f"{name} {sign} {value}" for name, sign, value in asked]
    try:
        x, y = table_of(made).sample(20, seed, where=where)
    except BadInput as refused:
        assert "Hardly any record keeps to" in refused.message or "By the schema" in refused.message
        everything = table_of(made).sample(3000, 1)
        write_parquet(tmp_path / "all.parquet", *everything, SCHEMA)
        rows = pq.read_table(tmp_path / "all.parquet").to_pylist()
        assert sum(all(keeps(row[name], sign, value, name) for name, sign, value in asked) for row in rows) <= 15
        return
    write_parquet(tmp_path / "some.parquet", x, y, SCHEMA)
    rows = pq.read_table(tmp_path / "some.parquet").to_pylist()
    assert len(rows) == 20
    for row in rows:
        for name, sign, value in asked:
            assert keeps(row[name], sign, value, name), (row, where)


@pytest.mark.parametrize(
    "where",
    [
        ["age>60", "age<50"],
        ["paid=no", "paid=yes"],
        ["gain = missing", "gain > 0"],
        ["age = 60.5"],
        ["price = 3.5"],  # a number with decimals is never exactly one
    ],
)
def test_what_no_row_can_be_is_refused_at_once(made: Path, where: list[str]) -> None:
    with pytest.raises(BadInput, match=r"Hardly any record keeps to .*drop a condition, or give a wider range"):
        table_of(made).sample(5, where=where)


def test_a_class_that_never_comes_is_refused_after_so_many_tries(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.release.drawing.TRIED", 2000)
    generator = table_of(made)
    assert generator.model.labels is not None
    generator.model.labels.constant[2] = -1e4
    for arguments in ({"label": "<=1"}, {"where": ["paid = <=1"]}):
        with pytest.raises(BadInput, match=r"of \d+ that were drawn 0 did"):
            generator.sample(5, **arguments)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": 10**9}, {"count": True}, {"count": 3, "seed": -1}])
def test_counts_and_seeds_that_make_no_sense_are_refused(made: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="must lie in"):
        table_of(made).sample(**wrong)


@pytest.mark.parametrize(
    "damage", ["cut off", "missing", "more", "nan", "edges", "format", "opinion", "columns", "shares", "kind"]
)
def test_a_damaged_model_is_refused_in_words(release: Path, damage: str) -> None:
    weights, description = release / "generator.safetensors", release / "generator.json"
    kept, values = load_file(weights), json.loads(description.read_text())
    if damage == "cut off":
        weights.write_bytes(weights.read_bytes()[:-9])
    elif damage in ("missing", "more", "nan", "edges"):
        if damage == "missing":
            kept.pop("constant")
        elif damage == "more":
            kept["colour"] = kept["constant"].clone()
        elif damage == "nan":
            kept["weights"][0, 0] = float("nan")
        else:
            kept["edges"] = kept["edges"].flip(0).contiguous()
        save_file(kept, weights)
    else:
        changed = {
            "format": {"format": 2},
            "opinion": {"generator": values["generator"] | {"opinion": None}},
            "columns": {"generator": values["generator"] | {"edges": values["generator"]["edges"][1:]}},
            "shares": {"shares": [1, 2]},
            "kind": {"generator": values["generator"] | {"kind": "merf"}},
        }[damage]
        description.write_text(json.dumps(values | changed))
    with pytest.raises(NotAuthentic, match="its generator cannot be read") as refused:
        load_generator(release)
    assert refused.value.next_command == f"limbeck verify {release}"
    with pytest.raises(NotAuthentic, match="was changed"):
        verify(release)


def test_a_network_that_makes_a_table_takes_conditions_too(tmp_path: Path) -> None:
    """By plain rejection; classes keep their shares."""
    from limbeck.release.conditions import read_conditions
    from people import source

    condenser = limbeck.Condenser(
        method="dpmerf", epsilon=50.0, per_class=15, settings={"features": 20, "T": 2, "batch": 4}
    )
    records = source().load()
    condenser.fit(records.x, records.y, schema=SCHEMA, out=tmp_path / "out")
    age = np.median(condenser.X_[:, 0])
    where = [f"age >= {round((age + 1) / 2 * 73 + 17)}"]
    x, y = condenser.generator_.sample(200, 1, where=where)
    assert read_conditions(where, SCHEMA).hold(x, y).all() and len(set(y.tolist())) > 1
    assert np.array_equal(x, limbeck.sample(tmp_path / "out", 200, seed=1, where=where)[0])
    with pytest.raises(BadInput, match="Hardly any record"):
        condenser.generator_.sample(5, where=["age > 89", "age < 20"])


def test_a_condenser_takes_rows_and_keeps_the_model(tmp_path: Path) -> None:
    from people import source

    settings = {"rows": 70, "T": 3, "components": 6, "search": 0}
    records = source().load()
    condenser = limbeck.Condenser(method="mosaic", epsilon=5.0, settings=settings)
    condenser.fit(records.x, records.y, schema=SCHEMA, out=tmp_path / "out")
    assert len(condenser.y_) == 70 and len(condenser.generator_.sample(9, where=["age>60"])[1]) == 9
    assert condenser.set_params(settings={}).plan(SCHEMA).settings["per_class"] == 0  # a whole table


def test_the_command_writes_rows_and_spends_nothing(made: Path, tmp_path: Path, cli: Cli) -> None:
    before = {path.name: path.read_bytes() for path in made.parent.iterdir() if path.is_file()}
    arguments = ("--count", 30, "--seed", 3, "--where", "age>60", "--where", "city != Oslo", "--class", "yes")
    ended = cli("sample", made, *arguments, "--out", tmp_path / "some.parquet", "--json")
    assert ended.code == 0 and ended.json["where"] == ["age>60", "city != Oslo"] and ended.json["class"] == "yes"
    rows = pq.read_table(tmp_path / "some.parquet").to_pylist()
    assert len(rows) == 30 and all(row["age"] > 60 and row["city"] in ("Rome", "missing") for row in rows)
    assert {row["paid"] for row in rows} == {"yes"}
    assert {path.name: path.read_bytes() for path in made.parent.iterdir() if path.is_file()} == before
    shown = cli("sample", made, *arguments, "--out", tmp_path / "again.parquet")
    assert "where     age>60 and city != Oslo" in shown.out
    assert (tmp_path / "some.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    verify(made)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("height>3", "There is no column 'height'"),
        ("city>Rome", "have no order"),
        ("age>old", "compared with 'old'"),
        ("age ? 3", "COLUMN OPERATOR VALUE"),
        ("age>90", "By the schema 'age' lies in 17 ... 90"),
        ("price=3.5", "Hardly any record keeps to 'price=3.5'"),
    ],
)
def test_a_bad_condition_is_one_sentence(made: Path, tmp_path: Path, cli: Cli, where: str, words: str) -> None:
    out = tmp_path / "some.npz"
    ended = cli("sample", made, "--count", 5, "--where", where, "--out", out, "--json")
    assert ended.code == 2 and words in ended.json["error"]["message"] and not out.exists()
    assert "Traceback" not in ended.err


def test_a_csv_file_holds_the_same_rows_as_a_parquet_file(made: Path, tmp_path: Path, cli: Cli) -> None:
    for name in ("more.csv", "more.parquet"):
        assert cli("sample", made, "--count", 40, "--out", tmp_path / name).code == 0
    with (tmp_path / "more.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = pq.read_table(tmp_path / "more.parquet").to_pylist()
    assert list(rows[0]) == list(wanted[0]) and len(rows) == 40
    for row, other in zip(rows, wanted, strict=True):
        assert [float(value) if name == "price" else value for name, value in row.items()] == [
            value if name == "price" else "" if value is None else str(value) for name, value in other.items()
        ]
    assert table.read(tmp_path / "more.csv", SCHEMA).x.shape == (40, *SCHEMA.shape)
