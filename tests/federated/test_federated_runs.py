"""Whole runs over sites in this process: every kind of method, one release that verifies, and every way to break it off."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sites import Lossy, joined, ledgers_in, own_schema, public_key, terms_of

from limbeck.data import Records, open_source
from limbeck.errors import BadInput, BudgetRefused, NotAuthentic, RunConflict, VaultUnreachable, WallBreach
from limbeck.federated import running
from limbeck.federated.folders import Federation
from limbeck.federated.owner import OwnersVault
from limbeck.federated.running import federated_plan, run_federated
from limbeck.federated.simulate import Simulation, give_budgets, in_this_process, set_up
from limbeck.files import as_json
from limbeck.privacy.accounting import price
from limbeck.progress import Silent
from limbeck.release.certificate import NAME
from limbeck.release.parts import check_views
from limbeck.release.signature import signing_key
from limbeck.release.verification import verify
from limbeck.runs.request import DataReference
from limbeck.runs.resume import resume
from limbeck.vault.ledger import Ledger
from limbeck.vault.noise import Randomness
from stated import signed

DIGITS = open_source("digits")
LDPDC = {"per_class": 2, "L": 10, "sigma": 2.0}  # a fixed noise: finding one for an epsilon takes longer than the run
GSWGAN = {"per_class": 2, "K": 4, "T": 6, "B": 4, "M": 2, "width": 4, "critic_hidden": 4, "snapshots": 0, "sigma": 8.0}


class Trial:
    """Three sites of the digits, and a server's folder."""

    def __init__(self, folder: Path, seed: int | None = None, **terms: Any) -> None:
        self.folder, self.seed = folder, seed
        self.books = ledgers_in(folder, 3)
        self.terms = terms_of(self.books, **terms)
        self.federation = Federation(
            terms=self.terms, schema=DIGITS.schema, address="127.0.0.1:1", nodes=("a", "b", "c")
        )
        self.set_budgets(100.0)
        self.line: Any = None
        self.owner = folder / "owner.sqlite"

    def set_budgets(self, epsilon: float, sites: tuple[str, ...] = ("s0", "s1", "s2")) -> None:
        for name in sites:
            self.books[name].set_budget(own_schema(DIGITS.schema, name).name, epsilon, 1e-3)

    def transport(self) -> Lossy:
        """As after a restart of all sites."""

        def around(inner: Any) -> Lossy:
            self.line = Lossy(inner)
            return self.line

        joined(self.terms, DIGITS.schema, self.books, self.load, Randomness(self.seed), around=around)
        return self.line

    def load(self) -> Records:
        return DIGITS.load()

    def run(self, method: str, settings: Mapping[str, Any], epsilon: float | None = None, owner: bool = False) -> Path:
        plan = federated_plan(self.federation, method, settings, epsilon, 1e-5)
        return run_federated(
            self.folder, self.federation, self.transport(), plan, self.folder / "out", Silent(),
            self.owner if owner else None, 0.0,
        ).release  # fmt: skip

    def go_on(self, owner: bool = False) -> Path:
        return run_federated(
            self.folder,
            self.federation,
            self.transport(),
            None,
            self.folder / "out",
            Silent(),
            self.owner if owner else None,
        ).release

    def spent(self) -> list[float]:
        accounts = [book.account(own_schema(DIGITS.schema, name).name) for name, book in self.books.items()]
        return [0.0 if account is None else account.spent_epsilon for account in accounts]


NDPDC = {"per_class": 2, "I": 3, "L": 10, "width": 4, "sigma": 2.0}
ELIXIR = {"per_class": 2, "T": 2, "L": 20, "networks": 1, "width": 4, "epochs": 1, "life": 1, "waves": 8}


