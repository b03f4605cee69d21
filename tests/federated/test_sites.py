"""Sites that are missing, poor, different or broken: what the server learns, and what the ledgers hold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sites import Lossy, Shared, joined, ledgers_in, own_schema, terms_of
from tests.vault.contract import DELTA, SCHEMA, exact_sum, plan_of, query_of, records_of

from limbeck.data import Records
from limbeck.errors import (
    BadInput,
    BudgetRefused,
    DataUnreadable,
    LimbeckError,
    RunConflict,
    VaultUnreachable,
    WallBreach,
)
from limbeck.federated.fitting import require_fitting
from limbeck.federated.vault import FederatedVault
from limbeck.release.signature import signing_key
from limbeck.vault.api import Grant, Identity, OneHot
from limbeck.vault.ledger import Ledger
from limbeck.vault.masked import MaskedVault
from limbeck.vault.masking import MaskKeys
from limbeck.vault.private_folder import folder_of
from limbeck.vault.process import requests as say
from limbeck.vault.process.requests import message_of, read
from limbeck.vault.process.wire import from_bytes, to_bytes

MARKER = "a secret of record 17"
NOISES = ["site", "shared"]


class Federated:
    """Three sites and a transport that can lose some."""

    def __init__(self, folder: Path, noise: str, load: Callable[[], Records] = records_of, **terms: object) -> None:
        self.books, self.log, self.load = ledgers_in(folder, 3), list[str](), load
        self.terms = terms_of(self.books, noise=noise, **terms)
        for name, book in self.books.items():
            book.set_budget(own_schema(SCHEMA, name).name, 50.0, 100 * DELTA)
        self.vault = self.restarted()

    def restarted(self) -> FederatedVault:
        def around(inner: object) -> Lossy:
            self.line = Lossy(inner)  # type: ignore[arg-type]
            return self.line

        return joined(self.terms, SCHEMA, self.books, self.load, log=self.log, around=around)

    def spent(self) -> list[float]:
        accounts = [book.account(own_schema(SCHEMA, name).name) for name, book in self.books.items()]
        return [0.0 if account is None else account.spent_epsilon for account in accounts]


@pytest.fixture(params=NOISES)
def three(request: pytest.FixtureRequest, tmp_path: Path) -> Federated:
    return Federated(tmp_path, request.param)


def test_a_site_with_too_little_budget_ends_it_and_nothing_is_booked_anywhere(three: Federated) -> None:
    three.books["s1"].set_budget(own_schema(SCHEMA, "s1").name, 0.01, 100 * DELTA)
    with pytest.raises(BudgetRefused, match="Site 's1'") as refused:
        three.vault.grant(plan_of(), "1" * 32)
    assert three.spent() == [0, 0, 0] and "0.01" not in refused.value.message
    assert three.vault.state("1" * 32) == "void"


def test_a_site_that_is_missing_when_it_is_booked(three: Federated) -> None:
    three.vault.describe()
    three.line.gone = {"s2"}
    with pytest.raises(VaultUnreachable, match="Site 's2'"):
        three.vault.grant(plan_of(), "1" * 32)
    assert three.spent() == [0, 0, 0]


def test_a_missing_site_ends_the_round_and_the_others_answers_are_not_paid_twice(three: Federated) -> None:
    plan = plan_of()
    grant = three.vault.grant(plan, "1" * 32)
    three.vault.ask(grant, "sums", 0, Identity())
    three.line.gone = {"s0"}
    with pytest.raises(VaultUnreachable, match="All sites are needed"):
        three.vault.ask(grant, "sums", 1, Identity())
    three.line.gone = set()
    assert three.vault.give_back(grant) is False and three.spent() == pytest.approx([plan.price.epsilon] * 3)
    # s1 and s2 have answered, and that stays spent, also at s0, which has not. The run goes on when s0 is back, after a
    # restart of everything.
    vault = three.restarted()
    again = vault.take_up("1" * 32, plan, booked=True)
    assert vault.drawn(again) == {"sums": 2}
    answer = vault.ask(again, "sums", 1, Identity())
    assert np.abs(answer.values - exact_sum(records_of())).max() < 8 * answer.noise_std
    assert three.spent() == pytest.approx([plan.price.epsilon] * 3)


def test_nothing_is_given_back_anywhere_once_one_site_has_answered(three: Federated) -> None:
    """Not at the site that has not answered either: its records are in no sum, but the others' masks and bookings count on it."""
    plan = plan_of()
    grant = three.vault.grant(plan)
    if three.terms.noise == "shared":
        three.vault._mask_keys(grant)
    three.line.gone = {"s0"}
    with pytest.raises(VaultUnreachable):
        three.vault.ask(grant, "sums", 0, Identity())
    three.line.gone = set()
    assert three.vault.give_back(grant) is False
    assert three.spent() == pytest.approx([plan.price.epsilon] * 3)


