"""The vault in this process: private records in memory or in files, answers computed in chunks, every one of them journalled.

The order of `ask` is the whole proof: booked (in `grant`) -> noise drawn -> sampled -> mapped, clipped, rounded and added up in
whole steps -> noised -> stored -> given. Before booking nothing has been read; what has not been stored is given to nobody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.data.records import Records
from limbeck.errors import RunConflict, WallBreach
from limbeck.privacy.accounting import price, require_delta
from limbeck.privacy.numbers import apart
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import Choice, ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Answer, Asked, Grant, State
from limbeck.vault.choices import SCORES, Scores
from limbeck.vault.choices.chooser import Chooser
from limbeck.vault.clipped_sums import ClippedSums
from limbeck.vault.ensemble.desk import Desk, check_batch
from limbeck.vault.ensemble.kinds import QUESTIONS
from limbeck.vault.ensemble.store import EnsembleStore
from limbeck.vault.ensemble.teachers import Question
from limbeck.vault.ledger import GrantRow, Ledger
from limbeck.vault.ledger.booking import same_plan
from limbeck.vault.maps import MAPS, Map
from limbeck.vault.noise import Randomness, SecretStream
from limbeck.vault.part_records import load_records, part_of_source, stream_records
from limbeck.vault.source import Held, PrivateSource, checked_records


class LocalVault:
    """Private records in this process, behind the contract of `limbeck.vault.api`.

    source      the records, which have not been read yet
    ledger      the book that every answer is paid from
    randomness  where noise and samples come from; None is the operating system
    device      where to compute

    >>> from pathlib import Path
    >>> from limbeck import make_plan, open_source
    >>> from limbeck.methods import method_named
    >>> from limbeck.vault.api import Identity
    >>> source = open_source("digits")
    >>> plan = make_plan(source.schema, method_named("ldpdc", {"per_class": 1, "pixels": "signed"}), 1.0, 1e-5)
    >>> with Ledger.open(Path("vault.sqlite")) as ledger:
    ...     vault = LocalVault(source, ledger)
    ...     grant = vault.grant(plan)
    ...     answer = vault.ask(grant, "groups", 0, Identity())
    ...     vault.close(grant)
    >>> answer.values.shape
    (10, 64)
    """

    def __init__(
        self,
        source: PrivateSource,
        ledger: Ledger,
        randomness: Randomness | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self._source = source
        self._schema = source.schema
        self._ledger = ledger
        self._randomness = randomness or Randomness()
        self._device = torch.device(device)
        self._records: Held | None = None
        self._sums = ClippedSums(source.schema, self._device, in_file_order=self._randomness.releasable)
        self._chooser = Chooser(source.schema, self._device)
        self._desks: dict[tuple[str, str], Desk] = {}

    @property
    def randomness(self) -> Randomness:
        return self._randomness

    def describe(self) -> Schema:
        return self._schema

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        """Book the whole plan, under an identity that a run wrote down before, so that a crash in between pays once.

        Guarantee: reads no record. What is booked is the price of the queries' own events, computed here; the price that
        the plan states is only compared with it (rule 1).
        """
        self._schema.require_confirmed()
        require_delta(plan.price.delta, self._schema.privacy_units, self._schema.by_person)
        if self._schema.by_person and not all(query.on_grid or math.isinf(query.clip) for query in plan.queries):
            raise WallBreach("Sums of doubles are added up record by record; for persons a plan has to be on the grid.")
        if plan.dataset != self._schema.name:
            raise WallBreach(f"The plan is for '{plan.dataset}', the vault holds '{self._schema.name}'.")
        cost = price(plan.queries, plan.price.delta)
        if cost.epsilon > plan.price.epsilon:
            said, costs = apart(plan.price.epsilon, cost.epsilon)
            raise WallBreach(f"The plan states epsilon={said}, its queries cost {costs}.")
        identity = self._ledger.book(
            plan.dataset,
            plan=self._booked_text(plan),
            method=plan.method,
            epsilon=cost.epsilon,
            delta=cost.delta,
            counts=plan.counts,
            grant=identity,
            part=part_of_source(self._source),
        )
        return Grant(id=identity, plan=plan)

    def take_up(self, identity: str, plan: Plan, booked: bool = False) -> Grant:
        if booked:
            self._ledger.grant(identity)  # says so if this ledger has never seen it
        if self.state(identity) == "finished":
            return Grant(id=identity, plan=plan)
        return self.grant(plan, identity)

    def state(self, identity: str) -> State | None:
        return self._ledger.state(identity)

    def open_records(self, grant: Grant) -> None:
        """Read the records, so that a file that cannot be read is found before anything is asked.

        Guarantee: nothing is read unless `grant` is booked, with this very plan. If reading fails before the first answer,
        the booking is given back, because nothing was released.
        """
        self._require_booked(grant)
        in_pieces = all(_in_pieces(query) for query in grant.plan.queries)
        if isinstance(self._records, Records) or (self._records is not None and in_pieces):
            return
        try:
            self._records = self._loaded(in_pieces)
        except Exception:
            self.give_back(grant)
            raise

    def _loaded(self, in_pieces: bool) -> Held:
        """in_pieces: whether all that is asked can be answered without holding the records."""
        # What is streamed is read whole here, too, and again for every answer.
        found = stream_records(self._source, self._ledger, self._schema) if in_pieces else None
        return found or checked_records(load_records(self._source, self._ledger), self._schema)

    def ask(self, grant: Grant, label: str, index: int, mapping: Asked) -> Answer:
        """One answer of the plan: the stored one if there is one, else a new one.

        Guarantee: at most `count` different answers of a query ever leave the vault; each is noised once and stored before
        it is given; asking again for the same index gives the same answer and costs nothing (rule 4).
        """
        self._require_booked(grant)  # also for a stored answer: teachers are made for the query that comes with it
        query = self._booked_query(grant, label, index, mapping)
        stored = self._ledger.fetch(grant.id, label, index)
        if stored is not None:
            if stored.map_digest != mapping.digest():
                raise RunConflict(
                    f"Answer {index} of '{label}' was given for other parameters; it is not given for these. If the run was "
                    "begun on another kind of processor or with other versions of Limbeck and PyTorch, resume it there."
                )
            self._catch_up(grant, label, index, mapping)
            return self._answer(query, stored.payload)
        self.open_records(grant)
        noised = self._noised(grant, query, index, mapping).astype(np.float32)
        try:
            payload = self._ledger.store(grant.id, label, index, map_digest=mapping.digest(), payload=noised.tobytes())
        except WallBreach:
            self._not_void(grant)  # the owner's word meanwhile, and no defect
            raise
        return self._answer(query, payload)

    def _require_booked(self, grant: Grant) -> None:
        """The noise of an answer follows the grant's plan, so it has to be the plan that was paid for (rule 1)."""
        if not same_plan(self._not_void(grant).plan, self._booked_text(grant.plan)):
            raise WallBreach(
                f"Grant {grant.id} was booked with another plan or another generator; nothing is answered for this one."
            )

    def _not_void(self, grant: Grant) -> GrantRow:
        booked = self._ledger.grant(grant.id)
        if booked.state == "void":
            self._ledger.void(grant.id)  # once more: teachers may have been saved since
            raise RunConflict(
                f"Booking {grant.id} was given back, so no record is read for it and nothing is answered. Start the run again, "
                "or resume it; it is then booked anew."
            )
        return booked

    def give_back(self, grant: Grant) -> bool:
        """The one place that gives a booking back: while not one answer is stored for it."""
        if any(self.drawn(grant).values()):
            return False
        self._ledger.void(grant.id)
        return True

    def drawn(self, grant: Grant) -> Mapping[str, int]:
        return self._ledger.drawn(grant.id)

    def forget(self, grant: Grant, label: str, before: int) -> None:
        """Drop stored answers that a checkpoint has made needless."""
        self._ledger.forget(grant.id, label, before)

    def keep(self, grant: Grant) -> None:
        """Save the teachers of a grant in the vault's own folder, so that a run can be resumed from where it stands now."""
        for (identity, _), desk in self._desks.items():
            if identity == grant.id:
                desk.keep()

    def close(self, grant: Grant) -> None:
        self._ledger.finish(grant.id)
        self._records = None
        self._desks.clear()

    def _booked_text(self, plan: Plan) -> str:
        """What the ledger keeps of a plan: also the generator, so that no run starts insecure and ends with a secure stamp; the
        unit where it is a person; and of a part by which reading of the whole its records are in it."""
        unit = {"unit": self._schema.unit} if self._schema.by_person else {}
        part = part_of_source(self._source)
        reading = {"reading": part.reading} if part is not None and part.reading else {}
        booked = {"generator": self._randomness.mode, "plan": plan.to_dict(), **unit, **reading}
        return json.dumps(booked, sort_keys=True, allow_nan=False)

    def _booked_query(self, grant: Grant, label: str, index: int, mapping: Asked) -> Query:
        query = grant.plan.query(label)
        if query is None:
            raise WallBreach(f"The plan has no query '{label}'.")
        if not 0 <= index < query.count:
            raise WallBreach(f"The plan allows {query.count} answers of '{label}'; number {index + 1} is refused.")
        known: type | None = _listed(query).get(mapping.kind)
        if mapping.kind != query.map or known is not type(mapping):
            raise WallBreach(f"Query '{label}' was booked with the map '{query.map}', not with '{mapping.kind}'.")
        if isinstance(mapping, Question):
            assert not isinstance(query, ClippedSum | Choice)
            check_batch(query, mapping, self._schema)
        else:
            self._sums.block_for(mapping.cells if isinstance(mapping, Scores) else mapping)
        return query

    def _desk(self, grant: Grant, label: str, question: Question) -> Desk:
        if (grant.id, label) not in self._desks:
            query = grant.plan.query(label)
            assert query is not None and not isinstance(query, ClippedSum | Choice)
            store = EnsembleStore(self._ledger.file.home, grant.id, self._randomness)
            self._desks[grant.id, label] = Desk(query, question, self._schema, store, self._device)
        return self._desks[grant.id, label]

    def _catch_up(self, grant: Grant, label: str, index: int, mapping: Asked) -> None:
        """A stored answer of a tick that the restored teachers have not learned yet: they learn it now, and vote no more."""
        if isinstance(mapping, Question) and self._desk(grant, label, mapping).clock == index:
            self.open_records(grant)
            assert isinstance(self._records, Records)
            self._desk(grant, label, mapping).learn(index, mapping, self._records)

    def _noised(self, grant: Grant, query: Query, index: int, mapping: Asked) -> NDArray[np.float64]:
        if isinstance(query, ClippedSum):
            assert isinstance(mapping, Map)
            return self._noised_sum(query, index, mapping)
        if isinstance(query, Choice):
            assert isinstance(mapping, Scores) and isinstance(self._records, Records)
            return self._chooser.chosen(query, mapping, self._records, *self._streams(query, index))
        assert isinstance(mapping, Question) and isinstance(self._records, Records)
        desk = self._desk(grant, query.label, mapping)
        return desk.noised(index, mapping, self._records, *self._streams(query, index))

    def _noised_sum(self, query: ClippedSum, index: int, mapping: Map) -> NDArray[np.float64]:
        assert self._records is not None
        return self._sums.noised(query, mapping, self._records, *self._streams(query, index))

    def _streams(self, query: Query, index: int) -> tuple[SecretStream, SecretStream]:
        """One for coins and draws, one for the noise: two keys, so that neither tells about the other."""
        return self._randomness.stream(query.label, index), self._randomness.stream(f"{query.label}: noise", index)

    def _answer(self, query: Query, payload: bytes) -> Answer:
        by_class = isinstance(query, ClippedSum) and query.by_class
        rows = len(self._schema.classes) if by_class else 1
        values = np.frombuffer(payload, dtype=np.float32).reshape(rows, -1).copy()
        return Answer(values if by_class else values[0], query.noise_std)


def _listed(query: Query) -> Mapping[str, type]:
    """The closed list that a query's maps, scores or questions are from."""
    if isinstance(query, ClippedSum):
        return MAPS
    return SCORES if isinstance(query, Choice) else QUESTIONS


def _in_pieces(query: Query) -> bool:
    """Whether records can be read again for each answer. Teachers and choices hold theirs; doubles of older bookings have an
    order."""
    return isinstance(query, ClippedSum) and (query.on_grid or not query.is_private)
