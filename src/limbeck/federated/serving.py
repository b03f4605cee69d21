"""A site at work: its desk behind Flower, until it is told to end."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from limbeck.errors import BadInput, BudgetRefused
from limbeck.federated.desk import Desk, Log
from limbeck.federated.fitting import require_fitting
from limbeck.federated.flower_site import serve, supernode
from limbeck.federated.folders import FEDERATION, Federation, Site
from limbeck.federated.site import desk_of
from limbeck.federated.splits import SharedOut
from limbeck.vault.api import Randomness
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import may_exist, shown
from limbeck.vault.ledger.commands import on_ledger
from limbeck.vault.ledger.sums import budget_command
from limbeck.vault.source import PrivateSource


def source_of(site: Site) -> PrivateSource:
    source = site.data.source()
    return source if site.share is None else SharedOut(source, site.share)


def take_terms(folder: Path, received: Path | None) -> Federation:
    """The federation that a site belongs to. received: the server's folder, or a copy of its two public files.

    Guarantee: terms that a site has once taken are not replaced by others.
    """
    if received is not None:
        for name in (FEDERATION, "ca.pem"):
            target = folder / name
            if target.exists() and target.read_bytes() != (received / name).read_bytes():
                raise BadInput(
                    f"{target} is there already and differs from that in {received}. Ask the server's owner why."
                )
            if not target.exists():
                shutil.copyfile(received / name, target)
    return Federation.read(folder)


@contextlib.contextmanager
def open_desk(federation: Federation, site: Site, log: Log) -> Iterator[Desk]:
    """A site's desk, until the block ends. What carries its frames is for the caller to say.

    Guarantee: serves no data set that its owner has not set a budget for, and none that does not fit the federation.
    """
    source = source_of(site)
    source.schema.require_confirmed()
    require_fitting(federation.schema, site.site, source.schema)
    book = Path(site.ledger)
    if not may_exist(book):
        raise _no_budget(source.schema.name, book)
    with Ledger.open(book, create=False) as ledger:
        if not ledger.has_budget(source.schema.name):
            raise _no_budget(source.schema.name, book)
        desk = desk_of(source, ledger, federation.terms, site.site, Randomness(site.insecure_seed), "cpu", log)
        yield desk
        desk.end()


def serve_site(
    folder: Path, federation: Federation, site: Site, log: Log, ended: threading.Event, ready: Callable[[], None]
) -> None:
    """A site's desk behind Flower."""
    with open_desk(federation, site, log) as desk, supernode(folder, federation.address) as (child, runtime):
        ready()
        serve(desk, folder, child, runtime, log, ended)


def _no_budget(dataset: str, ledger: Path) -> BudgetRefused:
    return BudgetRefused(
        f"Nobody has set a budget for '{dataset}' in the ledger {shown(ledger)}, so the server could spend any. How much may be "
        "spent is the data owner's decision; say it first, then join.",
        on_ledger(budget_command(dataset, 1.0, 1e-5), ledger),
    )
