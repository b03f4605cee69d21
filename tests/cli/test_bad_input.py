"""Whatever is wrong with the input: one clear sentence, the documented exit code, and everything as it was before."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from limbeck.vault.ledger import Account, Ledger

Cli = Callable[..., Any]
SMALL = ("--method", "ldpdc", "--per-class", 2, "--set", "L=10", "--set", "sigma=2", "--delta", 1e-5)


def accounts() -> list[Account]:
    with Ledger.open() as ledger:
        return ledger.accounts()


def contents(folder: Path) -> dict[str, str]:
    """All names below a folder with their hashes; the ledger is compared by what it says."""
    files = (path for path in folder.rglob("*") if "home" not in path.relative_to(folder).parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder" for path in files}


@pytest.fixture
def refused(cli: Cli, tmp_path: Path) -> Callable[..., str]:
    """Run a command that must fail with this code, and return its sentence."""

    def run(code: int, *arguments: object) -> str:
        before, budgets = contents(tmp_path), accounts()
        plain = cli(*arguments)
        ended = cli(*arguments, "--json")
        assert plain.out == "" and "Traceback" not in plain.err, plain
        assert ended.code == plain.code == code, plain.err
        error = ended.json["error"]
        assert error["exit_code"] == code
        assert f"limbeck: {error['message']}" in plain.err
        assert "\n" not in error["message"] and "unforeseen" not in error["message"]
        assert contents(tmp_path) == before
        assert accounts() == budgets
        return str(error["message"]) + (f" next: {error['next_command']}" if error["next_command"] else "")

    return run


# Data


def empty(root: Path) -> None:
    for name in ("cat", "dog"):
        shutil.rmtree(root / name)


def empty_classes(root: Path) -> None:
    empty(root)
    (root / "cat").mkdir()


def not_an_image(root: Path) -> None:
    (root / "cat" / "3.png").write_bytes(b"not an image")


def cut_short(root: Path) -> None:
    whole = (root / "cat" / "3.png").read_bytes()
    (root / "cat" / "3.png").write_bytes(whole[:40])


def another_size(root: Path) -> None:
    Image.fromarray(np.zeros((9, 9), dtype=np.uint8)).save(root / "dog" / "3.png")


def another_class(root: Path) -> None:
    (root / "cat").rename(root / "cow")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (empty, "holds no image"),
        (empty_classes, "holds no image"),
        (not_an_image, "3.png is not a readable image"),
        (cut_short, "3.png is not a readable image"),
        (another_size, "3.png is 9 x 9 pixels, but the schema says 8 x 8"),
        (another_class, "1 not named like a class"),
    ],
)
def test_bad_folder(
    refused: Callable[..., str], pictures: Path, tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    spoil(pictures)
    assert says in refused(4, "condense", pictures, *SMALL, "--out", tmp_path / "new" / "out")


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": np.zeros((200, 5)), "y": np.arange(200) % 2}, "shape"),
        ({"x": np.zeros(200), "y": np.arange(200) % 2}, "shape"),
        ({"x": np.zeros((200, 4)), "y": np.arange(199) % 2}, "200 records but 199 labels"),
        ({"x": np.zeros((200, 4)), "y": np.arange(200) % 3}, "labels outside 0..1"),
        ({"x": np.zeros((200, 4)), "y": -(np.arange(200) % 2)}, "labels outside 0..1"),
        ({"x": np.zeros((200, 4)), "y": np.array(["a", "c"] * 100)}, "a label that is not a class"),
        ({"x": np.zeros((200, 4)), "y": np.zeros(200)}, "labels of type"),
        ({"x": np.array([["a"] * 4] * 200), "y": np.arange(200) % 2}, "values of type"),
        ({"x": np.zeros((0, 4)), "y": np.zeros(0, dtype=int)}, "holds no record"),
        ({"x": np.zeros((200, 4))}, "has no array y"),
        ({"x": np.zeros((200, 4)), "y": np.array([object()] * 200)}, "not a readable .npz"),
    ],
)
def test_bad_archive(
    refused: Callable[..., str], archive: Path, tmp_path: Path, arrays: dict[str, Any], says: str
) -> None:
    np.savez(archive, **arrays)
    assert says in refused(4, "condense", archive, *SMALL, "--out", tmp_path / "out")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_values_of_a_record_never_fail(cli: Cli, archive: Path, tmp_path: Path, value: float) -> None:
    x = np.zeros((200, 4), dtype=np.float32)
    x[17, 2] = value
    np.savez(archive, x=x, y=np.arange(200) % 2)
    assert cli("condense", archive, *SMALL, "--out", tmp_path / "out").code == 0
    with np.load(tmp_path / "out" / "set.npz") as content:
        assert np.isfinite(content["x"]).all()


def test_one_class_without_records_is_fine(cli: Cli, archive: Path, tmp_path: Path) -> None:
    """Which classes have records is private: it must not decide whether a run fails."""
    np.savez(archive, x=np.zeros((200, 4)), y=np.zeros(200, dtype=int))
    assert cli("condense", archive, *SMALL, "--out", tmp_path / "out").code == 0


def test_schema_of_one_class(refused: Callable[..., str], archive: Path, tmp_path: Path) -> None:
    schema = archive.with_name("own.npz.limbeck.toml")
    schema.write_text(schema.read_text().replace("['a', 'b']", "['a']"))
    assert "at least 2 classes" in refused(2, "condense", archive, *SMALL, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "code"), [("", 2), ("name = ", 2), ("name = 'own'", 2), ("nonsense = 1", 2), ("classes = 3", 2)]
)
def test_bad_schema(refused: Callable[..., str], archive: Path, tmp_path: Path, text: str, code: int) -> None:
    archive.with_name("own.npz.limbeck.toml").write_text(text)
    refused(code, "condense", archive, *SMALL, "--out", tmp_path / "out")


def test_no_schema(refused: Callable[..., str], archive: Path, tmp_path: Path) -> None:
    archive.with_name("own.npz.limbeck.toml").unlink()
    assert "limbeck schema draft" in refused(2, "condense", archive, *SMALL, "--out", tmp_path / "out")
    refused(4, "condense", archive, *SMALL, "--schema", tmp_path / "none.toml", "--out", tmp_path / "out")


@pytest.mark.parametrize("text", ["age\n1\n", "buys\nyes\n", "", "age,age\n1,2\n"])
def test_missing_column(refused: Callable[..., str], table: Path, tmp_path: Path, text: str) -> None:
    table.write_text(text)
    assert "column" in refused(4, "condense", table, *SMALL, "--out", tmp_path / "out")


def test_unknown_label_in_a_table(refused: Callable[..., str], table: Path, tmp_path: Path) -> None:
    table.write_text("age,buys\n1,maybe\n")
    assert "not a class" in refused(4, "condense", table, *SMALL, "--out", tmp_path / "out")


@pytest.mark.parametrize("data", ["nowhere", "nowhere.npz", "mnist", "", "digits:valid"])
def test_data_that_is_not_there(refused: Callable[..., str], tmp_path: Path, data: str) -> None:
    refused(4, "condense", data, *SMALL, "--out", tmp_path / "out")


def test_a_failed_first_run_leaves_no_budget(
    refused: Callable[..., str], cli: Cli, archive: Path, tmp_path: Path
) -> None:
    whole = archive.read_bytes()
    archive.write_bytes(b"no archive")
    refused(4, "condense", archive, *SMALL, "--out", tmp_path / "out")
    assert accounts() == []
    assert "no budget" in refused(4, "budget", "show", "own")
    archive.write_bytes(whole)
    # The next run costs more than the failed one, and is free to set its own budget.
    assert cli("condense", archive, *SMALL, "--set", "sigma=1", "--out", tmp_path / "out").code == 0
    assert accounts()[0].remaining_epsilon == 0.0


# Numbers


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "abc", "1e-320", "", "-inf"])
def test_bad_epsilon(refused: Callable[..., str], tmp_path: Path, epsilon: str) -> None:
    options = ("--method", "ldpdc", "--per-class", 2, f"--epsilon={epsilon}")
    assert "epsilon" in refused(2, "condense", "digits", *options, "--out", tmp_path / "out")
    assert "epsilon" in refused(2, "plan", "digits", *options)
    assert "epsilon" in refused(2, "budget", "set", "digits", f"--epsilon={epsilon}")
    assert "epsilon" in refused(2, "privacy", "--rate", 0.1, "--steps", 10, f"--epsilon={epsilon}")


@pytest.mark.parametrize("delta", ["0", "1", "2", "-1e-5", "nan", "inf", "0.01", "1e-320"])
def test_bad_delta(refused: Callable[..., str], tmp_path: Path, delta: str) -> None:
    options = ("--method", "ldpdc", "--per-class", 2, "--set", "sigma=2", f"--delta={delta}")
    assert "delta" in refused(2, "condense", "digits", *options, "--out", tmp_path / "out")
    assert "delta" in refused(2, "plan", "digits", *options)


def test_no_epsilon(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "Give --epsilon" in refused(2, "condense", "digits", "--method", "ldpdc", "--out", tmp_path / "out")


@pytest.mark.parametrize("count", [0, -1, 1000, 10**9])
def test_bad_per_class(refused: Callable[..., str], tmp_path: Path, count: int) -> None:
    options = ("--method", "ldpdc", f"--per-class={count}", "--set", "sigma=2")
    assert "per_class" in refused(2, "condense", "digits", *options, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("sigma=nan", "sigma"),
        ("sigma=0", "sigma"),
        ("sigma=-1", "sigma"),
        ("sigma=inf", "sigma"),
        ("sigma=lots", "sigma=lots"),
        ("I=0", "I must be at least 1"),
        ("I=1.5", "I=1.5"),
        ("I=inf", "I=inf"),
        ("L=0", "L must be at least 1"),
        ("eta=nan", "eta"),
        ("eta=inf", "eta"),
        ("momentum=1", "momentum"),
        ("G=nan", "G must be"),
        ("width=-1", "width"),
        ("net=nonsense", "nonsense"),
        ("augment=maybe", "augment"),
        ("seed=-1", "seed"),
        ("nonsense=1", "no setting 'nonsense'"),
        ("sigma", "key=value"),
        ("=1", "key=value"),
    ],
)
def test_bad_setting(refused: Callable[..., str], tmp_path: Path, pair: str, says: str) -> None:
    options = ("--method", "ndpdc", "--per-class", 2, "--set", "I=2", "--set", "sigma=2", "--set", pair)
    assert says in refused(2, "condense", "digits", *options, "--out", tmp_path / "out")


def test_bad_method_and_device(refused: Callable[..., str], tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    assert "no method 'magic'" in refused(2, "condense", "digits", "--method", "magic", "--epsilon", 1, *out)
    for device in ("cuda:7", "abacus", "", "meta"):
        assert "device" in refused(2, "condense", "digits", *SMALL, f"--device={device}", *out)


@pytest.mark.parametrize(
    "options",
    [
        ("--rate=0", "--steps=1", "--noise-multiplier=1"),
        ("--rate=2", "--steps=1", "--noise-multiplier=1"),
        ("--rate=nan", "--steps=1", "--noise-multiplier=1"),
        ("--rate=0.1", "--steps=0", "--noise-multiplier=1"),
        ("--rate=0.1", "--steps=1", "--noise-multiplier=0"),
        ("--rate=0.1", "--steps=1", "--noise-multiplier=nan"),
        ("--rate=0.1", "--steps=1", "--noise-multiplier=inf"),
        ("--rate=0.1", "--steps=1"),
        ("--rate=0.1", "--steps=1", "--noise-multiplier=1", "--epsilon=1"),
        ("--rate=0.1", "--steps=1", "--epsilon=inf"),
        ("--rate=0.1", "--steps=1", "--noise-multiplier=1", "--delta=0"),
    ],
)
def test_bad_privacy_question(refused: Callable[..., str], options: tuple[str, ...]) -> None:
    refused(2, "privacy", *options)


# Places


def test_output_that_is_taken(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("text")
    assert "is not empty" in refused(8, "condense", "digits", *SMALL, "--out", tmp_path / "taken")
    assert "is a file" in refused(8, "condense", "digits", *SMALL, "--out", tmp_path / "taken" / "letter.txt")
    refused(9, "condense", "digits", *SMALL, "--out", tmp_path / "taken" / "letter.txt" / "out")


def test_empty_output_folder_is_used_and_kept_on_failure(
    refused: Callable[..., str], cli: Cli, archive: Path, tmp_path: Path
) -> None:
    out, whole = tmp_path / "out", archive.read_bytes()
    out.mkdir()
    archive.write_bytes(b"no archive")
    refused(4, "condense", archive, *SMALL, "--out", out)
    archive.write_bytes(whole)
    assert cli("condense", archive, *SMALL, "--out", out).code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_parent_that_cannot_be_written(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(9, "condense", "digits", *SMALL, "--out", tmp_path / "locked" / "out")


def test_parent_that_refuses(refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mkdir(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    accounts()  # the ledger is there already

    monkeypatch.setattr(Path, "mkdir", mkdir)
    said = refused(9, "condense", "digits", *SMALL, "--out", tmp_path / "out")
    assert "cannot be made: Permission denied" in said


def full(place: str, monkeypatch: pytest.MonkeyPatch, after: int = 0) -> None:
    """A disk that is full whenever a file with this name is to be written, after so many times."""
    replace, calls = Path.replace, [0]

    def refusing(self: Path, target: Path) -> Path:
        if Path(target).name == place:
            calls[0] += 1
            if calls[0] > after:
                raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refusing)


def test_full_disk_before_the_first_answer(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full("run.json", monkeypatch)
    said = refused(9, "condense", "digits", *SMALL, "--out", tmp_path / "deep" / "out")
    assert "No space left on device" in said


def test_full_disk_when_the_booking_is_noted(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full("run.json", monkeypatch, 1)
    assert cli("condense", "digits", *SMALL, "--out", tmp_path / "out").code == 9
    assert accounts() == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "place", ["checkpoint.safetensors", "set.npz", "train.parquet", "certificate.json", "README.md"]
)
def test_full_disk_later_is_resumed(cli: Cli, tmp_path: Path, place: str) -> None:
    out = tmp_path / "out"
    with pytest.MonkeyPatch.context() as patch:
        full(place, patch)
        refused = cli("condense", "digits", *SMALL, "--out", out)
    assert refused.code == 9 and f"next: limbeck resume {out}" in refused.err and "No space left" in refused.err
    assert cli("resume", out).code == 0 and cli("verify", out).code == 0
    assert len(accounts()[0].bookings) == 1


def test_full_disk_for_pictures(cli: Cli, tmp_path: Path) -> None:
    def png_bytes(*_: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("limbeck.report.pages.png_bytes", png_bytes)
        refused = cli("condense", "digits", *SMALL, "--out", tmp_path / "out")
    assert refused.code == 9 and "No space left on device" in refused.err and "limbeck resume" in refused.err
    assert cli("resume", tmp_path / "out").code == 0


# The budget and the ledger


def test_budget_too_small(refused: Callable[..., str], cli: Cli, tmp_path: Path) -> None:
    cli("budget", "set", "digits", "--epsilon", 0.1, "--delta", 1e-5)
    said = refused(3, "condense", "digits", *SMALL, "--out", tmp_path / "out")
    for part in ("requested", "remaining 0.1", "difference", "next: limbeck budget set digits --epsilon"):
        assert part in said


def test_budget_that_is_used_up(refused: Callable[..., str], cli: Cli, tmp_path: Path) -> None:
    assert cli("condense", "digits", *SMALL, "--out", tmp_path / "first").code == 0
    said = refused(3, "condense", "digits", *SMALL, "--out", tmp_path / "second")
    assert "remaining 0.0" in said
    command = said.partition("next: limbeck ")[2].split()
    assert cli(*command).code == 0
    assert cli("condense", "digits", *SMALL, "--out", tmp_path / "second").code == 0
    assert "already spent" in refused(3, "budget", "set", "digits", "--epsilon", 0.001)


def test_fixed_noise_that_costs_more_than_allowed(refused: Callable[..., str], tmp_path: Path) -> None:
    said = refused(3, "condense", "digits", *SMALL, "--epsilon", 0.01, "--out", tmp_path / "out")
    assert "difference" in said and "sigma" in said


def test_a_run_that_is_not_private_needs_the_word_of_the_owner(refused: Callable[..., str], tmp_path: Path) -> None:
    options = ("--method", "dm", "--per-class", 1, "--set", "I=1", "--set", "width=4", "--epsilon", "inf")
    assert "not private" in refused(3, "condense", "digits", *options, "--out", tmp_path / "out")
    options = ("--method", "dm", "--per-class", 1, "--epsilon", "1")
    assert "not private" in refused(2, "condense", "digits", *options, "--out", tmp_path / "out")


@pytest.mark.parametrize("kind", ["folder", "text", "empty"])
def test_ledger_that_is_none(refused: Callable[..., str], tmp_path: Path, kind: str) -> None:
    place = tmp_path / "book"
    if kind == "folder":
        place.mkdir()
    else:
        place.write_bytes(b"" if kind == "empty" else b"this is a letter\n" * 500)
    assert str(place) in refused(5, "condense", "digits", *SMALL, "--out", tmp_path / "out", "--ledger", place)
    refused(5, "budget", "show", "--ledger", place)
    refused(5, "budget", "set", "digits", "--epsilon", 1, "--ledger", place)


@pytest.mark.parametrize("name", ["", " ", " a", "a\nb"])
def test_bad_name_of_a_data_set(refused: Callable[..., str], name: str) -> None:
    assert "printable name" in refused(2, "budget", "set", name, "--epsilon", 1)


def test_a_defect_of_a_method_before_the_first_answer_costs_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("limbeck.methods.ldpdc.LDPDC.run", broken)
    assert cli("condense", "digits", *SMALL, "--out", tmp_path / "out").code == 1
    assert accounts() == [] and not (tmp_path / "out").exists()


# Evaluating and verifying


def test_bad_evaluation(refused: Callable[..., str], release: Path, archive: Path, tmp_path: Path) -> None:
    evaluate = ("evaluate", release, "--test")
    assert "shape" in refused(2, *evaluate, archive)
    assert "nonsense" in refused(2, *evaluate, "digits", "--models", "nonsense")
    assert "repeats" in refused(2, *evaluate, "digits", "--repeats", 0)
    assert "preset" in refused(2, *evaluate, "digits", "--preset", "nonsense")
    assert "device" in refused(2, *evaluate, "digits", "--device", "abacus")
    refused(4, *evaluate, "nowhere")
    refused(9, *evaluate, "digits", "--out", tmp_path / "none" / "result.json")
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "none", archive):
        assert "no release" in refused(6, "evaluate", place, "--test", "digits")


def test_a_damaged_set_is_not_evaluated(refused: Callable[..., str], release: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    whole = (copy / "set.npz").read_bytes()
    for damaged in (b"", b"text", whole[:100], whole[:-30], whole.replace(b"x.npy", b"z.npy")):
        (copy / "set.npz").write_bytes(damaged)
        assert "damaged" in refused(6, "evaluate", copy, "--test", "digits")


def test_bad_verification(refused: Callable[..., str], release: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("text")
    for place in ("empty", "none", "file"):
        assert "no release" in refused(6, "verify", tmp_path / place)
    assert "signed by" in refused(6, "verify", release, "--key", "00" * 32)
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    (copy / "note.txt").write_text("text")
    assert "note.txt" in refused(6, "verify", copy)
    (copy / "note.txt").unlink()
    (copy / "set.npz").write_bytes(b"text")
    assert "set.npz was changed" in refused(6, "verify", copy)
    for text in ("", "[]", "{}", '{"format": 1}'):
        (copy / "certificate.json").write_text(text)
        refused(6, "verify", copy)


@pytest.mark.parametrize("path", ["nowhere", "empty", "letter.txt", "one-class"])
def test_bad_draft(refused: Callable[..., str], tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "letter.txt").write_text("text")
    (tmp_path / "one-class" / "cat").mkdir(parents=True)
    Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save(tmp_path / "one-class" / "cat" / "1.png")
    refused(2 if path in ("letter.txt", "one-class") else 4, "schema", "draft", tmp_path / path)


def test_draft_of_a_table_needs_its_label(refused: Callable[..., str], table: Path, tmp_path: Path) -> None:
    assert "say which column is the label" in refused(2, "schema", "draft", table)
    assert "there is no column 'x'" in refused(2, "schema", "draft", table, "--label", "x")
    refused(9, "schema", "draft", table, "--label", "buys", "--out", tmp_path / "none" / "draft.toml")
