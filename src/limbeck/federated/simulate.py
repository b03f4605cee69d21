"""A federation on one machine: real Flower processes on loopback, TLS, node keys, and one process for each site."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import LimbeckError, RunConflict
from limbeck.federated.desk import Log
from limbeck.federated.flower import die_with_parent, free_port, require_alive
from limbeck.federated.flower_server import FlowerTransport, superlink
from limbeck.federated.folders import FEDERATION, Federation, Site
from limbeck.federated.identities import make_tls
from limbeck.federated.serving import open_desk, source_of
from limbeck.federated.splits import Share
from limbeck.federated.transport import InProcess
from limbeck.files import as_json, write_atomic
from limbeck.privacy.federation import Terms
from limbeck.privacy.plan import Plan
from limbeck.runs.request import DataReference
from limbeck.vault.ledger import Ledger

SETUP = "simulation.json"


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What is tried out. data: of one owner; sites, split, noise and so on as in the command."""

    data: DataReference
    sites: int
    split: str = "iid"
    noise: str = "site"
    collusion: int = 0
    block: int = 1
    seed: int = 0
    insecure_seed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "data": self.data.words,
            "sites": self.sites,
            "split": self.split,
            "noise": self.noise,
            "collusion": self.collusion,
            "block": self.block,
            "seed": self.seed,
            "insecure_seed": self.insecure_seed,
        }

    def site(self, folder: Path, number: int) -> Site:
        share = Share(kind=self.split, sites=self.sites, number=number, seed=self.seed)
        seed = None if self.insecure_seed is None else self.insecure_seed + number
        home = folder / f"site-{number + 1}"
        return Site(
            site=f"site-{number + 1}",
            data=self.data,
            ledger=str(home / "ledger.sqlite"),
            insecure_seed=seed,
            share=share,
        )

    def draft(self) -> Federation:
        """The federation before it has keys: enough to plan, and to refuse what cannot be right before anything is made."""
        for number in range(self.sites):
            _ = source_of(self.site(Path(), number)).schema
        names = tuple(f"site-{number + 1}" for number in range(self.sites))
        keys = tuple(f"{number:064x}" for number in range(self.sites))
        return Federation(
            terms=self.terms(names, keys), schema=self.data.source().schema, address="127.0.0.1:1", nodes=names
        )

    def terms(self, sites: tuple[str, ...], keys: tuple[str, ...]) -> Terms:
        return Terms(
            name=f"simulation-{self.sites}",
            sites=sites,
            keys=keys,
            noise=self.noise,
            collusion=self.collusion,
            block=self.block,
        )


def workplace(out: Path) -> Path:
    """Where the sites of a simulation live: beside the output, so that a run can be resumed."""
    return out.with_name(f"{out.name}.sites")


def set_up(folder: Path, simulation: Simulation) -> Federation:
    """The folders of server and sites; as they are, where the same simulation has made them before."""
    whole = simulation.draft().schema
    if (folder / SETUP).exists():
        if json.loads((folder / SETUP).read_bytes()) != simulation.to_dict():
            raise RunConflict(f"{folder} holds the sites of another simulation. Choose another --out, or remove it.")
        return Federation.read(folder / "server")
    server = folder / "server"
    server.mkdir(mode=0o700, parents=True, exist_ok=True)
    sites = [simulation.site(folder, number) for number in range(simulation.sites)]
    cards = [site.write(folder / site.site) for site in sites]
    terms = simulation.terms(tuple(card.site for card in cards), tuple(card.key for card in cards))
    made = Federation(
        terms=terms, schema=whole, address=f"127.0.0.1:{free_port()}", nodes=tuple(card.node_key for card in cards)
    )
    make_tls(server, "127.0.0.1")
    made.write(server)
    write_atomic(folder / SETUP, as_json(simulation.to_dict()))
    return made


def give_budgets(folder: Path, simulation: Simulation, plan: Plan) -> None:
    """Each site's own budget: what the plan costs, unless it has one already."""
    for number in range(simulation.sites):
        site = simulation.site(folder, number)
        with Ledger.open(Path(site.ledger)) as ledger:
            name = source_of(site).schema.name
            if not ledger.has_budget(name):
                ledger.set_budget(name, plan.price.epsilon, plan.price.delta)


@contextlib.contextmanager
def running_sites(folder: Path, federation: Federation, patience: float) -> Iterator[list[subprocess.Popen[bytes]]]:
    """One process for each site; they end with the block."""
    children: list[subprocess.Popen[bytes]] = []
    try:
        for name in federation.terms.sites:
            home = folder / name
            for public in (FEDERATION, "ca.pem"):
                shutil.copyfile(folder / "server" / public, home / public)
            children.append(start_site(home))
        for name, child in zip(federation.terms.sites, children, strict=True):
            _wait_ready(child, folder / name, patience)
        yield children
    finally:
        for child in children:
            child.terminate()
        for child in children:
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def start_site(home: Path) -> subprocess.Popen[bytes]:
    with contextlib.suppress(FileNotFoundError):
        (home / "ready").unlink()
    with open(os.open(home / "limbeck.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        command = [sys.executable, "-m", "limbeck", "federate", "site", str(home), "--ready-file", str(home / "ready")]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)


def _wait_ready(child: subprocess.Popen[bytes], home: Path, patience: float) -> None:
    end = time.monotonic() + patience
    while not (home / "ready").exists():
        require_alive(child, f"Site '{home.name}'", home / "limbeck.log")
        if time.monotonic() > end:
            raise LimbeckError(f"Site '{home.name}' did not come up in {patience:g} s; see {home / 'limbeck.log'}.")
        time.sleep(0.1)


@contextlib.contextmanager
def simulated(folder: Path, federation: Federation, patience: float) -> Iterator[FlowerTransport]:
    """Server and sites at work, and the way to them."""
    server = folder / "server"
    with superlink(server, federation), running_sites(folder, federation, patience):
        transport = FlowerTransport(server, federation, patience)
        try:
            yield transport
        finally:
            transport.close()


@contextlib.contextmanager
def in_this_process(folder: Path, federation: Federation, log: Log) -> Iterator[InProcess]:
    """The same sites, ledgers, keys and frames without a network, which takes seconds a message: to measure a method."""
    with contextlib.ExitStack() as desks:
        opened = {
            name: desks.enter_context(open_desk(federation, Site.read(folder / name), log))
            for name in federation.terms.sites
        }
        yield InProcess({name: desk.answer for name, desk in opened.items()})
