"""The vault in another process: it keeps the contract, whoever asks it, and goes on whatever becomes of its clients."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from choice_contract import ChoiceContract
from contract import SCHEMA, Premises, Source, VaultContract, plan_of, query_of, records_of
from process_serving import Served, served
from test_contract import LocalPremises

from limbeck.data import Records
from limbeck.errors import BadInput, DataUnreadable, LimbeckError, RunConflict, VaultUnreachable, WallBreach
from limbeck.nets import NetSpec, build
from limbeck.nets.features.fourier import FourierSpec
from limbeck.nets.features.hermite import HermiteSpec
from limbeck.vault.api import (
    Grant,
    Hermite,
    Identity,
    Map,
    NetworkGradient,
    OneHot,
    RandomFeatures,
    RandomFourier,
    Randomness,
    Residual,
    SecondMoment,
    Transport,
    Vault,
)
from limbeck.vault.ledger import Ledger
from limbeck.vault.process import counter as counters
from limbeck.vault.process.client import ProcessVault
from limbeck.vault.process.failures import CODES, SENTENCES, code_of, failure
from limbeck.vault.process.limits import Limits
from limbeck.vault.process.socket_file import Door, listening


class ProcessPremises(LocalPremises):
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        super().__init__(folder)
        self._stack = stack

    def vault(self, source: Source, randomness: Randomness | None = None) -> Vault:
        return self._stack.enter_context(served(source, self._ledger, randomness)).vault


class TestProcessVault(VaultContract, ChoiceContract):
    @pytest.fixture
    def premises(self, tmp_path: Path) -> Iterator[Premises]:
        with contextlib.ExitStack() as stack:
            yield ProcessPremises(tmp_path, stack)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.sqlite") as book:
        book.set_budget(SCHEMA.name, 1000.0, 0.005)
        yield book


@pytest.fixture
def at(ledger: Ledger) -> Iterator[Served]:
    with served(Source(records_of()), ledger) as found:
        yield found


# Several clients


def test_two_clients_at_once_are_answered_one_after_the_other(ledger: Ledger) -> None:
    at_work, most = [0], [0]

    class Slow(Source):
        def load(self) -> Records:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
            time.sleep(0.2)
            at_work[0] -= 1
            return super().load()

    source = Slow(records_of())
    answers: dict[int, list[np.ndarray]] = {}

    with served(source, ledger) as at:

        def run(number: int) -> None:
            vault = ProcessVault(at.path)
            grant = vault.grant(plan_of())
            answers[number] = [vault.ask(grant, "sums", index, Identity()).values for index in range(3)]
            assert vault.drawn(grant) == {"sums": 3}
            vault.close(grant)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(answers) == 6 and most == [1]
    assert len({values.tobytes() for each in answers.values() for values in each}) == 18


def test_two_clients_with_one_grant_get_the_same_bytes(at: Served) -> None:
    plan = plan_of()
    grant = at.vault.grant(plan, "a" * 32)
    found: list[bytes] = []

    def ask() -> None:
        found.append(ProcessVault(at.path).ask(grant, "sums", 0, Identity()).values.tobytes())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8 and len(set(found)) == 1 and at.vault.drawn(grant) == {"sums": 1}


def test_more_connections_than_it_takes_are_told_so_and_come_again(ledger: Ledger) -> None:
    limits = Limits(seconds=2.0, connections=2)
    with served(Source(records_of()), ledger, limits=limits) as at, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        for line in idle:
            line.connect(str(at.path))
        time.sleep(0.2)
        with pytest.raises(RunConflict, match="as many connections"):
            ProcessVault(at.path, patience=0.3).describe()
        # Those that say nothing are cut, and then there is room.
        assert ProcessVault(at.path, patience=20.0).describe() == SCHEMA


# Clients that go away


def test_an_answer_that_nobody_waits_for_is_stored_and_given_again(ledger: Ledger) -> None:
    """Killed while its answer is computed: the next client gets the bytes that the first one would have got."""
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(30)

    source = Source(records_of(), wait)
    with served(source, ledger) as at:
        grant = at.vault.grant(plan_of(), "b" * 32)
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                ProcessVault(at.path).ask(grant, "sums", 0, Identity())
            os._exit(0)
        assert begun.wait(30)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert at.vault.state(grant.id) == "open"  # the book can be looked at meanwhile
        go_on.set()
        again = at.vault.ask(grant, "sums", 0, Identity()).values
        stored = ledger.fetch(grant.id, "sums", 0)
        assert stored is not None and stored.payload == again.tobytes()
        assert at.vault.drawn(grant) == {"sums": 1} and source.loads == 1


def test_a_server_that_ends_and_begins_again_goes_on_where_it_was(ledger: Ledger) -> None:
    plan = plan_of()
    with served(Source(records_of()), ledger) as at:
        grant = at.vault.grant(plan)
        first = at.vault.ask(grant, "sums", 0, Identity()).values
    with pytest.raises(VaultUnreachable, match="cannot be reached"):
        at.vault.describe()
    unread = Source(records_of(seed=5))
    with served(unread, ledger) as at:
        assert (at.vault.ask(grant, "sums", 0, Identity()).values == first).all() and unread.loads == 0


def test_a_server_that_is_at_work_says_so_when_it_is_to_end(ledger: Ledger) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(30)

    with served(Source(records_of(), wait), ledger) as at:
        grant = at.vault.grant(plan_of())
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(at.vault.ask(grant, "sums", 0, Identity())))
        thread.start()
        assert begun.wait(30)
        assert at.server.stop(0.1) is False
        with pytest.raises(VaultUnreachable):
            at.vault.describe()
        go_on.set()
        thread.join(30)
        assert len(found) == 1  # what was under way is answered
        assert at.server.stop(10.0) is True


def test_whoever_waits_when_the_server_ends_hears_no_failure(at: Served) -> None:
    """Its turn never came. With a failure's code the run would end as a defect, without the word to resume it."""
    grant = at.vault.grant(plan_of())
    assert at.server._counter.end(5.0)
    with pytest.raises(VaultUnreachable, match="went away"):
        at.vault.ask(grant, "sums", 0, Identity())
    assert at.log == []