@pytest.mark.parametrize(
    ("method", "settings", "noise"),
    [
        ("ldpdc", LDPDC, "site"),
        ("ndpdc", NDPDC, "shared"),
        ("gswgan", GSWGAN, "shared"),
        pytest.param("ndpdc", NDPDC, "site", marks=pytest.mark.slow),
        pytest.param("elixir", ELIXIR, "site", marks=pytest.mark.slow),
        pytest.param("elixir", ELIXIR, "shared", marks=pytest.mark.slow),
        pytest.param("dpmerf", {"per_class": 2}, "shared", marks=pytest.mark.slow),
        pytest.param("gswgan", GSWGAN, "site", marks=pytest.mark.slow),
    ],
)
def test_a_release_of_every_kind_of_method_verifies(
    method: str, settings: dict[str, Any], noise: str, tmp_path: Path
) -> None:
    trial = Trial(tmp_path, noise=noise)
    release = trial.run(method, settings, None if "sigma" in settings else 3.0)
    certificate = verify(release)
    assert certificate.releasable and certificate.federation is not None
    assert certificate.federation.terms == trial.terms and len(certificate.federation.parts) == 3
    assert trial.spent() == pytest.approx([certificate.epsilon] * 3)
    assert [part["drawn"] for part in certificate.federation.parts]
    assert not (tmp_path / "out" / ".run").exists()


def test_teachers_of_each_site_answer_in_turn_and_cost_their_share(tmp_path: Path) -> None:
    trial = Trial(tmp_path, block=2)
    release = trial.run("gswgan", {**GSWGAN, "T": 7})
    certificate = verify(release)
    # Blocks of two: s0 has 0, 1 and 6, s1 2 and 3, s2 4 and 5. Each books for three, which is what the first has to answer.
    assert certificate.queries[0].count == 3
    assert certificate.federation is not None
    assert [part["drawn"]["gradients"] for part in certificate.federation.parts] == [3, 2, 2]
    assert certificate.epsilon == price(certificate.queries, 1e-5).epsilon


def test_a_whole_site_can_be_the_unit_where_teachers_are_asked(tmp_path: Path) -> None:
    trial = Trial(tmp_path, block=2)
    trial.set_budgets(1e6)
    settings = {**{name: value for name, value in GSWGAN.items() if name != "sigma"}, "variant": "B", "T": 3}
    plan = federated_plan(trial.federation, "gswgan", settings, 4.0, 1e-5, whole_site=True)
    release = run_federated(
        trial.folder, trial.federation, trial.transport(), plan, tmp_path / "out", Silent()
    ).release  # fmt: skip
    certificate = verify(release)
    assert certificate.federation is not None and certificate.federation.views.site is not None
    assert 3.9 < certificate.federation.views.site.epsilon <= 4.0
    assert certificate.epsilon < certificate.federation.views.site.epsilon  # of one record, among four critics
    for method, epsilon in (("ldpdc", 4.0), ("gswgan", None), ("gswgan", float("inf"))):
        with pytest.raises(BadInput, match="whole site"):
            federated_plan(trial.federation, method, {"per_class": 2}, epsilon, 1e-5, whole_site=True)
    with pytest.raises(BadInput, match="leave sigma out"):
        federated_plan(trial.federation, "gswgan", GSWGAN, 4.0, 1e-5, whole_site=True)


def test_a_price_of_a_whole_site_that_is_too_low_or_has_no_ground_is_found_out(tmp_path: Path) -> None:
    certificate = verify(Trial(tmp_path).run("gswgan", {**GSWGAN, "T": 3}))
    assert certificate.federation is not None
    stated = certificate.federation.views
    assert stated.site is not None
    check_views(replace(certificate, federation=replace(certificate.federation, views=replace(stated, site=None))))
    cheaper = replace(stated, site=replace(stated.site, epsilon=stated.site.epsilon / 2))
    with pytest.raises(NotAuthentic, match="view 'site'"):
        check_views(replace(certificate, federation=replace(certificate.federation, views=cheaper)))


def test_with_a_seed_noise_once_is_that_of_all_records_in_one_sum(tmp_path: Path) -> None:
    """Site by site or together: the answers are those of all records, with the noise that the certificate states."""
    trial = Trial(tmp_path, noise="shared", seed=3)
    release = trial.run("ldpdc", {**LDPDC, "L": 100, "pixels": "signed", "sigma": 1.0})
    with pytest.raises(NotAuthentic):
        trial_edit(release, trial, lambda values: values.update(releasable=True))
    certificate = verify(release)
    assert not certificate.releasable
    made = np.load(release / "set.npz")
    records = DIGITS.load()
    means = np.stack([records.x[records.y == label].mean(0) for label in range(10)]) / 8 - 1
    assert np.corrcoef(made["x"][:2].mean(0).ravel(), means[0].ravel())[0, 1] > 0.9


