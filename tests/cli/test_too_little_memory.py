"""Too little memory is no defect: its own exit code, with advice, and a run that can go on."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from limbeck.errors import ran_out

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 2, "--set", "L=10", "--set", "sigma=2", "--delta", 1e-5)


def too_much_for_torch() -> None:
    torch.empty(1 << 60, dtype=torch.uint8)


def too_much_for_numpy() -> None:
    np.empty(1 << 60, dtype=np.uint8)


def too_much_for_arrow() -> None:
    pa.allocate_buffer(1 << 60)


FAILURES = (too_much_for_torch, too_much_for_numpy, too_much_for_arrow)


@pytest.mark.parametrize("fail", FAILURES)
def test_every_library_is_understood(fail: Callable[[], None]) -> None:
    with pytest.raises(Exception) as caught:
        fail()
    assert ran_out(caught.value)
    assert not ran_out(RuntimeError("shapes do not fit")) and not ran_out(OSError(2, "No such file"))


@pytest.mark.parametrize("fail", FAILURES)
def test_while_records_are_read(
    cli: Cli, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[[], None]
) -> None:
    monkeypatch.setattr("limbeck.data.arrays._values", lambda *_: fail())
    ended = cli("condense", archive, *SMALL, "--out", tmp_path / "out", "--json")
    assert ended.code == 11 and ended.json["error"]["kind"] == "OutOfMemory"
    assert "not enough memory" in ended.err and not (tmp_path / "out").exists()
    ended = cli("schema", "draft", archive)
    assert ended.code == 11 and "not enough memory" in ended.err


@pytest.mark.parametrize("fail", FAILURES)
def test_while_a_run_is_under_way(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Callable[[], None]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("limbeck.release.writer.ReleaseWriter.write", lambda *_, **__: fail())
        ended = cli("condense", "digits", *SMALL, "--out", tmp_path / "out")
    assert ended.code == 11 and f"next: limbeck resume {tmp_path / 'out'}" in ended.err
    assert cli("resume", tmp_path / "out").code == 0


def test_a_file_that_is_too_large(cli: Cli, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMBECK_MOST_BYTES", "1000")
    ended = cli("schema", "draft", archive, "--json")
    assert ended.code == 11 and ended.json["error"]["kind"] == "TooLarge"
    assert "set LIMBECK_MOST_BYTES=" in ended.err


def test_a_release_that_is_too_large(cli: Cli, release: Path, tmp_path: Path) -> None:
    """A set comes from somebody else: its header is judged like that of any other file."""
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2000000000, 1), }\n"
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(copy / "set.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", start)
        archive.writestr("y.npy", start)
    data = bytearray((copy / "set.npz").read_bytes())
    place = data.find(b"PK\1\2")
    for _ in range(2):  # the central directory, which is what a reader goes by
        data[place + 24 : place + 28] = (len(start) + 2_000_000_000).to_bytes(4, "little")
        place = data.find(b"PK\1\2", place + 1)
    (copy / "set.npz").write_bytes(data)
    ended = cli("evaluate", copy, "--test", "digits")
    assert ended.code == 11 and "set.npz would take about" in ended.err