# Failures


@dataclasses.dataclass
class Broken(Source):
    """A source whose error quotes a record."""

    error: Exception = dataclasses.field(default_factory=lambda: ValueError("Anna Example, HIV positive"))

    def load(self) -> Records:
        raise self.error


SECRET = "Anna Example, HIV positive"


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        DataUnreadable(SECRET),
        WallBreach(SECRET),
        RunConflict(SECRET),
        BadInput(SECRET),
        MemoryError(SECRET),
        KeyError(SECRET),
        LimbeckError(SECRET),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_reader_says_the_client_hears_one_sentence(error: Exception, ledger: Ledger) -> None:
    """The bytes on the socket are looked at, not only the exception."""
    from limbeck.vault.process.requests import OpenRecords, message_of
    from limbeck.vault.process.wire import header_of

    with served(Broken(records_of(), error=error), ledger) as at:
        grant = at.vault.grant(plan_of())
        with pytest.raises(DataUnreadable) as raised:
            at.vault.open_records(grant)
        assert raised.value.message == SENTENCES["data_unreadable"][1]
        assert at.vault.state(grant.id) == "void"
        grant = at.vault.grant(plan_of())
        message = message_of(OpenRecords(grant))
        header, _ = header_of(message, [])
        from limbeck.vault.process.wire import MAGIC, PREFIX, VERSION

        said = at.talk(PREFIX.pack(MAGIC, VERSION, len(header), 0) + header)
        assert b"data_unreadable" in said and b"Anna" not in said and len(said) < 200