def test_a_simulation_without_a_network_has_the_same_sites(tmp_path: Path) -> None:
    """What benchmarks/federated.py measures; the bits are those of Flower's processes (test_flower.py)."""
    simulation = Simulation(data=DataReference(data="digits"), sites=2, split="class", noise="shared")
    federation = set_up(tmp_path, simulation)
    with (
        pytest.raises(BudgetRefused, match="Nobody has set a budget"),
        in_this_process(tmp_path, federation, print),
    ):
        raise AssertionError("a site without a budget has joined")
    plan = federated_plan(federation, "ldpdc", {**LDPDC, "L": 1000}, None, 1e-5)  # all records: priced at once
    give_budgets(tmp_path, simulation, plan)
    with in_this_process(tmp_path, federation, print) as here:
        release = run_federated(tmp_path / "server", federation, here, plan, tmp_path / "out", Silent()).release
    certificate = verify(release)
    assert certificate.releasable and certificate.federation is not None
    assert certificate.federation.terms == federation.terms and len(certificate.federation.parts) == 2


# Broken off


@pytest.mark.parametrize("noise", ["site", "shared"])
def test_a_run_whose_site_goes_away_is_taken_up_and_pays_once(noise: str, tmp_path: Path) -> None:
    trial = Trial(tmp_path, noise=noise)
    whole = Lossy.exchange

    def leaving(self: Lossy, frames: Any, answers: int = 1) -> Any:
        if any(len(asked) == 2 for asked in frames.values()):  # both answers of the groups
            self.gone = {"s1"}
        return whole(self, frames, answers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lossy, "exchange", leaving)
        with pytest.raises(VaultUnreachable, match="Site 's1'"):
            trial.run("ldpdc", LDPDC)
    paid = trial.spent()
    assert min(paid) > 0 and (tmp_path / "out" / ".run" / "run.json").exists()
    with pytest.raises(RunConflict, match="sites of a federation"):
        resume(tmp_path / "out", Silent())
    certificate = verify(trial.go_on())
    assert trial.spent() == paid and certificate.drawn == {"groups": 2}


@pytest.mark.parametrize(
    ("call", "method"), [("endorsements", "ldpdc"), ("close", "ldpdc"), ("endorsements", "gswgan")]
)
def test_a_server_that_dies_at_the_end_is_taken_up(call: str, method: str, tmp_path: Path) -> None:
    trial = Trial(tmp_path)

    def dies(*_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running.FederatedVault, call, dies)
        with pytest.raises(KeyboardInterrupt):
            trial.run(method, LDPDC if method == "ldpdc" else GSWGAN)
    paid = trial.spent()
    verify(trial.go_on())
    assert trial.spent() == paid