def test_a_reply_that_is_lost_is_asked_for_again_and_is_the_same(three: Federated) -> None:
    grant = three.vault.grant(plan_of(), "1" * 32)
    three.vault.ask(grant, "sums", 1, Identity())  # keys are exchanged
    three.line.lost = {"s1"}
    with pytest.raises(VaultUnreachable):
        three.vault.ask(grant, "sums", 0, Identity())
    first = three.line.seen[-1]
    three.line.lost = set()
    three.vault.ask(grant, "sums", 0, Identity())
    assert {site: list(frames) for site, frames in three.line.seen[-1].items()} == {
        site: list(frames) for site, frames in first.items()
    }


def test_a_sites_failure_reaches_the_server_as_a_code_and_nothing_else(tmp_path: Path) -> None:
    def broken() -> Records:
        raise RuntimeError(MARKER)

    for noise in NOISES:
        folder = tmp_path / noise
        folder.mkdir()
        federated = Federated(folder, noise, broken)
        grant = federated.vault.grant(plan_of())
        with pytest.raises(DataUnreadable) as told:
            federated.vault.open_records(grant)
        assert MARKER not in told.value.message and "RuntimeError" not in told.value.message
        seen = b"".join(frame for replies in federated.line.seen for frames in replies.values() for frame in frames)
        assert MARKER.encode() not in seen and b"RuntimeError" not in seen
        assert any("RuntimeError" in line for line in federated.log)  # in the sites' own logs, by its kind
        assert federated.spent() == [0, 0, 0]


def test_an_unforeseen_failure_is_one_fixed_reply(three: Federated, monkeypatch: pytest.MonkeyPatch) -> None:
    grant = three.vault.grant(plan_of())

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError(MARKER)

    monkeypatch.setattr("limbeck.vault.clipped_sums.ClippedSums.summed", fails)
    with pytest.raises(LimbeckError) as told:
        three.vault.ask(grant, "sums", 0, Identity())
    assert told.value.exit_code == 1 and MARKER not in told.value.message
    assert MARKER.encode() not in b"".join(f for r in three.line.seen for fs in r.values() for f in fs)


def test_sites_with_different_schemas_are_refused_before_anything_is_booked(three: Federated) -> None:
    for change in ({"high": 2.0}, {"classes": ("a", "b", "d")}, {"unit": "patient", "units": 30}):
        other = dataclasses.replace(own_schema(SCHEMA, "s1"), **change)  # type: ignore[arg-type]
        with pytest.raises(BadInput, match=rf"Site 's1'.*{next(iter(change))}"):
            require_fitting(SCHEMA, "s1", other)
    three.vault._schema = dataclasses.replace(SCHEMA, low=-1.0)
    with pytest.raises(BadInput, match="low differ"):
        three.vault.grant(plan_of())
    assert three.spent() == [0, 0, 0]


def test_bytes_that_are_no_frame_are_refused_and_cost_nothing(three: Federated) -> None:
    inner = three.line.inner
    whole = to_bytes(message_of(say.Describe()))
    for frame in (b"", b"LBVT", b"\0" * 100, whole[:-1], whole + b"\0"):
        (reply,) = inner.exchange({"s0": [frame]})["s0"]
        said = read(from_bytes(reply), say.REPLIES)
        assert said == say.Failed("malformed")


# Noise once


def masked(tmp_path: Path, **terms: object) -> tuple[Federated, Grant]:
    federated = Federated(tmp_path, "shared", **terms)  # type: ignore[arg-type]
    return federated, federated.vault.grant(plan_of(), "1" * 32)


def own_grant(federated: Federated, grant: Grant, site: str) -> Grant:
    return federated.vault._grant(grant, site)


def told(federated: Federated, site: str, request: say.Said) -> say.Said:
    (reply,) = federated.line.inner.exchange({site: [to_bytes(message_of(request))]})[site]
    return read(from_bytes(reply), say.REPLIES)


def test_sums_never_leave_a_site_without_their_mask(tmp_path: Path) -> None:
    """Under shared noise one site's sum has too little noise to be seen by itself."""
    federated, grant = masked(tmp_path)
    reply = told(federated, "s0", say.Ask(own_grant(federated, grant, "s0"), "sums", 0, Identity()))
    assert reply == say.Failed("wall_breach")
    federated.vault.ask(grant, "sums", 0, Identity())
    exact = exact_sum(records_of())
    for frame in federated.line.seen[-1].values():
        part = read(from_bytes(frame[0]), say.REPLIES)
        assert isinstance(part, say.Masked)
        assert np.abs(part.values.numpy() * grant.plan.queries[0].step - exact).min() > 100 * np.abs(exact).max()


