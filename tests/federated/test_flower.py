"""Real SuperLink and SuperNode processes on loopback, with TLS and node keys. Slow: every message takes Flower seconds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

from limbeck.errors import BudgetRefused, LimbeckError, VaultUnreachable
from limbeck.federated.flower_server import FlowerTransport, superlink
from limbeck.federated.folders import Federation, Site
from limbeck.federated.identities import node_key
from limbeck.federated.running import federated_plan, run_federated
from limbeck.federated.simulate import (
    Simulation,
    give_budgets,
    in_this_process,
    running_sites,
    set_up,
    start_site,
)
from limbeck.progress import Silent
from limbeck.release.reader import read_release
from limbeck.release.verification import verify
from limbeck.runs.request import DataReference
from limbeck.vault.ledger import Ledger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
SETTINGS = {"per_class": 2, "L": 10}
LDPDC = ["--method", "ldpdc", "--per-class", "2", "--set", "L=10"]
METHODS = {
    "ndpdc": ["--per-class", "1", "--set", "I=4", "--set", "L=20", "--set", "width=4"],
    "elixir": [
        "--per-class", "1", "--set", "T=2", "--set", "L=50", "--set", "networks=1", "--set", "width=4", "--set", "epochs=1",
        "--set", "waves=8",
    ],
    "gswgan": [
        "--per-class", "1", "--set", "K=4", "--set", "T=4", "--set", "B=4", "--set", "M=2", "--set", "width=4", "--set",
        "critic_hidden=4", "--set", "snapshots=0", "--block", "2",
    ],
}  # fmt: skip


def limbeck(*arguments: object, folder: Path, wait: bool = True) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "limbeck", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "LIMBECK_LEDGER": str(folder / "ledger.sqlite"), "OMP_NUM_THREADS": "1"},
    )
    return process


def ended(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
    out, err = process.communicate(timeout=1200)
    return process.returncode, json.loads(out) if out.strip() else {}, err


@pytest.mark.parametrize(("method", "noise"), [("ndpdc", "shared"), ("elixir", "shared"), ("gswgan", "site")])
def test_a_simulation_over_four_sites_ends_in_a_release_that_verifies(
    method: str, noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = Path("~/.cache/limbeck/mnist").expanduser()
    if cached.exists():  # tests have an empty cache of their own
        monkeypatch.setenv("LIMBECK_CACHE", str(cached.parent))
    data = "mnist" if cached.exists() else "digits"
    process = limbeck(
        "federate", "simulate", data, "--sites", 4, "--method", method, *METHODS[method], "--epsilon", 5, "--noise", noise,
        "--out", "set", "--json", folder=tmp_path,
    )  # fmt: skip
    code, values, err = ended(process)
    assert code == 0, err
    assert values["releasable"] and len(values["federation"]["terms"]["sites"]) == 4
    code, checked, err = ended(limbeck("verify", "set", "--json", folder=tmp_path))
    assert code == 0 and checked["federation"]["noise"] == noise, err
    spent = []
    for number in range(1, 5):
        with Ledger.open(tmp_path / "set.sites" / f"site-{number}" / "ledger.sqlite") as book:
            (account,) = book.accounts()
            spent.append(account.spent_epsilon)
    assert spent == pytest.approx([values["epsilon"]] * 4)


@contextlib.contextmanager
def at_work(
    folder: Path,
    simulation: Simulation,
    patience: float = 120.0,
    epsilon: float = 3.0,
    method: str = "ldpdc",
    settings: Mapping[str, Any] = SETTINGS,
) -> Iterator[tuple[Federation, FlowerTransport, list[subprocess.Popen[bytes]], Any]]:
    federation = set_up(folder, simulation)
    plan = federated_plan(federation, method, settings, epsilon, 1e-5)
    give_budgets(folder, simulation, plan)
    with superlink(folder / "server", federation), running_sites(folder, federation, 120.0) as children:
        transport = FlowerTransport(folder / "server", federation, patience)
        try:
            yield federation, transport, children, plan
        finally:
            transport.close()


def simulation(**changes: Any) -> Simulation:
    return Simulation(**{"data": DataReference(data="digits"), "sites": 2, **changes})


def test_without_a_network_a_run_has_the_same_bits(tmp_path: Path) -> None:
    """What is measured over sites in one process (benchmarks/federated.py) is what Flower's processes would have made."""
    kind = simulation(noise="shared", insecure_seed=5)
    settings = {"per_class": 1, "T": 2, "L": 50, "networks": 1, "width": 4, "epochs": 1, "waves": 8}
    with at_work(tmp_path / "flower", kind, method="elixir", settings=settings) as (federation, over_flower, _, plan):
        out = tmp_path / "flower" / "out"
        released = [run_federated(tmp_path / "flower" / "server", federation, over_flower, plan, out, Silent()).release]
    federation = set_up(tmp_path / "here", kind)
    give_budgets(tmp_path / "here", kind, plan)
    with in_this_process(tmp_path / "here", federation, print) as here:
        out = tmp_path / "here" / "out"
        released.append(run_federated(tmp_path / "here" / "server", federation, here, plan, out, Silent()).release)
    first, second = (read_release(release).x for release in released)
    assert first.tobytes() == second.tobytes() and first.std() > 0


