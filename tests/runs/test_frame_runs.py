"""DataFrame in, DataFrame out: whole runs, frames that cannot be used, and frames as test records. Bad ones spend nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

import limbeck
from frames import SCHEMA, rows
from limbeck import Condenser, Ledger
from limbeck.api import evaluate
from limbeck.data.frames import frame_source
from limbeck.errors import BadInput, LimbeckError, RunConflict
from limbeck.runs.in_memory import memory_source

SMALL: dict[str, Any] = {"T": 20, "components": 10, "rows": 25, "sigma": 0.5, "bins": 6, "search": 0}
COUNT = 400
LARGE = dataclasses.replace(SCHEMA, records=COUNT)


def condenser(**named: Any) -> Condenser:
    return Condenser(epsilon=None, settings=SMALL, insecure_seed=3, **named)


def frame_of(kind: str, count: int = COUNT) -> Any:
    table = pa.table(rows(count))
    if kind == "arrow":
        return table
    library = pytest.importorskip(kind)
    return library.from_arrow(table) if kind == "polars" else table.to_pandas()


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_the_same_kind_with_the_same_types_and_order(kind: str) -> None:
    frame = frame_of(kind)
    made = condenser().fit(frame, schema=LARGE).set_
    assert type(made) is type(frame) and len(made) == 25
    if kind == "pandas":
        # A column of floats because some are missing stays one; dates were objects, and are.
        assert made.dtypes.equals(frame.dtypes)
    else:
        assert made.schema == frame.schema


def test_all_kinds_of_frame_are_the_same_records() -> None:
    x = [frame_source(frame_of(kind), LARGE).load() for kind in ("arrow", "pandas", "polars")]
    assert all(np.array_equal(x[0].x, each.x) and np.array_equal(x[0].y, each.y) for each in x[1:])


def test_labels_beside_the_frame_and_the_ways_out(tmp_path: Path) -> None:
    frame = frame_of("pandas")
    labels = frame.pop("ill")
    fitted = condenser().fit(frame, labels, schema=LARGE, out=tmp_path / "out")
    assert (
        fitted.set_.columns.tolist() == [*frame.columns, "ill"] and fitted.set_["ill"].dtype == labels.dtype == "int64"
    )
    assert fitted.to_pandas().equals(fitted.set_) and fitted.to_arrow().num_rows == len(fitted.to_torch()) == 25
    assert fitted.to_polars().columns == fitted.set_.columns.tolist()
    loaded = limbeck.load(tmp_path / "out")
    assert loaded.to_pandas()["town"].cat.categories.tolist() == ["isle", "north", "south"]
    assert loaded.to_arrow().to_pylist() == loaded.to_polars().to_arrow().to_pylist()
    assert loaded.to_pandas()["age"].tolist() == fitted.set_["age"].tolist()


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_labels_beside_a_frame_keep_their_type(kind: str) -> None:
    frame = frame_of(kind)
    label = frame.column("ill") if kind == "arrow" else frame["ill"]
    own = {"arrow": pa.int64(), "pandas": np.dtype(np.int64)}.get(kind, getattr(label, "dtype", None))
    rest = (
        frame.drop_columns(["ill"])
        if kind == "arrow"
        else frame.drop("ill", axis=1)
        if kind == "pandas"
        else frame.drop("ill")
    )
    assert memory_source(rest, label, LARGE, None)[1].types["ill"] == own  # type: ignore[union-attr]
    plain = memory_source(rest, np.array(["0", "1"] * (COUNT // 2)), LARGE, None)[1]
    assert plain is not None and "ill" not in plain.types


def test_no_dtype_of_the_frame_is_in_the_release(tmp_path: Path) -> None:
    """A dtype may hang on one record: pandas makes floats of whole numbers when one is missing."""
    pytest.importorskip("pandas")
    names = ("int8", "uint16")
    for name in names:
        frame = frame_of("pandas").astype({"age": name})
        condenser(ledger=tmp_path / f"{name}.sqlite").fit(frame, schema=LARGE, out=tmp_path / name)
    one, two = ((tmp_path / name / "data" / "train.parquet").read_bytes() for name in names)
    assert one == two
    assert (tmp_path / names[0] / "config.json").read_bytes() == (tmp_path / names[1] / "config.json").read_bytes()


def test_a_frame_takes_mosaic_and_pictures_take_elixir() -> None:
    assert Condenser(epsilon=1.0).plan(LARGE).method == "mosaic"
    assert Condenser(epsilon=1.0, rows=7).plan(LARGE).settings["rows"] == 7
    assert clone(Condenser(rows=7)).get_params() == Condenser(rows=7).get_params()
    pictures = limbeck.Schema(name="scans", shape=(1, 8, 8), classes=("a", "b"), records=5000, low=0, high=255)
    assert Condenser(epsilon=1.0).plan(pictures).method == "elixir"
    with pytest.raises(AttributeError, match="call fit first"):
        _ = Condenser().set_


def test_a_frame_in_the_functions_of_the_api(tmp_path: Path) -> None:
    frame, schema = frame_of("arrow"), LARGE
    settings = {key: value for key, value in SMALL.items() if key != "rows"}
    quoted = limbeck.plan(frame, schema=schema, epsilon=None, settings=settings, rows=25)
    assert quoted.plan.method == "mosaic"
    made = limbeck.condense(
        frame, tmp_path / "out", schema=schema, epsilon=None, settings=settings, rows=25, insecure_seed=1
    )
    assert limbeck.verify(made.release).dataset == "clinic"
    scores = evaluate(made.release, frame_of("polars", 60), models=["logistic-reg"])
    assert scores.form == "decoded" and scores.test == "a frame of polars" and scores.provenance.is_owners
    with pytest.raises(RunConflict):
        limbeck.condense(frame, tmp_path / "out", schema=schema, epsilon=None, settings=settings)


def test_persons_in_a_column_of_the_frame() -> None:
    schema = dataclasses.replace(LARGE, unit="who", units=COUNT // 4)
    ids = [str(place // 4) for place in range(COUNT)]
    inside = frame_source(frame_of("arrow").append_column("who", pa.array(ids)), schema).load()
    beside = frame_source(frame_of("arrow"), schema, units=ids).load()
    assert inside.units is not None and np.array_equal(inside.units, beside.units)
    with pytest.raises(BadInput, match="has no column who"):
        condenser(delta=1e-3).fit(frame_of("arrow"), schema=schema)
    with pytest.raises(BadInput, match="unit of 'clinic' is one record"):
        condenser().fit(frame_of("arrow"), schema=LARGE, units=ids)


def bad_frames() -> dict[str, tuple[Any, str]]:
    pd = pytest.importorskip("pandas")
    table, frame = pa.table(rows(COUNT)), pa.table(rows(COUNT)).to_pandas()
    twice = pd.concat([frame, frame[["age"]]], axis=1)
    levels = frame.copy()
    levels.columns = pd.MultiIndex.from_product([["all"], frame.columns])
    spans = table.set_column(1, "age", pa.array([1] * COUNT, pa.duration("s")))
    return {
        "a missing column": (table.drop_columns(["town", "zip"]), "has no column town, zip"),
        "no label": (table.drop_columns(["ill"]), "has no column ill.*give the labels as y"),
        "two of a name": (twice, "two columns of the same name"),
        "two of a name in Arrow": (table.append_column("age", table.column("age")), "two columns of the same name"),
        "levels": (levels, "MultiIndex"),
        "numbers as names": (frame.set_axis(range(frame.shape[1]), axis=1), "names are no texts"),
        "no rows": (frame[:0], "holds no record"),
        "no rows in Arrow": (table[:0], "holds no record"),
        "dates for numbers": (frame.assign(age=pd.Timestamp("2020-01-01")), "Column 'age' .* is of type datetime64"),
        "numbers for dates": (frame.assign(born=5), 'kind = "date", so it must hold dates'),
        "spans": (spans, "Column 'age' of the arrow frame is of type duration"),
        "complex": (frame.assign(age=np.complex64(1)), "Column 'age' .*complex128.*no form in Arrow"),
        "periods": (frame.assign(born=pd.Period("2020-01", "M")), "Column 'born' .*period"),
        "lists": (table.set_column(1, "age", pa.array([[1]] * COUNT)), "Column 'age' .*list"),
        "a wrong label": (frame.assign(ill=7), "holds a label that is not a class"),
    }


def test_bad_frames_end_in_sentences_and_spend_nothing(tmp_path: Path) -> None:
    for name, (frame, message) in bad_frames().items():
        with pytest.raises(LimbeckError, match=message):
            condenser().fit(frame, schema=LARGE, out=tmp_path / "out")
        assert not (tmp_path / "out").exists(), name
    with Ledger.open() as ledger:
        assert ledger.accounts() == []


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"y": [0, 1]}, "400 records but 2 labels"),
        ({"y": np.zeros((COUNT, 1))}, "one value for each row"),
        ({"y": "Zq7Secret"}, "one value for each row"),
        ({"units": [1, 2]}, "unit of 'clinic' is one record"),
    ],
)
def test_bad_labels_beside_a_frame(named: dict[str, Any], message: str) -> None:
    with pytest.raises(LimbeckError, match=message) as caught:
        condenser().fit(frame_of("arrow"), schema=LARGE, **named)
    assert "Secret" not in caught.value.message


def test_content_of_cells_never_raises_and_is_never_shown() -> None:
    """Objects, texts that are no Unicode, numbers beyond all doubles: unknown values, like in a file."""
    pd = pytest.importorskip("pandas")
    frame = frame_of("pandas")
    odd = [object(), "\ud800", 10**400, float("inf"), None, pd.NaT, b"x", [1], {}, float("nan")]
    for name in ("age", "visits", "town", "born", "seen", "price"):
        frame[name] = pd.Series((odd * COUNT)[:COUNT], dtype=object)
    records = frame_source(frame, LARGE).load()
    assert np.isfinite(records.x).all()
    mixed = frame_of("pandas").assign(town=pd.Categorical([1, "north", 2.5, b"x"] * (COUNT // 4)))
    assert frame_source(mixed, LARGE).load().x[1, 4] == 1  # north


def test_a_lazy_frame_and_a_schema_that_is_no_frames() -> None:
    pl = pytest.importorskip("polars")
    with pytest.raises(BadInput, match=r"frame\.collect\(\)"):
        condenser().fit(pl.LazyFrame(rows(COUNT)), schema=LARGE)
    with pytest.raises(BadInput, match=r"limbeck\.draft"):
        limbeck.plan(frame_of("arrow"), epsilon=1.0)
    with pytest.raises(BadInput, match="for frames"):
        limbeck.plan("people.csv", epsilon=1.0, schema=LARGE)
    plain = limbeck.Schema(name="own", shape=(4,), classes=("a", "b"), records=200, low=0, high=1)
    with pytest.raises(BadInput, match="lists no columns"):
        condenser().fit(frame_of("arrow"), schema=plain)


def test_an_interrupted_run_on_a_frame_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, stored = Ledger.store, [0]

    def interrupted(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 2:
            raise KeyboardInterrupt
        return store(*arguments, **named)

    named: dict[str, Any] = {"schema": LARGE, "epsilon": None, "settings": SMALL, "insecure_seed": 3}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, "store", interrupted)
        limbeck.condense(frame_of("arrow"), tmp_path / "out", **named)
    with pytest.raises(RunConflict, match=r"limbeck\.condense, again"):
        limbeck.resume(tmp_path / "out")
    limbeck.condense(frame_of("arrow"), tmp_path / "out", **named)
    with Ledger.open() as ledger:
        assert [booking.state for account in ledger.accounts() for booking in account.bookings] == ["finished"]
