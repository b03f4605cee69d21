"""Walls of the vault that other walls stand behind: each holds by itself."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from test_sensitivity import MAPPINGS
from test_teachers import TEACHER, Mixing, plan_of, query_for, question
from tiny import DELTA, MemorySource
from tiny import plan_of as plan_of_sums

from limbeck.data.records import Records
from limbeck.errors import BadInput, WallBreach
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum
from limbeck.vault.api import Cells, Discriminator, Identity, Map
from limbeck.vault.ensemble.kinds import TEACHERS
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault

MakeVault = Callable[..., LocalVault]


def test_the_vault_itself_counts_answers(vault: LocalVault, query: ClippedSum) -> None:
    """Before it asks the ledger, which counts them too."""
    grant = vault.grant(plan_of_sums(query))
    for index in (query.count, query.count + 1, -1):
        with pytest.raises(WallBreach, match="The plan allows 3 answers"):
            vault.ask(grant, "groups", index, Identity())


@pytest.mark.parametrize("delta", [1 / 120, 0.1, 0.5])
def test_a_delta_that_lets_whole_records_leak_is_refused(
    delta: float, vault: LocalVault, ledger: Ledger, query: ClippedSum
) -> None:
    """By the vault, whoever drew the plan up: 120 records are public."""
    plan = dataclasses.replace(plan_of_sums(query), price=price((query,), delta))
    with pytest.raises(BadInput, match="whole records"):
        vault.grant(plan)
    assert ledger.account("tiny") is None


def test_two_vaults_that_answer_at_once_give_the_first_answer(
    source: MemorySource, ledger: Ledger, query: ClippedSum
) -> None:
    """The other one stores its answer after this one has looked for it: this one's noise is seen by nobody."""
    other = LocalVault(source, ledger)
    grant = other.grant(plan_of_sums(query))
    given: list[Any] = []

    class Slow(MemorySource):
        def load(self) -> Records:
            given.append(other.ask(grant, "groups", 0, Identity()))
            return super().load()

    late = LocalVault(Slow(source.schema, source.records), ledger).ask(grant, "groups", 0, Identity())
    assert late.values.tobytes() == given[0].values.tobytes()
    assert ledger.drawn(grant.id) == {"groups": 1}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda r: Records(r.x[:, :, :7], r.y), "of shape"),
        (lambda r: Records(r.x[:-1], r.y), "of shape"),
        (lambda r: Records(r.x, np.where(r.y == 2, 3, r.y)), "outside of its 3 classes"),
        (lambda r: Records(r.x, r.y - 1), "outside of its 3 classes"),
    ],
)
def test_a_reader_that_breaks_its_promise_is_stopped(
    change: Callable[[Records], Records], sentence: str, make_vault: MakeVault, ledger: Ledger, records: Records
) -> None:
    """And pays nothing: no answer was given."""
    query = ClippedSum(label="sum", map="identity", clip=1.0, noise_multiplier=5.0)
    vault = make_vault(change(records))
    grant = vault.grant(plan_of_sums(query))
    with pytest.raises(WallBreach, match=sentence):
        vault.ask(grant, "sum", 0, Identity())
    assert ledger.state(grant.id) == "void"


def test_a_reader_that_fails_after_an_answer_gives_nothing_back(
    make_vault: MakeVault, source: MemorySource, ledger: Ledger, query: ClippedSum
) -> None:
    vault = make_vault()
    grant = vault.grant(plan_of_sums(query))
    vault.ask(grant, "groups", 0, Identity())
    source.records = Records(source.records.x[:, :, :7], source.records.y)
    with pytest.raises(WallBreach, match="of shape"):
        make_vault().ask(grant, "groups", 1, Identity())
    assert ledger.state(grant.id) == "open" and ledger.drawn(grant.id) == {"groups": 1}


def test_a_plan_with_one_query_that_is_not_private_is_not_private(query: ClippedSum) -> None:
    """However private the others are, and wherever it stands."""
    bare = dataclasses.replace(query, label="bare", noise_multiplier=0.0)
    for queries in ((query, bare), (bare, query), (bare,)):
        assert price(queries, DELTA).epsilon == float("inf")
    with pytest.raises(BadInput, match="different labels"):
        plan_of_sums(query, query)