def test_a_site_killed_in_the_middle_ends_the_round_and_the_run_goes_on_when_it_is_back(tmp_path: Path) -> None:
    with at_work(tmp_path, simulation(noise="shared"), patience=45.0) as (federation, transport, children, plan):
        exchange, killed = transport.exchange, []

        def killing(frames: Any, answers: int = 1) -> Any:
            if any(len(asked) == 2 for asked in frames.values()) and not killed:  # both answers of the groups
                children[1].send_signal(signal.SIGKILL)
                children[1].wait()
                killed.append(True)
            return exchange(frames, answers)

        transport.exchange = killing  # type: ignore[method-assign]
        with pytest.raises(VaultUnreachable, match="Site 'site-2'"):
            run_federated(tmp_path / "server", federation, transport, plan, tmp_path / "out", Silent())
        children[1] = start_site(tmp_path / "site-2")
        while not (tmp_path / "site-2" / "ready").exists():
            time.sleep(0.2)
        again = FlowerTransport(tmp_path / "server", federation, 240.0)
        release = run_federated(tmp_path / "server", federation, again, None, tmp_path / "out", Silent()).release
        again.close()
    certificate = verify(release)
    for number in (1, 2):
        with Ledger.open(tmp_path / f"site-{number}" / "ledger.sqlite") as book:
            (account,) = book.accounts()
            assert account.spent_epsilon == pytest.approx(certificate.epsilon)
            assert [booking.state for booking in account.bookings] == ["finished"]


def test_a_server_that_is_killed_is_taken_up_by_the_same_command(tmp_path: Path) -> None:
    command = ["federate", "simulate", "digits", "--sites", 2, *LDPDC, "--epsilon", 3, "--out", "set", "--json"]
    first = limbeck(*command, folder=tmp_path)
    book = tmp_path / "set.sites" / "site-1" / "ledger.sqlite"
    end = time.monotonic() + 300
    while time.monotonic() < end and not _answered(book):
        time.sleep(0.1)
    first.kill()
    first.communicate()
    time.sleep(10)  # its server and sites end with it
    code, values, err = ended(limbeck(*command, folder=tmp_path))
    if code == 8:  # it was through before it was killed
        pytest.skip("the run was faster than the kill")
    assert code == 0, err
    verify(tmp_path / "set")
    with Ledger.open(book) as ledger:
        (account,) = ledger.accounts()
        assert account.spent_epsilon == pytest.approx(values["epsilon"])


def _answered(book: Path) -> bool:
    if not book.exists():
        return False
    with contextlib.suppress(LimbeckError), Ledger.open_to_read(book) as ledger:
        return any(booking.state == "open" for account in ledger.accounts() for booking in account.bookings)
    return False


def test_an_unregistered_key_gets_no_connection(tmp_path: Path) -> None:
    """A site whose node key is not the registered one never arrives, and nothing is booked."""
    federation = set_up(tmp_path, simulation())
    (tmp_path / "site-2" / "node.key").unlink()
    node_key(tmp_path / "site-2" / "node.key")
    with (
        at_work(tmp_path, simulation(), patience=60.0) as (_, transport, _, plan),
        pytest.raises(VaultUnreachable, match="Site 'site-2'"),
    ):
        run_federated(tmp_path / "server", federation, transport, plan, tmp_path / "out", Silent())
    for number in (1, 2):
        with Ledger.open(tmp_path / f"site-{number}" / "ledger.sqlite") as book:
            assert all(account.spent_epsilon == 0 for account in book.accounts())
    assert not (tmp_path / "out").exists() or (tmp_path / "out" / ".run").exists()


def test_a_sites_error_text_is_in_no_log_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second site's records raise with a marker: the server is told a code, and its files never hold the marker."""
    marker = "marker-of-a-record-4711"
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import sys\n"
        "if any('site-2' in word for word in sys.argv):\n"
        "    import limbeck.federated.splits as splits\n"
        f"    def load(self):\n        raise RuntimeError({marker!r})\n"
        "    splits.SharedOut.load = load\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(hook))
    monkeypatch.setenv("LIMBECK_DEBUG", "1")
    with at_work(tmp_path, simulation()) as (federation, transport, _, plan), pytest.raises(LimbeckError) as told:
        run_federated(tmp_path / "server", federation, transport, plan, tmp_path / "out", Silent())
    assert marker not in told.value.message and "Site 'site-2'" in told.value.message
    assert marker in (tmp_path / "site-2" / "limbeck.log").read_text()
    files = [path for path in (tmp_path / "server").rglob("*") if path.is_file()]
    assert files and not any(marker.encode() in path.read_bytes() for path in files)
    with Ledger.open(tmp_path / "site-1" / "ledger.sqlite") as book:
        assert all(account.spent_epsilon == 0 for account in book.accounts())


def test_a_poor_site_and_one_without_budget_end_as_documented(tmp_path: Path) -> None:
    federation = set_up(tmp_path, simulation())
    site = Site.read(tmp_path / "site-2")
    with Ledger.open(Path(site.ledger)) as book:
        book.set_budget("digits.2", 0.5, 1e-3)
    with (
        at_work(tmp_path, simulation()) as (_, transport, _, plan),
        pytest.raises(BudgetRefused, match="Site 'site-2'"),
    ):
        run_federated(tmp_path / "server", federation, transport, plan, tmp_path / "out", Silent())
    with Ledger.open(tmp_path / "site-1" / "ledger.sqlite") as book:
        assert all(account.spent_epsilon == 0 for account in book.accounts())
    assert not (tmp_path / "out").exists()
