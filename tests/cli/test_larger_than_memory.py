"""Commands over records that are not held: the same releases, files that change, lists of files, and limits on memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamed_files
from limbeck import verify
from limbeck.vault.ledger import Ledger

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 3, "--set", "L=10", "--set", "sigma=2", "--delta", 1e-5)
SEEDED = (*SMALL, "--insecure-seed", 5)


def written(folder: Path, form: str) -> tuple[str, tuple[str, Path]]:
    spec, schema = streamed_files.written(folder / "set", form), folder / "schema.toml"
    schema.write_text(streamed_files.toml_of(streamed_files.schema_of(form)))
    return spec, ("--schema", schema)


@pytest.mark.parametrize("form", ["csv glob", "table folder", "npz list", "idx"])
def test_a_set_is_the_same_from_pieces(form: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, schema = written(tmp_path, form)
    made = cli("condense", spec, *schema, *SEEDED, "--out", tmp_path / "held")
    assert made.code == 0 and "read in pieces" not in made.err, made.err
    monkeypatch.setenv("LIMBECK_MEMORY", "1KB")
    made = cli(
        "condense", spec, *schema, *SEEDED, "--out", tmp_path / "streamed", "--ledger", tmp_path / "other.sqlite"
    )
    assert made.code == 0, made.err
    sets = [np.load(tmp_path / name / "set.npz") for name in ("held", "streamed")]
    assert sets[0]["x"].tobytes() == sets[1]["x"].tobytes()


def test_a_run_over_a_list_of_files_that_lost_one_is_resumed_when_it_is_back(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, schema = written(tmp_path, "csv glob")
    monkeypatch.setenv("LIMBECK_MEMORY", "1KB")
    monkeypatch.chdir(tmp_path)
    store, stored, away = Ledger.store, [0], tmp_path / "away.csv"

    def losing(*arguments: Any, **named: Any) -> bytes:
        stored[0] += 1
        if stored[0] == 2:
            shutil.move(tmp_path / "set" / "rows-1.csv", away)
        return store(*arguments, **named)

    monkeypatch.setattr(Ledger, "store", losing)
    ended = cli("condense", "set/rows-*.csv", *schema, *SMALL, "--out", tmp_path / "out", "--json")
    assert ended.code == 4 and "no longer what it was" in ended.json["error"]["message"]
    assert ended.json["error"]["next_command"] == f"limbeck resume {tmp_path / 'out'}"
    run = json.loads((tmp_path / "out" / ".run" / "run.json").read_text())
    assert str(tmp_path / "set" / "rows-1.csv") in json.dumps(run)  # no glob, which would mean other files now
    ended = cli("resume", tmp_path / "out")
    assert ended.code == 4 and "there is no file" in ended.err
    shutil.move(away, tmp_path / "set" / "rows-1.csv")
    monkeypatch.chdir("/")
    assert cli("resume", tmp_path / "out").code == 0
    assert verify(tmp_path / "out").queries[0].count == 3 and stored[0] == 4  # two before, and the rest


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("none-*.csv", "no file has such a name"),
        ("a.csv,gone.csv", "there is no file"),
        ("a.csv,b.parquet", "of the kinds .csv, .parquet"),
        ("a.csv,a.csv", "lists a file twice"),
        ("a.csv,,b.csv", "an empty name"),
        ("?.txt", "of the kinds .txt"),
    ],
)
def test_a_list_of_files_that_is_none(
    spec: str, says: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.parquet", "b.csv", "c.txt"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    ended = cli("plan", spec, "--epsilon", 1)
    assert ended.code in (2, 4) and says in ended.err


def test_a_split_of_a_list_is_refused(cli: Cli, tmp_path: Path) -> None:
    spec, schema = written(tmp_path, "csv glob")
    assert "no train and test split" in cli("plan", f"{spec}:test", *schema, "--epsilon", 1).err


@pytest.mark.parametrize("text", ["0", "-1", "much", "1.5GB", "4XB", "GB"])
def test_the_bound_is_a_size(
    text: str, cli: Cli, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMBECK_MEMORY", text)
    ended = cli("condense", archive, *SMALL, "--out", tmp_path / "out")
    assert (
        ended.code == 2 and "LIMBECK_MEMORY must be a number of bytes" in ended.err and not (tmp_path / "out").exists()
    )


def test_scores_need_the_records_together_and_say_so(
    cli: Cli, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "test.npz"
    np.savez(archive, x=np.zeros((60, 8, 8)), y=np.arange(60) % 10)
    lines = ['name = "own"', "shape = [1, 8, 8]", f"classes = {list('0123456789')}", "records = 60", "high = 16"]
    Path(f"{archive}.limbeck.toml").write_text("\n".join(lines))
    monkeypatch.setattr("limbeck.data.streams.memory.available", lambda: 2000)
    ended = cli("evaluate", release, "--test", archive, "--models", "linear", "--repeats", 1)
    assert ended.code == 11 and "has to be held whole" in ended.err and "are free here" in ended.err


def limited(address: int, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """A command of its own, with so many bytes of addresses."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (address, address))

    command = [sys.executable, "-c", "from limbeck.cli import main; main()", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, env=environment, timeout=300)


