"""A vault that reads its records in pieces gives the answers of one that holds them: the same bits, for every map and file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_exact_sums import SCHEMA, held
from test_sensitivity import MAPPINGS
from through import answers

from limbeck.data.source import DataSource
from limbeck.data.streams.layouts import streamer
from limbeck.data.streams.streamed import StreamedRecords, first_pass
from limbeck.nets.features.fourier import FourierSpec
from limbeck.privacy.queries import ClippedSum
from limbeck.vault.api import Identity, Map, RandomFourier
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import SecretStream
from limbeck.vault.streamed_samples import sampled_pieces
from streamed_files import COUNT, FORMS, schema_of, source_of

SIZES = (1, 7, 4096)


def as_file(folder: Path) -> DataSource:
    """The records of the tests of exact sums, in a file."""
    records = held().records
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "set.npz"
    np.savez(path, x=records.x, y=records.y)
    return DataSource(SCHEMA, str(path), lambda schema: records, streamer=streamer(path))


def given(source: DataSource, folder: Path, mapping: Map, *queries: ClippedSum, seed: int | None = 3) -> list[bytes]:
    found = answers(source, folder, lambda *_: mapping, *queries, seed=seed)  # type: ignore[arg-type]
    return [values.tobytes() for label in found for values in found[label]]


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[StreamedRecords]]:
    """Makes vaults read so many records at a time, and tells what they have opened."""
    opened: list[StreamedRecords] = []

    def start(size: int) -> list[StreamedRecords]:
        monkeypatch.setenv("LIMBECK_MEMORY", "1")
        monkeypatch.setattr("limbeck.data.streams.streamed.MOST_RECORDS", size)
        monkeypatch.setattr("limbeck.vault.streamed_samples.MOST_COINS", max(3 * size, 5))
        before = LocalVault.open_records

        def noting(vault: LocalVault, grant: object) -> None:
            before(vault, grant)  # type: ignore[arg-type]
            assert isinstance(vault._records, StreamedRecords)
            opened.append(vault._records)

        monkeypatch.setattr(LocalVault, "open_records", noting)
        return opened

    return start


@pytest.mark.parametrize("name", MAPPINGS)
def test_every_map_answers_the_same_bits_from_pieces(
    name: str, tmp_path: Path, in_pieces: Callable[[int], list[StreamedRecords]]
) -> None:
    mapping = MAPPINGS[name]
    query = ClippedSum(label="sums", map=mapping.kind, clip=0.7, noise_multiplier=1.5, rate=(0.9, 1.0, 0.5))
    queries = (
        query,
        replace(query, label="whole", rate=(1.0,), by_class=False),
        replace(query, label="few", rate=(0.02,)),
    )
    source = as_file(tmp_path)
    expected = given(source, tmp_path / "held", mapping, *queries)
    opened = in_pieces(300)
    assert given(source, tmp_path / "streamed", mapping, *queries) == expected
    assert opened


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [3, None])
def test_every_form_of_file_answers_the_same_bits_from_pieces(
    form: str,
    seed: int | None,
    tmp_path: Path,
    in_pieces: Callable[[int], list[StreamedRecords]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With predictable coins, which fall by the records' own order, and with those that fall by the file's."""
    source, schema = source_of(tmp_path, form), schema_of(form)
    classes = len(schema.classes)
    mapping = (
        Identity() if classes == 3 else RandomFourier(spec=FourierSpec(numbers=6, features=8, bandwidth=1, seed=1))
    )
    query = ClippedSum(label="all", map=mapping.kind, clip=2.0, noise_multiplier=1.0)
    rates = tuple(np.linspace(0.3, 0.8, classes).tolist())
    queries = query, replace(query, label="some", rate=rates, count=2), replace(query, label="none", rate=(1e-12,))

    def asked(folder: str) -> list[bytes]:
        drawn = iter(range(1000))  # what the operating system gives, once more the same
        monkeypatch.setattr(
            "limbeck.vault.noise.os.urandom", lambda count: hashlib.sha256(str(next(drawn)).encode()).digest()[:count]
        )
        return given(source, tmp_path / folder, mapping, *queries, seed=seed)

    expected = asked("held")
    for size in SIZES:
        opened = in_pieces(size)
        assert asked(f"streamed-{size}") == expected
        assert len(opened[-1]) == COUNT
        monkeypatch.undo()


def test_without_noise_and_clip_sums_are_the_same_up_to_rounding(
    tmp_path: Path, in_pieces: Callable[[int], list[StreamedRecords]]
) -> None:
    source = source_of(tmp_path, "npz")
    query = ClippedSum(label="sums", map="identity", clip=math.inf, noise_multiplier=0.0)
    expected = answers(source, tmp_path / "held", lambda *_: Identity(), query)["sums"][0]  # type: ignore[arg-type]
    assert not in_pieces(7)
    found = answers(source, tmp_path / "streamed", lambda *_: Identity(), query)["sums"][0]  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("form", ["npz", "csv"])
def test_ranges_of_a_file_add_up_to_the_whole(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ranks add up, each with the coins of the whole: no record is taken by two of them, and none is lost."""
    source = source_of(tmp_path, form)
    monkeypatch.setenv("LIMBECK_MEMORY", "1")
    stream, schema = source.stream(), source.schema
    assert stream is not None
    whole = first_pass(stream, schema, lambda records: None)
    rates = (0.4,) * len(schema.classes)

    def taken(records: StreamedRecords) -> list[bytes]:
        found = sampled_pieces(records, schema, rates, SecretStream(bytes(32)), 16)
        return sorted(x.tobytes() + y.tobytes() for piece in found for x, y in zip(piece.x, piece.y, strict=True))

    assert 16 < len(set(taken(whole))) == len(taken(whole)) < COUNT
    for world in (2, 5):
        ranges = [taken(whole.part(rank, world)) for rank in range(world)]
        assert sorted(record for each in ranges for record in each) == taken(whole)
