"""Splits, folders and keys of a federation, and the commands that make them."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509

from limbeck.data import Records, open_source
from limbeck.errors import BadInput, DataNotFound, RunConflict
from limbeck.federated import flower
from limbeck.federated.folders import Card, Federation, Site, checked_address
from limbeck.federated.identities import make_tls, node_key
from limbeck.federated.serving import take_terms
from limbeck.federated.simulate import Simulation, set_up
from limbeck.federated.splits import KINDS, Share, SharedOut, share_schema, sites_of
from limbeck.privacy.schema import Schema
from limbeck.runs.request import DataReference

Cli = Callable[..., Any]
PEOPLE = Schema(name="p", shape=(1,), classes=("a", "b"), records=60, low=0, high=1, unit="who", units=12)


def records(persons: bool = False) -> Records:
    y = np.arange(60, dtype=np.int64) % 2
    units = np.arange(60, dtype=np.int64) % 12 if persons else None
    return Records(np.arange(60, dtype=np.float32).reshape(60, 1), y, units)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "writer"])
def test_every_record_is_at_one_site(kind: str) -> None:
    shares = [Share(kind=kind, sites=3, number=number) for number in range(3)]
    sites = [sites_of(records(), 2, share) for share in shares]
    assert all((site == sites[0]).all() for site in sites) and set(sites[0].tolist()) <= {0, 1, 2}
    source = open_source("digits")
    held = [SharedOut(source, Share(kind=kind, sites=3, number=number)).load() for number in range(3)]
    assert sum(len(part.y) for part in held) == len(source.load().y)


def test_a_person_is_at_one_site() -> None:
    for kind in ("iid", "writer"):
        found = records(persons=True)
        sites = sites_of(found, 2, Share(kind=kind, sites=3, number=0))
        assert found.units is not None
        assert all(len(set(sites[found.units == person].tolist())) == 1 for person in range(12))


def test_splits_that_would_tear_a_person_apart_or_know_no_person_are_refused() -> None:
    for kind in ("class", "dirichlet"):
        with pytest.raises(BadInput, match="one person"):
            share_schema(PEOPLE, Share(kind=kind, sites=3, number=0))
    with pytest.raises(BadInput, match="needs a schema whose unit is a person"):
        share_schema(open_source("digits").schema, Share(kind="writer", sites=3, number=0))
    with pytest.raises(BadInput, match="one of iid"):
        Share(kind="odd", sites=2, number=0)


def test_keys_are_private_and_the_authority_keeps_none(tmp_path: Path) -> None:
    make_tls(tmp_path, "hub.example")
    public = node_key(tmp_path / "node.key")
    assert public.startswith("-----BEGIN PUBLIC KEY") and node_key(tmp_path / "node.key") == public
    for name in ("server.key", "node.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.pem", "node.key", "server.key", "server.pem"]
    names = x509.load_pem_x509_certificate((tmp_path / "server.pem").read_bytes()).extensions
    assert "hub.example" in str(
        names.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    )
    (tmp_path / "bad.key").write_text("no key")
    with pytest.raises(BadInput):
        node_key(tmp_path / "bad.key")


@pytest.mark.parametrize("text", ["", "host", ":1", "host:", "host:0", "host:70000", "a b:1", None])
def test_addresses_that_are_none(text: Any) -> None:
    with pytest.raises(BadInput):
        checked_address(text)


def simulation(**changes: Any) -> Simulation:
    return Simulation(**{"data": DataReference(data="digits"), "sites": 2, **changes})


def test_a_simulation_is_set_up_once(tmp_path: Path) -> None:
    made = set_up(tmp_path, simulation())
    assert set_up(tmp_path, simulation()) == made == Federation.read(tmp_path / "server")
    assert Site.read(tmp_path / "site-2").share == Share(kind="iid", sites=2, number=1)
    with pytest.raises(RunConflict, match="another simulation"):
        set_up(tmp_path, simulation(noise="shared"))


def test_a_site_keeps_the_terms_that_it_took(tmp_path: Path) -> None:
    set_up(tmp_path / "a", simulation())
    set_up(tmp_path / "b", simulation(noise="shared"))
    home = tmp_path / "a" / "site-1"
    first = take_terms(home, tmp_path / "a" / "server")
    assert take_terms(home, None) == take_terms(home, tmp_path / "a" / "server") == first
    with pytest.raises(BadInput, match="there already and differs"):
        take_terms(home, tmp_path / "b" / "server")
    assert take_terms(home, None) == first


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"terms": {}}', b"[" * 100000])
def test_a_damaged_federation_file_is_a_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "federation.json").write_bytes(content)
    (tmp_path / "site.json").write_bytes(content)
    (tmp_path / "card.json").write_bytes(content)
    for read in (
        lambda: Federation.read(tmp_path),
        lambda: Site.read(tmp_path),
        lambda: Card.read(tmp_path / "card.json"),
    ):
        with pytest.raises(BadInput):
            read()
    with pytest.raises(DataNotFound):
        Federation.read(tmp_path / "nowhere")


def test_a_site_joins_once(tmp_path: Path) -> None:
    """Nobody connects in the place of another, and a file with too few keys is a sentence."""
    made = set_up(tmp_path, simulation())
    for nodes in ((made.nodes[0], made.nodes[0]), made.nodes[:1], (*made.nodes, "x")):
        with pytest.raises(BadInput, match="a node key of its own"):
            replace(made, nodes=nodes)
        values = json.loads((tmp_path / "server" / "federation.json").read_text())
        (tmp_path / "federation.json").write_text(json.dumps({**values, "nodes": list(nodes)}))
        with pytest.raises(BadInput, match="a node key of its own"):
            Federation.read(tmp_path)


def test_sites_and_server_begin_by_commands(cli: Cli, tmp_path: Path) -> None:
    entries = f'name = "all"\nshape = [1, 8, 8]\nclasses = {list("0123456789")}\nrecords = 3000\nlow = 0\nhigh = 16\n'
    (tmp_path / "all.toml").write_text(entries)
    cards = []
    for name in ("a", "b"):
        book = tmp_path / f"{name}.sqlite.d" / "ledger.sqlite"
        made = cli("federate", "init", tmp_path / name, "--site", name, "--data", "digits", "--ledger", book, "--json")
        assert made.code == 0, made.err
        cards += ["--card", json.loads(made.out)["card"]]
    hub = cli("federate", "init", tmp_path / "hub", *cards, "--schema", tmp_path / "all.toml", "--json")
    assert hub.code == 0, hub.err
    federation = Federation.read(tmp_path / "hub")
    assert json.loads(hub.out)["terms"] == federation.terms.digest() and federation.terms.sites == ("a", "b")
    again = cli("federate", "init", tmp_path / "hub", *cards, "--schema", tmp_path / "all.toml")
    assert again.code == 2 and "not changed" in again.err
    # Nobody has set a budget, so the site does not join.
    poor = cli("federate", "site", tmp_path / "a", "--server", tmp_path / "hub")
    assert poor.code == 3 and "budget" in poor.err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("simulate", "digits", "--sites", 1, "--epsilon", 1), 2),
        (("simulate", "digits", "--split", "odd", "--epsilon", 1), 2),
        (("simulate", "digits", "--split", "writer", "--epsilon", 1), 2),
        (("simulate", "digits", "--noise", "none", "--epsilon", 1), 2),
        (("simulate", "digits", "--noise", "shared", "--sites", 2, "--collusion", 1, "--epsilon", 1), 2),
        (("simulate", "nowhere", "--epsilon", 1), 4),
        (("simulate", "digits", "--method", "ldpdc", "--epsilon", -1), 2),
        (("run", "nowhere", "--epsilon", 1), 4),
    ],
)
def test_what_cannot_be_right_ends_in_a_sentence(options: tuple[Any, ...], code: int, cli: Cli, tmp_path: Path) -> None:
    done = cli("federate", *options, "--out", tmp_path / "out")
    assert done.code == code and "Traceback" not in done.err and done.err.startswith("limbeck: ")
    assert not list(tmp_path.glob("out*"))


def test_without_flower_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "flwr", None)
    with pytest.raises(BadInput, match="not installed") as missing:
        flower.require_flower()
    assert missing.value.next_command == "pip install 'limbeck[federated]'"