@pytest.mark.parametrize("error", [ValueError, WallBreach, RunConflict, LimbeckError, MemoryError, RuntimeError])
def test_no_text_of_an_error_crosses_the_socket(
    error: type[Exception], at: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = at.vault.grant(plan_of())

    def fail(*_: object) -> None:
        raise error(SECRET)

    monkeypatch.setattr("limbeck.vault.local.LocalVault.ask", fail)
    with pytest.raises(LimbeckError) as raised:
        at.vault.ask(grant, "sums", 0, Identity())
    assert raised.value.message in {sentence for _, sentence in SENTENCES.values()}
    assert raised.value.__cause__ is None
    if not issubclass(error, LimbeckError):
        assert type(raised.value) is LimbeckError
        assert SECRET not in "\n".join(at.log) and error.__name__ in "\n".join(at.log)  # nor is it in the owner's log


def test_the_numbers_of_a_budget_stay_with_its_owner(ledger: Ledger, at: Served) -> None:
    from limbeck.errors import BudgetRefused

    ledger.set_budget(SCHEMA.name, 1.2345, 0.001)
    with pytest.raises(BudgetRefused) as raised:
        at.vault.grant(plan_of(query_of(noise_multiplier=0.1)))
    assert "1.2345" not in raised.value.message and raised.value.next_command is None
    assert "1.2345" in "\n".join(at.log)


def test_every_code_has_a_sentence_and_an_unknown_one_is_a_failure() -> None:
    assert {code for _, code in CODES} | {"busy", "failed"} == set(SENTENCES)
    assert type(failure("something new")) is LimbeckError
    for kind, code in CODES:
        assert code_of(kind("x")) == code
    assert code_of(ZeroDivisionError()) == code_of(LimbeckError("x")) == "failed"


def test_after_a_failure_in_the_middle_the_vault_is_opened_afresh(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a computation stays nowhere: the vault that failed is not asked again."""
    grant = at.vault.grant(plan_of())
    opened: list[object] = []
    counter = at.server._counter
    real = counter._open_vault
    monkeypatch.setattr(counter, "_open_vault", lambda: opened.append(real()) or opened[-1])
    monkeypatch.setattr("limbeck.vault.local.LocalVault._noised", lambda *_: 1 / 0)
    with pytest.raises(LimbeckError, match="failed at this step"):
        at.vault.ask(grant, "sums", 0, Identity())
    monkeypatch.undo()
    monkeypatch.setattr(counter, "_open_vault", lambda: opened.append(real()) or opened[-1])
    at.vault.ask(grant, "sums", 0, Identity())
    at.vault.ask(grant, "sums", 1, Identity())
    assert len(opened) == 2 and at.vault.drawn(grant) == {"sums": 2}


def test_records_are_held_once_and_not_after_the_last_grant(ledger: Ledger) -> None:
    source = Source(records_of())
    with served(source, ledger) as at:
        grants = [at.vault.grant(plan_of()) for _ in range(3)]
        for grant in grants:
            at.vault.ask(grant, "sums", 0, Identity())
        assert source.loads == 1
        for grant in grants:
            at.vault.close(grant)
        assert at.server._counter._vaults == {}


def test_of_many_grants_the_ones_used_last_are_held(at: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MOST_VAULTS", 2)
    grants = [at.vault.grant(plan_of()) for _ in range(4)]
    for grant in (*grants, grants[0]):
        at.vault.ask(grant, "sums", 0, Identity())
    assert list(at.server._counter._vaults) == [grants[3].id, grants[0].id]


def test_failures_that_nobody_foresaw_are_told_so_many_times_at_most(
    at: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether one happens might depend on a record, and it costs nothing."""
    monkeypatch.setattr(counters, "MOST_FAILURES", 3)
    grant = at.vault.grant(plan_of())
    with monkeypatch.context() as patch:
        patch.setattr("limbeck.vault.local.LocalVault._noised", lambda *_: 1 / 0)
        for _ in range(3):
            with pytest.raises(LimbeckError, match="failed at this step"):
                at.vault.ask(grant, "sums", 0, Identity())
    with pytest.raises(WallBreach):
        at.vault.ask(grant, "sums", 0, Identity())
    assert at.vault.describe() == SCHEMA and "start it again" in at.log[-1]


def test_a_map_for_fewer_classes_tells_nothing_about_labels(ledger: Ledger) -> None:
    """It has the form of one that was tried, and is not tried again. If it failed on a label, that would be a free answer."""
    ledger.set_budget(SCHEMA.name, math.inf, 0.005)
    records = records_of()
    counting = query_of(map="one_hot", clip=1.0, noise_multiplier=0.0, by_class=False)
    with served(Source(records), ledger) as at:
        grant = at.vault.grant(plan_of(counting))
        assert at.vault.ask(grant, "sums", 0, OneHot(classes=3)).values.round().tolist() == [30, 30, 30]
        assert at.vault.ask(grant, "sums", 1, OneHot(classes=2)).values.round().tolist() == [30, 30]


SMALL_NET = NetSpec(kind="mlp", width=5, depth=2)
FOURIER = FourierSpec(numbers=144, features=20, bandwidth=0.7, seed=1)
CONVNET = NetSpec(kind="convnet", width=4, depth=1)


def gradient_of(**changes: torch.Tensor) -> NetworkGradient:
    weights = {**build(CONVNET, (1, 12, 12), 3, seed=0).state_dict(), **changes}
    return NetworkGradient(net=CONVNET, shape=(1, 12, 12), classes=3, weights=weights)


HERMITE = HermiteSpec(numbers=144, order=2, rho=0.5, pairs=9, share=0.5, height=12, width=12, reach=2)


def transport_of(numbers: int) -> Transport:
    return Transport(points=torch.zeros(3, 2, numbers), potentials=torch.zeros(3, 2), blur=0.1)


MISFITS: dict[str, tuple[Map, Map]] = {
    "weights": (gradient_of(), gradient_of(**{"body.0.conv.bias": torch.zeros(7)})),
    "numbers": (RandomFourier(spec=FOURIER), RandomFourier(spec=dataclasses.replace(FOURIER, numbers=100))),
    "features": (RandomFourier(spec=FOURIER), RandomFourier(spec=dataclasses.replace(FOURIER, features=30))),
    "pixels": (Hermite(spec=HERMITE), Hermite(spec=dataclasses.replace(HERMITE, numbers=288))),
    "points": (transport_of(144), transport_of(100)),
    "centre": (SecondMoment(centre=(0.0,) * 144), SecondMoment(centre=(0.0,) * 5)),
    "shape": (
        RandomFeatures(net=SMALL_NET, shape=(1, 12, 12), seed=1),
        RandomFeatures(net=SMALL_NET, shape=(1, 4, 4), seed=1),
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_whether_a_map_fails_tells_nothing_about_the_sample(name: str, ledger: Ledger) -> None:
    """The worst client: a class's records are in the sample or nobody is, and a map of a form that was tried does not fit.

    If it failed only where there is a record, the failure would tell, for nothing, whether the class has one.
    """
    tried, misfit = MISFITS[name]
    records = records_of()
    outcomes = []
    for kept in (records.y < 3, records.y < 2):  # the third class has records, or none
        source = Source(Records(records.x[kept], records.y[kept]))
        query = query_of(map=tried.kind, rate=(1e-300, 1e-300, 1.0), noise_multiplier=5.0, count=3)
        with served(source, ledger) as at:
            grant = at.vault.grant(plan_of(query))
            at.vault.ask(grant, "sums", 0, tried)
            try:
                at.vault.ask(grant, "sums", 1, misfit)
                outcomes.append("answered")
            except LimbeckError as error:
                outcomes.append(error.message)
    assert outcomes[0] == outcomes[1] and "failed at this step" not in outcomes[0]


@pytest.mark.parametrize("centre", [(3, 1, 144), (3,)])
def test_a_client_cannot_lay_a_table_along_the_records(centre: tuple[int, ...], at: Served) -> None:
    """Its own checks do not bind it. A row with all records of its block moved the sum by 256 times the clip."""
    grant = at.vault.grant(plan_of(query_of(map="residual", by_class=False)))
    for index, scale in enumerate((1e300, 1.0)):
        mapping = Residual(centre=torch.zeros(3, 144), scale=scale, form="length")
        object.__setattr__(mapping, "centre", torch.zeros(centre))
        with pytest.raises(BadInput):
            at.vault.ask(grant, "sums", index, mapping)
    assert at.vault.drawn(grant) == {"sums": 0}


def test_noise_in_doubles_is_for_runs_of_older_versions(at: Served) -> None:
    plan = plan_of(query_of(on_grid=False))
    with pytest.raises(WallBreach):
        at.vault.grant(plan)
    with pytest.raises(WallBreach):
        at.vault.take_up("9" * 32, plan)
    assert at.vault.state("9" * 32) is None


# What is sent


@pytest.mark.parametrize("name", ["../../x", "", "A" * 32, "1" * 31, "1" * 33, "/etc", "1" * 32 + "\n", "1" * 31 + "/"])
def test_a_grant_is_named_by_what_a_run_draws(name: str, at: Served, tmp_path: Path) -> None:
    """The vault names folders after grants, and removes them when a grant is closed."""
    (tmp_path / "x").mkdir()
    plan = plan_of()
    for call in (
        lambda: at.vault.grant(plan, name),
        lambda: at.vault.take_up(name, plan),
        lambda: at.vault.state(name),
        lambda: at.vault.close(Grant(name, plan)),
        lambda: at.vault.give_back(Grant(name, plan)),
    ):
        with pytest.raises(WallBreach, match="could not read the request"):
            call()
    assert (tmp_path / "x").exists()


def test_the_seed_and_the_streams_stay_with_the_vault(ledger: Ledger) -> None:
    with served(Source(records_of()), ledger, Randomness(insecure_seed=7)) as at:
        stated = at.vault.randomness
        assert stated.insecure_seed is None and not stated.releasable and "insecure" in stated.mode
        with pytest.raises(WallBreach):
            stated.stream("sums", 0)
    with served(Source(records_of()), ledger) as at:
        assert at.vault.randomness.mode == Randomness().mode and at.vault.randomness.releasable


def test_what_the_client_cannot_say_it_does_not_send(at: Served) -> None:
    grant = at.vault.grant(plan_of())
    for mapping in (Identity(scale=float("nan")), Identity(scale="1"), "identity", None):  # type: ignore[arg-type]
        with pytest.raises(WallBreach, match="does not know"):
            at.vault.ask(grant, "sums", 0, mapping)  # type: ignore[arg-type]


STEERING = "x\n\x1b[2Jlimbeck: all is well\r\u202e" + "A" * 60_000


def test_a_request_writes_one_short_line_into_the_owners_log(at: Served) -> None:
    """What is quoted is a stranger's: no line of its own, nothing that steers a terminal."""
    grant = at.vault.grant(plan_of())
    for call in (
        lambda: at.vault.ask(grant, STEERING, 0, Identity()),
        lambda: at.vault.forget(grant, STEERING, 1),
        lambda: at.vault.grant(dataclasses.replace(plan_of(), dataset=STEERING)),
        lambda: at.vault.grant(plan_of(query_of(rate=(0.5,) * 50_000))),
    ):
        at.log.clear()
        with contextlib.suppress(LimbeckError):
            call()
        assert all(line.isprintable() and len(line) < 1200 for line in at.log)
    with pytest.raises(WallBreach):
        at.vault.ask(grant, STEERING, 0, Identity())
    assert "no query 'x?" in at.log[-1] and at.log[-1].endswith("AAA ...")


@pytest.mark.parametrize("name", [STEERING, "a\nb", "\x1b[2J", "a" * 201])
def test_the_owners_ledger_keeps_plain_names_only(name: str, at: Served, ledger: Ledger) -> None:
    """'limbeck budget show' prints them."""
    for plan in (
        dataclasses.replace(plan_of(), method=name),
        plan_of(query_of(label=name)),
        plan_of(query_of(map=name)),
    ):
        with pytest.raises(WallBreach):
            at.vault.grant(plan)
        with pytest.raises(WallBreach):
            at.vault.take_up("7" * 32, plan)
    account = ledger.account(SCHEMA.name)
    assert account is not None and not account.bookings


# The socket's file


def test_the_socket_has_its_mode_before_anybody_can_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from process_serving import short_folder

    seen: list[int] = []
    bind, listen = socket.socket.bind, socket.socket.listen

    class Watched(socket.socket):
        def bind(self, address: str) -> None:  # type: ignore[override]
            bind(self, address)
            seen.append(stat.S_IMODE(os.stat(address).st_mode))

        def listen(self, backlog: int = 0) -> None:  # type: ignore[override]
            seen.append(stat.S_IMODE(os.stat(self.getsockname()).st_mode))
            listen(self, backlog)

    with short_folder() as folder:
        before = os.umask(0)
        try:
            monkeypatch.setattr("limbeck.vault.process.socket_file.socket.socket", Watched)
            for door, mode in ((Door(), 0o600), (Door(mode=0o660), 0o660)):
                seen.clear()
                with listening(folder / "s", door):
                    assert seen == [0o600, mode]
                    assert stat.S_IMODE((folder / "s").stat().st_mode) == mode
                assert not (folder / "s").exists()
        finally:
            os.umask(before)


def test_a_dead_servers_socket_is_replaced_and_a_live_one_refused() -> None:
    from process_serving import short_folder

    with short_folder() as folder:
        path = folder / "s"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        with (
            listening(path, Door()),
            pytest.raises(RunConflict, match="answers at"),
            listening(path, Door()),
        ):
            pass
        path.write_text("a letter")
        with pytest.raises(RunConflict, match="no socket"), listening(path, Door()):
            pass
        assert path.read_text() == "a letter"


def test_a_socket_that_another_server_made_meanwhile_is_left() -> None:
    from process_serving import short_folder

    with short_folder() as folder, contextlib.ExitStack() as stack:
        path = folder / "s"
        with listening(path, Door()):
            path.unlink()
            stack.enter_context(listening(path, Door()))
        assert path.exists()


@pytest.mark.parametrize(
    ("mode", "group", "is_mode"), [(None, None, 0o600), (None, "0", 0o660), ("660", None, 0o660), ("0666", None, 0o666)]
)
def test_who_may_connect(mode: str | None, group: str | None, is_mode: int) -> None:
    assert Door.of(mode, group).mode == is_mode


@pytest.mark.parametrize("mode", ["", "600 ", "777", "400", "0o600", "6600", "06600", "x"])
def test_a_mode_that_lets_nobody_talk_is_refused(mode: str) -> None:
    with pytest.raises(BadInput, match="--mode"):
        Door.of(mode, None)


def test_a_group_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match="no group"):
        Door.of(None, "no-such-group-here").group_id()