def test_the_server_cannot_turn_masks_off_or_use_them_twice(tmp_path: Path) -> None:
    federated, grant = masked(tmp_path)
    keys = federated.vault._mask_keys(grant)
    own = own_grant(federated, grant, "s0")
    for wrong in ((), keys[:2], (keys[0], keys[0], keys[0])):
        assert told(federated, "s0", say.AskMasked(own, "sums", 0, Identity(), wrong)) == say.Failed("wall_breach")
    assert federated.vault.drawn(grant) == {"sums": 0}
    first = told(federated, "s0", say.AskMasked(own, "sums", 0, Identity(), keys))
    again = told(federated, "s0", say.AskMasked(own, "sums", 0, Identity(), keys))
    assert isinstance(first, say.Masked) and isinstance(again, say.Masked) and (first.values == again.values).all()
    # The same mask over another sum would give the difference of the two away.
    other = told(federated, "s0", say.AskMasked(own, "sums", 0, Identity(scale=2.0), keys))
    assert other == say.Failed("run_conflict")


def test_a_forgotten_answer_is_not_masked_again(tmp_path: Path) -> None:
    """A second sum under a stream that was used would give the difference of the two away: also when the first one is gone."""
    federated, grant = masked(tmp_path)
    keys = federated.vault._mask_keys(grant)
    own = own_grant(federated, grant, "s0")
    federated.vault.ask(grant, "sums", 0, Identity())
    federated.vault.forget(grant, "sums", 1)
    for mapping in (Identity(), Identity(scale=2.0)):
        assert told(federated, "s0", say.AskMasked(own, "sums", 0, mapping, keys)) == say.Failed("run_conflict")
    for index in (-1, 3, 2**40):
        reply = told(federated, "s0", say.AskMasked(own, "sums", index, Identity(), keys))
        assert reply in (say.Failed("wall_breach"), say.Failed("malformed"))
    assert federated.vault.drawn(grant) == {"sums": 1}


