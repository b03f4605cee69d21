"""A vault over files: what is wrong with them is found before the first answer; a change ends a run, which can be resumed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from limbeck.data.parts import hash_part_text, part_of, part_text
from limbeck.data.records import Records
from limbeck.data.source import DataSource
from limbeck.data.streams.streamed import StreamedRecords
from limbeck.errors import DataUnreadable, TooLarge, WallBreach
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum, Query, TeacherVote
from limbeck.vault.api import Grant, Identity, OneHot, Randomness
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.part_records import load_records, stream_records
from limbeck.vault.process.shared_records import SharedRecords
from streamed_files import COUNT, source_of

QUERY = ClippedSum(label="sums", map="identity", clip=2.0, noise_multiplier=1.0, count=3)


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMBECK_MEMORY", "1")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        for name in ("pictures", "people"):
            ledger.set_budget(name, 100, 1e-3)
        yield ledger


def plan_of(source: DataSource, *queries: Query) -> Plan:
    return Plan(dataset=source.schema.name, method="ldpdc", settings={}, queries=queries, price=price(queries, 1e-5))


def begun(source: DataSource, ledger: Ledger, *queries: Query) -> tuple[LocalVault, Grant]:
    vault = LocalVault(source, ledger, Randomness(1))
    return vault, vault.grant(plan_of(source, *(queries or (QUERY,))))


def cut_off(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 30)


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"31,blue,S,1.5,yes\n" * 3)


def replaced(path: Path) -> None:
    """Another file of the same size and time."""
    about, data = path.stat(), bytearray(path.read_bytes())
    data[-40:-20] = data[-60:-40]
    path.unlink()
    path.write_bytes(data)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def gone(path: Path) -> None:
    path.unlink()


CHANGES = (cut_off, grown, replaced, gone)
FILES = {"npz": "set.npz", "csv": "set.csv", "table": "set.parquet", "idx": "train-images-idx3-ubyte", "folder": ""}


def file_of(folder: Path, form: str) -> Path:
    name = FILES[form]
    return folder / "set" / name if name else next((folder / "set" / "a").iterdir())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("form", FILES)
def test_a_file_that_changes_between_answers_ends_in_one_sentence_and_the_run_goes_on_when_it_is_back(
    form: str, change: Callable[[Path], None], tmp_path: Path, ledger: Ledger
) -> None:
    source = source_of(tmp_path, form)
    path = file_of(tmp_path, form)
    vault, grant = begun(source, ledger)
    first = vault.ask(grant, "sums", 0, Identity()).values
    kept = shutil.copytree(tmp_path / "set", tmp_path / "kept")
    change(path)
    with pytest.raises(DataUnreadable) as caught:
        vault.ask(grant, "sums", 1, Identity())
    assert "no longer what it was when this run first read it" in caught.value.message
    assert (
        form != "folder" or path.name not in caught.value.message
    )  # which picture it was would tell who is in a sample
    assert vault.drawn(grant) == {"sums": 1} and vault.state(grant.id) == "open" and not vault.give_back(grant)
    shutil.rmtree(tmp_path / "set")
    shutil.copytree(kept, tmp_path / "set")
    again = LocalVault(source, ledger, Randomness(1))  # as `limbeck resume` opens it
    taken = again.take_up(grant.id, grant.plan, booked=True)
    assert (again.ask(taken, "sums", 0, Identity()).values == first).all()
    second = again.ask(taken, "sums", 1, Identity()).values
    with Ledger.open(tmp_path / "other.sqlite") as other:
        other.set_budget(source.schema.name, 100, 1e-3)
        whole, grant = begun(source, other)
        assert (whole.ask(grant, "sums", 1, Identity()).values == second).all()


@pytest.mark.parametrize("form", ["npz", "csv", "table", "idx"])
def test_a_file_that_changes_under_a_pass_gives_no_answer(
    form: str, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(tmp_path, form)
    vault, grant = begun(source, ledger)
    vault.open_records(grant)
    summed = Identity.clipped_sum

    def changing(*args: object, **named: object) -> object:
        if len(args[1]):  # type: ignore[arg-type]
            os.utime(file_of(tmp_path, form))  # the pass has begun
        return summed(*args, **named)  # type: ignore[arg-type]

    vault._sums.block_for(Identity())
    monkeypatch.setattr(Identity, "clipped_sum", changing)
    with pytest.raises(DataUnreadable, match="no longer what it was"):
        vault.ask(grant, "sums", 0, Identity())
    assert vault.drawn(grant) == {"sums": 0}


def test_what_goes_wrong_while_adding_up_is_not_blamed_on_the_file(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for form in ("packed npz", "table", "csv"):
        source = source_of(tmp_path / form.replace(" ", "-"), form)
        vault, grant = begun(source, ledger)
        vault.open_records(grant)
        vault._sums.block_for(Identity())
        with monkeypatch.context() as patched:
            patched.setattr(Identity, "clipped_sum", lambda *_: (_ for _ in ()).throw(ZeroDivisionError()))
            with pytest.raises(ZeroDivisionError):
                vault.ask(grant, "sums", 0, Identity())


def spoilt(folder: Path, form: str) -> None:
    """Something wrong with one record, near the end."""
    path = file_of(folder, form)
    if form == "folder":
        path.write_bytes(b"no picture")
    elif form == "csv":
        text = path.read_text().splitlines()
        path.write_text("\n".join([*text[:-2], text[-2].rsplit(",", 1)[0] + ",maybe", text[-1]]) + "\n")
    elif form == "npz":
        data = bytearray(path.read_bytes())
        data[600] ^= 1  # the archive's checksum is no longer right
        path.write_bytes(data)
    else:
        labels = path.with_name("train-labels-idx1-ubyte")
        data = bytearray(labels.read_bytes())
        data[-2] = 9
        labels.write_bytes(data)


@pytest.mark.parametrize("form", ["folder", "csv", "npz", "idx"])
def test_a_fault_of_one_record_is_found_before_the_first_answer_whoever_is_in_the_sample(
    form: str, tmp_path: Path, ledger: Ledger
) -> None:
    source = source_of(tmp_path, form)
    spoilt(tmp_path, form)
    rare = ClippedSum(label="sums", map="identity", clip=2.0, noise_multiplier=1.0, rate=(0.001,))
    vault, grant = begun(source, ledger, rare)
    with pytest.raises(DataUnreadable):
        vault.ask(grant, "sums", 0, Identity())
    assert vault.state(grant.id) == "void" and ledger.account(source.schema.name).spent_epsilon == 0  # type: ignore[union-attr]


def test_a_damaged_archive_is_found_although_its_rows_are_read_where_they_lie(tmp_path: Path, ledger: Ledger) -> None:
    source = source_of(tmp_path, "npz")
    path, random = file_of(tmp_path, "npz"), np.random.default_rng(0)
    np.savez(path, x=random.integers(0, 255, (800, 5, 4), dtype=np.uint8), y=np.arange(800) % 3)
    data = bytearray(path.read_bytes())
    data[15_000] ^= (
        1  # of the last pictures: the beginning of an array is compared with its checksum by itself if it is short
    )
    path.write_bytes(data)
    vault, grant = begun(source, ledger)
    with pytest.raises(DataUnreadable, match=r"not a readable \.npz archive"):
        vault.open_records(grant)


@pytest.mark.parametrize("kind", ["hash", "classes"])
@pytest.mark.parametrize("form", ["npz", "table", "csv glob", "parquet folder"])
def test_parts_are_the_same_records_in_the_same_order(form: str, kind: str, tmp_path: Path, ledger: Ledger) -> None:
    whole = source_of(tmp_path, form)
    name = whole.schema.name
    if kind == "hash":
        ledger.declare_split(name, "halves", parts=2)
    text = (
        hash_part_text("halves/2", 2)
        if kind == "hash"
        else part_text("kinds/1", *(([2, 0],) if name == "pictures" else ([1], True)))
    )
    part = part_of(whole, text)
    expected = load_records(part, ledger)
    streamed = stream_records(part, ledger, part.schema)
    assert streamed is not None and len(streamed) == len(expected) > 0 and len(expected) < COUNT
    with streamed.reading() as reading:
        found = reading.take(len(streamed))
    assert found.x.tobytes() == expected.x.tobytes() and (found.y == expected.y).all()


def test_teachers_hold_their_records_and_say_so_where_there_is_no_room(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(tmp_path, "npz")
    vote = TeacherVote(label="votes", map="sign_vote", clip=2.0, noise_multiplier=5.0, teachers=2)
    vault, grant = begun(source, ledger, vote)
    vault.open_records(grant)
    assert isinstance(vault._records, Records)
    monkeypatch.setattr("limbeck.data.streams.memory.available", lambda: 1000)
    other, grant = begun(source, ledger, vote)
    with pytest.raises(TooLarge, match="1 MB are free here"):
        other.open_records(grant)
    assert other.state(grant.id) == "void"


def test_one_vault_for_sums_and_for_teachers_holds_what_each_needs(tmp_path: Path, ledger: Ledger) -> None:
    source = source_of(tmp_path, "npz")
    vault, grant = begun(source, ledger)
    vault.open_records(grant)
    assert isinstance(vault._records, StreamedRecords)
    older = ClippedSum(label="older", map="one_hot", clip=1.0, noise_multiplier=1.0, on_grid=False)
    doubles = vault.grant(plan_of(source, older))
    vault.ask(doubles, "older", 0, OneHot(classes=3))
    assert isinstance(vault._records, Records)


def test_a_server_says_one_sentence_whatever_is_wrong(tmp_path: Path, ledger: Ledger) -> None:
    noted: list[BaseException] = []
    source = source_of(tmp_path, "csv")
    shared = SharedRecords(source, noted.append)
    vault, grant = begun(shared, ledger)  # type: ignore[arg-type]
    vault.ask(grant, "sums", 0, Identity())
    assert isinstance(vault._records, StreamedRecords) and not noted
    spoilt(tmp_path, "csv")
    fresh, grant = begun(SharedRecords(source, noted.append), ledger)  # type: ignore[arg-type]
    with pytest.raises(DataUnreadable) as caught:
        fresh.open_records(grant)
    assert caught.value.message == "The records cannot be read." and len(noted) == 1
    gone(file_of(tmp_path, "csv"))
    with pytest.raises(DataUnreadable):
        vault.ask(Grant(vault.grant(plan_of(source, QUERY)).id, plan_of(source, QUERY)), "sums", 0, Identity())
    assert len(noted) == 2


def test_a_reader_that_breaks_its_promise_is_found_in_pieces_too(tmp_path: Path, ledger: Ledger) -> None:
    source = source_of(tmp_path, "npz")
    stream = source.stream()
    assert stream is not None
    wrong = Records(np.zeros((2, 3), np.uint8), np.zeros(2, np.int64))

    class Broken:
        schema = source.schema

        def load(self) -> Records:
            raise AssertionError

        def stream(self) -> object:
            return stream

    class Cursor:
        def take(self, count: int, wanted: object = None) -> tuple[int, Records]:
            return 2, wrong

    object.__setattr__(stream, "opened", lambda: nullcontext(Cursor()))
    vault, grant = begun(Broken(), ledger)  # type: ignore[arg-type]
    with pytest.raises(WallBreach, match="gave records of shape"):
        vault.open_records(grant)
