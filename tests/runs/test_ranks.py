"""Runs under torchrun: what ranks do for a method, who prints, and what the environment says."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from limbeck.errors import BadInput, RankLost
from limbeck.methods import method_named
from limbeck.methods.elixir.method import Elixir
from limbeck.methods.elixir.set_descent import MOST_PARTS, SetDescent
from limbeck.methods.parts.matching import class_means, clipped_rows
from limbeck.methods.team import Alone, Work
from limbeck.methods.works import WORKS
from limbeck.nets.training.pool import Pool
from limbeck.privacy.schema import Schema
from limbeck.progress import Silent
from limbeck.release.reader import read_release
from limbeck.runs import ranks
from limbeck.vault.ledger import Ledger
from ranks_in_threads import Ranks
from working import asked, condense, make_plan

Cli = Callable[..., Any]
CPU = torch.device("cpu")
SCHEMA = Schema(name="tiny", shape=(1, 12, 12), classes=tuple("abcdefghij"), records=400, low=0.0, high=1.0)
ELIXIR = {"per_class": 3, "T": 2, "L": 20, "networks": 2, "memory": 2, "width": 4, "sigma": 2.0}


@pytest.fixture(params=[2, 3])
def team(request: pytest.FixtureRequest) -> Iterator[Ranks]:
    found = Ranks(request.param, ranks.serve)  # type: ignore[arg-type]
    yield found
    found.end()


def work_of(classes: int = 10, per_class: int = 3) -> SetDescent:
    schema = dataclasses.replace(SCHEMA, classes=SCHEMA.classes[:classes])
    method = Elixir(per_class=per_class, T=1, width=4).resolved(schema, 1.0)
    pool = Pool(method._net(schema), schema.shape, classes, 1, CPU)
    pool.renew(0, 5)
    labels, rng = method.labels(schema), torch.Generator().manual_seed(1)
    images = torch.rand((len(labels), *schema.shape), generator=rng) * 2 - 1
    question = method.questions(schema).new(3, pool.body_weights(pool.body(0)), images, labels)
    target = torch.randn((classes, question.rows(images, labels).shape[1]), generator=rng) * 0.01
    first, second, mean = (torch.rand(images.shape, generator=rng) * 1e-3 for _ in range(3))
    return SetDescent(
        questions=(question, question), targets=(target, -target), labels=labels, images=images, first=first, second=second,
        moves=torch.tensor(8.0), mean=mean, average=0.9, eta=0.02,
    )  # fmt: skip


# The method's own work


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_parts_of_a_descent_are_the_descent(classes: int) -> None:
    """Against the whole set at once, with the moments of Adam written out."""
    work = work_of(classes)
    images, first, second, mean = (each.clone().double() for each in (work.images, work.first, work.second, work.mean))
    for move, (question, target) in enumerate(zip(work.questions, work.targets, strict=True), start=9):
        seen = images.float().requires_grad_(True)
        rows = clipped_rows(question.rows(seen, work.labels), 1.0)
        slope = torch.autograd.grad((class_means(rows, work.labels, classes) - target).square().sum(), seen)[0].double()
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope.square()
        size = (second / (1 - 0.99**move)).sqrt() + 1e-8
        images = (images - 0.02 * first / (1 - 0.9**move) / size).clamp(-1, 1)
        mean = 0.9 * mean + 0.1 * images
    found = Alone().share(work, CPU)
    assert len(found) == work.parts == min(classes, MOST_PARTS)
    expected = torch.stack([images, first, second, mean])
    torch.testing.assert_close(torch.cat(found, dim=1).double(), expected, rtol=1e-4, atol=1e-6)
    assert float(work.moves) == 8  # what it was made of stays


def test_shared_out_it_has_the_same_bits(team: Ranks) -> None:
    work = work_of()
    found, alone = ranks.RankTeam(team.group).share(work, CPU), Alone().share(work, CPU)
    assert len(found) == len(alone) and all(torch.equal(*pair) for pair in zip(found, alone, strict=True))
    assert len(team.wires.replied) == team.group.size - 1


def test_a_rank_that_fails_ends_the_work_and_nobody_waits(
    team: Ranks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work, done = work_of(), SetDescent.done

    def failing(self: SetDescent, part: int, device: torch.device) -> torch.Tensor:
        if part == 1:  # that of rank 1
            raise RuntimeError("marker of a value")
        return done(self, part, device)

    with monkeypatch.context() as patched:
        patched.setattr(SetDescent, "done", failing)
        with pytest.raises(RankLost, match="Rank 1"):
            ranks.RankTeam(team.group).share(work, CPU)
    assert "marker" not in capsys.readouterr().err
    assert len(ranks.RankTeam(team.group).share(work, CPU)) == work.parts


def test_work_that_is_not_on_the_list_is_refused(team: Ranks, capsys: pytest.CaptureFixture[str]) -> None:
    class Mine(Work):
        kind = "mine"
        parts = 4

        def done(self, part: int, device: torch.device) -> torch.Tensor:
            return torch.zeros(1)

    with pytest.raises(RankLost):
        ranks.RankTeam(team.group).share(Mine(), CPU)
    assert all(kind == each.kind for kind, each in WORKS.items())


# A whole run


@dataclasses.dataclass
class Here:
    schema: Schema = SCHEMA

    def load(self) -> Any:
        from limbeck.data.records import Records

        random = np.random.default_rng(0)
        return Records(
            random.random((400, 1, 12, 12), dtype=np.float32), np.arange(400, dtype=np.int64) % len(SCHEMA.classes)
        )

    def prepare(self, agree: Any = None) -> None: ...


NDPDC = {"per_class": 2, "L": 5, "I": 3, "width": 4, "sigma": 2.0}
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "settings", "sizes"),
    [("elixir", ELIXIR, (1, 3)), pytest.param("ndpdc", NDPDC, (1, 2, 4), marks=SLOW)],
    ids=["elixir", "ndpdc"],
)
def test_a_run_makes_the_same_set_for_any_number_of_ranks(
    name: str, settings: dict[str, Any], sizes: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "_source_at", lambda data: Here())
    plan = make_plan(SCHEMA, method_named(name, settings), None, 1e-5)
    sets = []
    for size in sizes:
        request = asked(data="tiny", ledger=str(tmp_path / f"{size}.sqlite"), insecure_seed=5)
        at = Ranks(size, ranks.serve)  # type: ignore[arg-type]
        group = at.group if size > 1 else None
        made = condense(request, plan, Here(), tmp_path / f"out-{size}", Silent(), group=group)  # type: ignore[arg-type]
        at.end()
        sets.append(read_release(made.release).x.tobytes())
        with Ledger.open_to_read(tmp_path / f"{size}.sqlite") as book:
            account = book.account("tiny")
            assert account is not None and len(account.bookings) == 1
    assert len(set(sets)) == 1


def test_teachers_are_refused_with_a_sentence_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "_source_at", lambda data: Here())
    settings = {"per_class": 2, "K": 6, "T": 2, "B": 3, "block": 3, "M": 4, "width": 2, "snapshots": 2, "sigma": 2.0}
    plan = make_plan(SCHEMA, method_named("gswgan", settings), None, 1e-5)
    at = Ranks(2, ranks.serve)  # type: ignore[arg-type]
    request = asked(data="tiny", ledger=str(tmp_path / "l.sqlite"))
    with pytest.raises(BadInput, match="teachers"):
        condense(request, plan, Here(), tmp_path / "out", Silent(), group=at.group)  # type: ignore[arg-type]
    at.end()
    assert not (tmp_path / "out").exists()
    with Ledger.open_to_read(tmp_path / "l.sqlite") as book:
        assert book.account("tiny") is None


# The environment


def test_a_plain_process_is_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = torch.get_num_threads()
    for given in ({}, {"RANK": "1"}, {"WORLD_SIZE": "4", "RANK": "1"}):  # as some batch systems set them
        with monkeypatch.context() as patched, ranks.joined() as group:
            for name, value in given.items():
                patched.setenv(name, value)
            assert group is None and torch.get_num_threads() == threads


@pytest.mark.parametrize("text", ["0", "x", "nan", "-3", "1e9", ""])
def test_how_long_to_wait_is_a_number_of_seconds(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ranks.SECONDS, text)
    with pytest.raises(BadInput, match="LIMBECK_RANK_SECONDS"):
        ranks._patience()
    monkeypatch.setenv(ranks.SECONDS, "7.5")
    assert ranks._patience() == 7.5 and math.isfinite(ranks.USUAL_SECONDS)


def test_ranks_other_than_0_print_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("methods", "--json").json
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    quiet = cli("methods", "--json")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    wrong = cli("condense", "--nonsense", "--json")
    assert wrong.code == 2 and not wrong.out and wrong.err.startswith("limbeck: rank 1: ")
    monkeypatch.delenv("MASTER_ADDR")  # as a batch system may set it
    assert cli("methods", "--json").json