def test_what_is_counted_is_what_is_priced(query: ClippedSum) -> None:
    plan: Plan = plan_of_sums(query, dataclasses.replace(query, label="more", count=7))
    assert plan.counts == {"groups": 3, "more": 7}


def test_teachers_that_mix_are_refused_although_their_kind_is_known(
    vault: LocalVault, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEACHERS, "discriminator", Mixing)
    settings = {field.name: getattr(TEACHER, field.name) for field in dataclasses.fields(TEACHER)}
    grant = vault.grant(plan_of(query_for()))
    with pytest.raises(WallBreach, match="learn from one another"):
        vault.ask(grant, "votes", 0, question(teacher=Mixing(**settings)))
    assert ledger.drawn(grant.id) == {"votes": 0}


def _changed(value: Any) -> Any:
    """Something else of the same type."""
    if isinstance(value, torch.Tensor):
        other = value.clone().flatten()
        other[-1] += 1
        return other.view(value.shape)
    if isinstance(value, dict):
        last = list(value)[-1]
        return {**value, last: _changed(value[last])}
    if isinstance(value, tuple):
        if value and isinstance(value[-1], str):
            return value[:-1]
        return (*value[:-1], _changed(value[-1])) if value else (0.5,) * 64
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name not in ("kind", "clipping")]
        for name in names:
            with contextlib.suppress(BadInput):  # an entry that others have to fit
                return dataclasses.replace(value, **{name: _changed(getattr(value, name))})
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value * 0.5 + 0.1


OTHER_WORDS = {"form": ("vector", "length"), "keep": ("norm", "dimension"), "clipping": ("joint", "per_layer")}


# What says the same as another parameter of that map, and cannot be changed alone.
TIED = {
    "expected labels by cell": {"classes"},
    "surely expected labels by cell": {"classes"},
    "gradient of a reconstruction": {"classes", "shape"},
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_the_digest_of_a_map_covers_every_parameter(name: str) -> None:
    """A stored answer is given again for the same map only: whatever is changed, the digest is another one."""
    mapping: Map = MAPPINGS[name]
    for field in dataclasses.fields(mapping):
        value = getattr(mapping, field.name)
        if value is None:
            continue
        if field.name in OTHER_WORDS:
            changed = next(word for word in OTHER_WORDS[field.name] if word != value)
        elif isinstance(mapping, Cells) and field.name == "weights":
            changed = tuple(float(number) for number in range(1, len(mapping.tuples) + 1))
        else:
            changed = _changed(value)
        try:
            other = dataclasses.replace(mapping, **{field.name: changed})
        except BadInput:
            assert field.name in TIED[name]
            continue
        assert other.digest() != mapping.digest(), field.name
    assert dataclasses.replace(mapping).digest() == mapping.digest()


def test_a_lookalike_of_a_teacher_is_refused(vault: LocalVault, ledger: Ledger) -> None:
    """A class of the same kind and the same fields, with code of its own."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Lookalike(Discriminator):
        pass

    settings = {field.name: getattr(TEACHER, field.name) for field in dataclasses.fields(TEACHER)}
    grant = vault.grant(plan_of(query_for()))
    with pytest.raises(WallBreach, match="no teacher of the kind"):
        vault.ask(grant, "votes", 0, question(teacher=Lookalike(**settings)))
    assert ledger.drawn(grant.id) == {"votes": 0}


def test_no_share_reaches_the_next_teachers_part(records: Records) -> None:
    """A share that rounds up to the whole is the last record of the part, and an empty part has none."""
    shares = np.array([0.0, 0.5, 1 - 2**-53, 1.0])
    for teachers in (1, 7, 200):
        parts = partition(records, teachers, b"k" * 32)
        places = parts.indices(np.arange(teachers), shares)
        for row in range(teachers):
            own = parts.order[parts.bounds[row] : parts.bounds[row + 1]].tolist()
            assert set(places[row].tolist()) <= set(own or [-1])