def sparse(folder: Path, count: int) -> Path:
    """Pictures of zeros that take no room on the disk."""
    folder.mkdir()
    for name, shape in (("x.npy", (count, 28, 28)), ("y.npy", (count,))):
        with (folder / name).open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            file.truncate(file.tell() + int(np.prod(shape)))
    lines = ['name = "zeros"', "shape = [1, 28, 28]", f"classes = {list('0123456789')}", f"records = {count}"]
    (folder / "limbeck.toml").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("address", [100, 300, 500, 700, 850, 950, 1000])
def test_below_a_gigabyte_of_addresses_the_command_says_what_it_needs(address: int, tmp_path: Path) -> None:
    words = ("condense", "digits", *map(str, SMALL), "--ledger", tmp_path / "l.sqlite", "--out", tmp_path / "out")
    ended = limited(address * 10**6, *words, "--json")
    assert ended.returncode in (0, 11), ended.stderr
    if ended.returncode:
        said = json.loads(ended.stdout)["error"]["message"]
        assert "not enough memory" in said and (
            f"a limit of {address / 1000:.2f} GB" in said or "resume" in ended.stdout
        )


@pytest.mark.slow
def test_more_than_the_addresses_hold_is_read_in_pieces_or_refused(tmp_path: Path) -> None:
    """1.6 GB of pictures in 1.5 GB of addresses: sums are read in pieces, teachers say what they need."""
    data = sparse(tmp_path / "zeros", 2_000_000)
    where = ("--delta", "1e-8", "--epsilon", "1", "--json")
    ended = limited(
        1_500_000_000,
        "condense",
        data,
        "--method",
        "ldpdc",
        "--per-class",
        "2",
        *where,
        "--out",
        tmp_path / "a",
        "--ledger",
        tmp_path / "a.sqlite",
    )
    assert ended.returncode == 0 and "read in pieces" in ended.stderr, ended.stderr
    ended = limited(
        1_500_000_000,
        "condense",
        data,
        "--method",
        "datalens",
        *where,
        "--out",
        tmp_path / "b",
        "--ledger",
        tmp_path / "b.sqlite",
    )
    assert ended.returncode == 11 and "has to be held whole" in ended.stdout, ended.stdout
    assert not (tmp_path / "b").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_records(tmp_path: Path) -> None:
    """Three million pictures, 2.4 GB, take little more memory than three thousand."""
    code = (
        "import sys\nfrom limbeck.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')][0].split()[1], file=sys.stderr)"
    )
    peaks = []
    for count in (3_000, 3_000_000):
        data = sparse(tmp_path / str(count), count)
        words = ("--method", "ldpdc", "--per-class", "2", "--set", "L=10", "--delta", "1e-8", "--epsilon", "1")
        where = ("--ledger", tmp_path / f"{count}.sqlite", "--out", tmp_path / f"out-{count}")
        ended = subprocess.run(
            [sys.executable, "-c", code, *map(str, ("condense", data, *words, *where))],
            capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1", "LIMBECK_MEMORY": "1MB"},
        )  # fmt: skip
        peaks.append(int(ended.stderr.split()[-1]) * 1024)
    assert peaks[1] < peaks[0] + 100e6 and peaks[1] < 0.8e9, peaks