def test_a_poor_site_ends_it_and_leaves_no_trace(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.set_budgets(0.1, ("s2",))
    with pytest.raises(BudgetRefused, match="Site 's2'"):
        trial.run("ldpdc", LDPDC)
    assert trial.spent() == [0, 0, 0] and not (tmp_path / "out").exists()


# Records of one owner


def test_a_simulation_is_booked_in_the_owners_ledger_too(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    certificate = verify(trial.run("ldpdc", LDPDC, owner=True))
    with Ledger.open(trial.owner) as book:
        account = book.account("digits")
        assert account is not None and account.spent_epsilon == pytest.approx(certificate.epsilon)
        assert [booking.state for booking in account.bookings] == ["finished"]


def test_an_owner_without_budget_ends_a_simulation_before_any_site_books(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    with Ledger.open(trial.owner) as book:
        book.set_budget("digits", 0.1, 1e-3)
    with pytest.raises(BudgetRefused):
        trial.run("ldpdc", LDPDC, owner=True)
    assert trial.spent() == [0, 0, 0]


def test_what_sites_have_answered_cannot_be_given_back_at_the_owners(tmp_path: Path) -> None:
    trial = Trial(tmp_path)

    def dies(*_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OwnersVault, "endorsements", dies)
        with pytest.raises(KeyboardInterrupt):
            trial.run("ldpdc", LDPDC, owner=True)
    with Ledger.open(trial.owner) as book:
        (booking,) = book.account("digits").bookings  # type: ignore[union-attr]
        with pytest.raises(WallBreach, match="already answered"):
            book.void(booking.grant)
    verify(trial.go_on(owner=True))


def test_a_poor_site_gives_the_owners_booking_back(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.set_budgets(0.1, ("s2",))
    with pytest.raises(BudgetRefused):
        trial.run("ldpdc", LDPDC, owner=True)
    with Ledger.open(trial.owner) as book:
        account = book.account("digits")
        assert account is None or account.spent_epsilon == 0


# Certificates that were changed


def trial_edit(release: Path, trial: Trial, change: Any) -> None:
    """Change the certificate and sign it anew, as a server that lies could: it holds its own key and no site's."""
    copy = release.with_name("edited")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(release, copy)
    values = json.loads((copy / NAME).read_bytes())
    values.pop("signature")
    change(values)
    (copy / NAME).write_bytes(as_json(signed(values, signing_key(trial.folder / "signing-key"))))
    verify(copy)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trial, Path]:
    trial = Trial(tmp_path_factory.mktemp("released"), noise="shared", collusion=1)
    return trial, trial.run("ldpdc", LDPDC)


def test_an_untouched_copy_verifies(released: tuple[Trial, Path]) -> None:
    trial_edit(released[1], released[0], lambda values: None)


def _parts(values: dict[str, Any]) -> list[dict[str, Any]]:
    return values["federation"]["parts"]  # type: ignore[no-any-return]


CHANGES: dict[str, Any] = {
    "a part is missing": lambda v: _parts(v).pop(),
    "a part stands twice": lambda v: _parts(v).__setitem__(1, _parts(v)[0]),
    "fewer answers at a site": lambda v: _parts(v)[0]["drawn"].update(groups=1),
    "fewer answers on the whole": lambda v: v.update(drawn={"groups": 1}),
    "another set": lambda v: v["files"].update({"set.npz": "0" * 64}),
    "more sites that may tell": lambda v: v["federation"]["terms"].update(collusion=0),
    "noise per site": lambda v: v["federation"]["terms"].update(noise="site", collusion=0),
    "a cheaper view": lambda v: v["federation"]["views"]["all_told"].update(epsilon=0.3),
    "a key of the server's": lambda v: v["federation"]["terms"]["keys"].__setitem__(0, "0" * 64),
    "no federation": lambda v: v.pop("federation") and None,
    "other records": lambda v: v.update(records=19),
    "another data set": lambda v: v.update(dataset="other"),
}


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "no federation"])
def test_a_server_that_lies_is_found_out(name: str, released: tuple[Trial, Path]) -> None:
    with pytest.raises(NotAuthentic):
        trial_edit(released[1], released[0], CHANGES[name])


def test_what_it_costs_from_every_side_is_computed_again(released: tuple[Trial, Path]) -> None:
    """Also where all sites would have signed it."""
    certificate = verify(released[1])
    check_views(certificate)
    assert certificate.federation is not None
    for name in ("server", "public", "all_told"):
        views = certificate.federation.views
        cheaper = replace(getattr(views, name), epsilon=getattr(views, name).epsilon / 2)
        federation = replace(certificate.federation, views=replace(views, **{name: cheaper}))
        with pytest.raises(NotAuthentic, match=f"'{name}'"):
            check_views(replace(certificate, federation=federation))


def test_a_site_endorses_only_what_it_booked(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    seen: list[dict[str, Any]] = []
    original = running.FederatedVault.endorsements

    def lying(self: Any, grant: Any, stated: dict[str, Any]) -> Any:
        dearer = round(
            stated["epsilon"] * 1.005, 6
        )  # within what versions of accountants may differ by, and still not its price
        federation = json.loads(json.dumps(stated["federation"]))
        federation["views"]["server"]["epsilon"] = dearer
        changes: tuple[dict[str, Any], ...] = (
            {"epsilon": dearer, "accounting": {**stated["accounting"], "epsilon": dearer}, "federation": federation},
            {"epsilon": 0.1},
            {"delta": 1e-6},
            {"settings": {}},
            {"unit": "patient"},
            {"drawn": {"groups": 0}},
            {"created": "2020-01-01T00:00:00+00:00"},
            {"files": {**stated["files"], "../x": "0" * 64}},
        )
        for change in changes:
            with pytest.raises(Exception, match="not what was booked"):
                original(self, grant, {**stated, **change})
            seen.append(change)
        return original(self, grant, stated)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running.FederatedVault, "endorsements", lying)
        release = trial.run("ldpdc", LDPDC)
    assert len(seen) == 8
    verify(release)
    assert public_key(trial.books["s0"].path) == trial.terms.keys[0]