def test_a_site_that_runs_twice_gives_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes of one site over one ledger compute one answer at the same time: what the first stored is given by both."""
    federated, grant = masked(tmp_path)
    keys, own = federated.vault._mask_keys(grant), own_grant(federated, grant, "s0")
    request = say.AskMasked(own, "sums", 0, Identity(), keys)
    first = told(federated, "s0", request)
    federated.restarted()
    monkeypatch.setattr(Ledger, "fetch", lambda *_: None)  # the second looked before the first had stored
    again, other = told(federated, "s0", request), told(federated, "s1", request)
    assert isinstance(first, say.Masked) and isinstance(again, say.Masked)
    assert (first.values == again.values).all() and other == say.Failed(
        "wall_breach"
    )  # not booked under that name there


def test_answers_masked_by_another_version_are_not_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sites that masked a round differently would add up to noise, unnoticed."""
    federated, grant = masked(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("limbeck.vault.masked.PROTOCOL", 1)
        federated.vault.ask(grant, "sums", 0, Identity())
    with pytest.raises(RunConflict):
        federated.vault.ask(grant, "sums", 0, Identity())
    federated.vault.ask(grant, "sums", 1, Identity())


def test_masks_are_the_terms_choice_and_not_the_servers(tmp_path: Path) -> None:
    federated = Federated(tmp_path, "site")
    grant = federated.vault.grant(plan_of(), "1" * 32)
    own = own_grant(federated, grant, "s0")
    for request in (say.OfferKey(own), say.AskMasked(own, "sums", 0, Identity(), ())):
        assert told(federated, "s0", request) == say.Failed("wall_breach")
    assert federated.vault.drawn(grant) == {"sums": 0}


def test_sites_that_are_asked_different_things_give_noise(tmp_path: Path) -> None:
    federated, grant = masked(tmp_path)
    keys, parts = federated.vault._mask_keys(grant), []
    for site, mapping in (("s0", Identity()), ("s1", Identity()), ("s2", Identity(scale=0.0))):
        reply = told(federated, site, say.AskMasked(own_grant(federated, grant, site), "sums", 0, mapping, keys))
        assert isinstance(reply, say.Masked)
        parts.append(reply.values.numpy().view(np.uint64))
    total = np.sum(parts, axis=0, dtype=np.uint64).view(np.int64) * grant.plan.queries[0].step
    assert np.median(np.abs(total)) > 1e6 * grant.plan.queries[0].noise_std


def test_each_site_adds_its_share_of_the_noise_and_no_more(tmp_path: Path) -> None:
    """Taken off its mask, one site's part has 1 / sqrt(K - c) of the noise."""
    federated, grant = masked(tmp_path, collusion=1)
    keys, query = federated.vault._mask_keys(grant), grant.plan.queries[0]
    federated.vault.ask(grant, "sums", 0, Identity())
    noise = []
    for number, (site, frames) in enumerate(federated.line.seen[-1].items()):
        reply = read(from_bytes(frames[0]), say.REPLIES)
        assert isinstance(reply, say.Masked)
        vault, own = federated_vault(federated, site), own_grant(federated, grant, site)
        context = vault._context(own, "sums", 0, Identity(), (3, reply.values.shape[1]))
        mask = vault._masks.mask(grant.id, keys, context, reply.values.numel()).reshape(reply.values.shape)
        steps = (reply.values.numpy().view(np.uint64) - mask).view(np.int64)
        noise.append(steps * query.step - exact_sum(Shared(records_of, 3).of(number)))
    spread = np.array(noise).reshape(3, -1).std(axis=1) / query.noise_std
    assert spread == pytest.approx([1 / math.sqrt(2)] * 3, rel=0.15)


def federated_vault(federated: Federated, site: str) -> MaskedVault:
    book: Ledger = federated.books[site]
    masks = MaskKeys(federated.terms, site, book.path, signing_key(book.path.with_name("signing-key")))

    class Unread:
        schema = own_schema(SCHEMA, site)

        def load(self) -> Records:
            raise AssertionError

    return MaskedVault(Unread(), book, masks)


def test_what_was_booked_under_terms_is_not_answered_under_others(tmp_path: Path) -> None:
    """An owner who changes the terms in the middle: the sites refuse, instead of answering once more with other noise."""
    federated, grant = masked(tmp_path)
    federated.vault.ask(grant, "sums", 0, Identity())
    for changes in ({"noise": "site"}, {"collusion": 1}):
        federated.terms = dataclasses.replace(terms_of(federated.books, noise="shared"), **changes)  # type: ignore[arg-type]
        vault = federated.restarted()
        with pytest.raises((RunConflict, WallBreach)):
            vault.take_up("1" * 32, plan_of(), booked=True)
        with pytest.raises((RunConflict, WallBreach)):
            vault.ask(grant, "sums", 0, Identity())


def test_the_key_of_masks_goes_with_the_grant(tmp_path: Path) -> None:
    federated, grant = masked(tmp_path)
    federated.vault.ask(grant, "sums", 0, Identity())
    paths = [folder_of(book.path, grant.id) / "mask" for book in federated.books.values()]
    assert all(path.exists() for path in paths)
    federated.vault.close(grant)
    assert not any(path.exists() for path in paths)
    assert told(federated, "s0", say.OfferKey(own_grant(federated, grant, "s0"))) == say.Failed("run_conflict")
    assert not any(path.exists() for path in paths)


def test_a_lost_key_of_masks_is_noticed_and_gives_no_garbage(tmp_path: Path) -> None:
    federated, grant = masked(tmp_path)
    federated.vault.ask(grant, "sums", 0, Identity())
    (folder_of(federated.books["s1"].path, grant.id) / "mask").unlink()
    vault = federated.restarted()
    vault.take_up(grant.id, grant.plan, booked=True)
    with pytest.raises(RunConflict):
        vault.ask(grant, "sums", 0, Identity())


def test_sums_without_a_grid_cannot_be_masked(tmp_path: Path) -> None:
    federated = Federated(tmp_path, "shared")
    for book, name in zip(federated.books.values(), federated.books, strict=True):
        book.set_budget(own_schema(SCHEMA, name).name, math.inf, 0.01)
    with pytest.raises(BadInput):
        federated.vault.grant(plan_of(query_of(clip=math.inf, noise_multiplier=0.0)))


def test_answers_asked_ahead_are_those_that_are_given(three: Federated) -> None:
    grant = three.vault.grant(plan_of(query_of(count=6)), "1" * 32)
    three.vault.ahead(grant, [("sums", index, Identity()) for index in range(4)])
    before = len(three.line.seen)
    given = [three.vault.ask(grant, "sums", index, Identity()).values for index in range(4)]
    assert len(three.line.seen) == before and len({value.tobytes() for value in given}) == 4
    vault = three.restarted()
    again = vault.take_up("1" * 32, grant.plan, booked=True)
    assert all((vault.ask(again, "sums", i, Identity()).values == given[i]).all() for i in range(4))
    with pytest.raises(WallBreach):
        vault.ask(again, "sums", 0, OneHot(classes=3))
