"""The vault of a federation: every call of the contract asks the sites, and each of them books, answers and counts by itself.

A plan is what one site is asked: all of its sums, and its share of the questions to teachers. The server holds no record, no
budget and no site's key. What it learns of a failure at a site is a code (limbeck.vault.process.failures).
"""

from __future__ import annotations

import dataclasses
import operator
import uuid
from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from limbeck.errors import BadInput, LimbeckError, WallBreach
from limbeck.federated import routing
from limbeck.federated.fitting import require_fitting
from limbeck.federated.replies import Reply, expected, frame_of, reply_of, silent, strange
from limbeck.federated.sums import masked_answer, summed_answer
from limbeck.federated.transport import Transport
from limbeck.methods.parts.stepped import unpacked
from limbeck.privacy.federation import SHARED, Terms
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum, Query
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Answer, Asked, Grant, Map, Randomness, State
from limbeck.vault.masking import MaskKey, check_keys
from limbeck.vault.noise import INSECURE, SECURE
from limbeck.vault.process import requests as say
from limbeck.vault.process.client import STATES, StatedRandomness
from limbeck.vault.process.requests import Said

Foreseen = tuple[str, int, Map]


class FederatedVault:
    """All sites of a federation as one vault.

    terms      what the sites have agreed on
    schema     what is public about all of their records together
    transport  the way to them
    """

    def __init__(self, terms: Terms, schema: Schema, transport: Transport) -> None:
        self.terms, self._schema, self._transport = terms, schema, transport
        self._described: dict[str, say.Described] = {}
        self._keys: dict[str, tuple[MaskKey, ...]] = {}
        self._foreseen: dict[tuple[str, str, int], tuple[str, Answer]] = {}

    @property
    def randomness(self) -> Randomness:
        modes = {described.generator for described in self._sites().values()}
        return StatedRandomness(generator=SECURE if modes == {SECURE} else INSECURE)

    def describe(self) -> Schema:
        self._sites()
        return self._schema

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        """Book at every site. Guarantee: if one of them refuses, the others are given back; nothing was read or answered."""
        grant = Grant(identity or uuid.uuid4().hex, self._checked(plan))
        return self._booked(grant, [say.Book(self._plan(plan, site), grant.id) for site in self.terms.sites])

    def take_up(self, identity: str, plan: Plan, booked: bool = False) -> Grant:
        grant = Grant(identity, self._checked(plan))
        return self._booked(grant, [say.TakeUp(identity, self._plan(plan, site), booked) for site in self.terms.sites])

    def state(self, identity: str) -> State | None:
        """open as long as it is open at one site: taking it up then books where it is missing, or says why not."""
        found = {reply.state for reply in self._all(say.AskState(identity), say.InState)}
        for state in ("open", "finished", "void"):
            if state in found:
                return STATES[state]
        return None

    def open_records(self, grant: Grant) -> None:
        try:
            self._every(grant, say.OpenRecords, say.Done)
        except LimbeckError:
            self.give_back(grant)
            raise

    def ask(self, grant: Grant, label: str, index: int, mapping: Asked) -> Answer:
        query, index = self._query(grant, label), operator.index(index)
        if not isinstance(query, ClippedSum):
            return self._ask_one(grant, query, index, mapping)
        digest, answer = self._foreseen.pop((grant.id, label, index), (None, None))
        if answer is not None and digest == mapping.digest():
            return answer
        (given,) = self._ask_all(grant, [(label, index, mapping)])  # type: ignore[list-item]  # a site refuses the rest
        return given

    def ahead(self, grant: Grant, asked: Sequence[Foreseen]) -> None:
        """Have sums answered together that `ask` will be asked for: one message for many. They are given by `ask`."""
        for (label, index, mapping), answer in zip(asked, self._ask_all(grant, asked), strict=True):
            self._foreseen[grant.id, label, index] = (mapping.digest(), answer)

    @property
    def stays(self) -> FederatedVault | None:
        """Itself, where a generator may stay at a site for several steps. With blocks of one there is nothing to stay for."""
        return self if self.terms.block > 1 else None

    def end(self, step: int) -> int:
        """Where the block ends that a site answers in a row."""
        return (step // self.terms.block + 1) * self.terms.block

    def stay(self, grant: Grant, label: str, step: int, count: int, luggage: dict[str, Tensor]) -> None:
        """Have the site whose turn it is take these steps of the plan's method: one message for all of them.

        Guarantee: `luggage` is either what it is after the steps, or as it was.
        """
        if not 0 <= step < step + count <= self.end(step):
            raise WallBreach(f"Steps {step} to {step + count - 1} are not one site's.")
        site, own = routing.place(self.terms, step)
        name = self.terms.sites[site]
        asked = say.Stay(self._grant(grant, name), own, step, count, luggage)
        (reply,) = self._call([asked], say.Stayed, [name], answers=count)
        try:
            unpacked(luggage, reply.luggage)
        except BadInput:
            raise strange(name) from None

    def keep(self, grant: Grant) -> None:
        if any(not isinstance(query, ClippedSum) for query in grant.plan.queries):  # else there are no teachers to save
            self._every(grant, say.Keep, say.Done)

    def forget(self, grant: Grant, label: str, before: int) -> None:
        query, before = self._query(grant, label), operator.index(before)
        places = [
            before if isinstance(query, ClippedSum) else routing.before(self.terms, site, before)
            for site in range(len(self.terms.sites))
        ]
        self._call(
            [
                say.Forget(self._grant(grant, site), label, own)
                for site, own in zip(self.terms.sites, places, strict=True)
            ],
            say.Done,
        )

    def drawn(self, grant: Grant) -> Mapping[str, int]:
        """The most that any site has answered: they differ while an answer is under way, and by their turns."""
        counts = [reply.counts for reply in self._every(grant, say.AskDrawn, say.Drawn)]
        return {label: max(count.get(label, 0) for count in counts) for label in grant.plan.counts}

    def give_back(self, grant: Grant) -> bool:
        """Guarantee: nothing is given back anywhere once one site has answered."""
        if any(self.drawn(grant).values()):
            return False
        return all(reply.given for reply in self._every(grant, say.GiveBack, say.GivenBack))

    def close(self, grant: Grant) -> None:
        self._every(grant, say.Close, say.Done)
        self._keys.pop(grant.id, None)

    def endorsements(self, grant: Grant, stated: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
        """Each site's signed part of the certificate. Beside the contract."""
        asked = [say.Endorse(self._grant(grant, site), dict(stated)) for site in self.terms.sites]
        return tuple(reply.part for reply in self._call(asked, say.Endorsed))

    # Answers

    def _ask_one(self, grant: Grant, query: Query, index: int, mapping: Asked) -> Answer:
        if index < 0:
            raise WallBreach(f"There is no answer number {index} of '{query.label}'.")
        site, own = routing.place(self.terms, index)
        name = self.terms.sites[site]
        (reply,) = self._call([say.Ask(self._grant(grant, name), query.label, own, mapping)], say.Answered, [name])
        return Answer(np.ascontiguousarray(reply.values.numpy(), dtype=np.float32), query.noise_std)

    def _ask_all(self, grant: Grant, asked: Sequence[Foreseen]) -> list[Answer]:
        """The sum over all sites for each of these, in one exchange."""
        shared = self.terms.noise == SHARED
        keys = self._mask_keys(grant) if shared else ()
        wanted = {}
        for site in self.terms.sites:
            own = self._grant(grant, site)
            wanted[site] = [say.AskMasked(own, *each, keys) if shared else say.Ask(own, *each) for each in asked]
        replies = self._exchange(wanted)
        answers = []
        for number, (label, _, _) in enumerate(asked):
            query = self._query(grant, label)
            assert isinstance(query, ClippedSum)
            parts = [replies[site][number] for site in self.terms.sites]
            if shared:
                answers.append(masked_answer(self.terms, query, self._are(parts, say.Masked)))
            else:
                answers.append(summed_answer(self.terms, query, self._are(parts, say.Answered)))
        return answers

    def _mask_keys(self, grant: Grant) -> tuple[MaskKey, ...]:
        if grant.id not in self._keys:
            keys = tuple(reply.key for reply in self._every(grant, say.OfferKey, say.Offered))
            check_keys(self.terms, grant.id, keys)
            self._keys[grant.id] = keys
        return self._keys[grant.id]

    # Plans

    def _checked(self, plan: Plan) -> Plan:
        if plan.dataset != self._schema.name:
            raise WallBreach(f"The plan is for '{plan.dataset}', the federation holds '{self._schema.name}'.")
        return plan

    def _plan(self, plan: Plan, site: str) -> Plan:
        """The same plan under the name that the site's records have in its own ledger."""
        return dataclasses.replace(plan, dataset=self._sites()[site].schema.name)

    def _grant(self, grant: Grant, site: str) -> Grant:
        return Grant(grant.id, self._plan(grant.plan, site))

    def _query(self, grant: Grant, label: str) -> Query:
        query = grant.plan.query(label)
        if query is None:
            raise WallBreach(f"The plan has no query '{label}'.")
        return query

    def _booked(self, grant: Grant, asked: Sequence[Said]) -> Grant:
        replies = self._exchange(
            {site: [each] for site, each in zip(self.terms.sites, asked, strict=True)}, strict=False
        )
        try:
            for site in self.terms.sites:
                if site not in replies:
                    raise silent(site)
                expected(site, replies[site][0], say.Granted)
        except LimbeckError:
            booked = [site for site, (reply,) in replies.items() if isinstance(reply, say.Granted)]
            if booked and not self._answered(grant, booked):
                self._exchange({site: [say.GiveBack(self._grant(grant, site))] for site in booked}, strict=False)
            raise
        return grant

    def _answered(self, grant: Grant, sites: Sequence[str]) -> bool:
        replies = self._exchange({site: [say.AskDrawn(self._grant(grant, site))] for site in sites}, strict=False)
        return any(not isinstance(r, say.Drawn) or any(r.counts.values()) for (r,) in replies.values())

    def _sites(self) -> Mapping[str, say.Described]:
        """What each site says of itself, asked once. Guarantee: raises unless their schemas fit the federation's."""
        if not self._described:
            described = dict(zip(self.terms.sites, self._all(say.Describe(), say.Described), strict=True))
            for site, found in described.items():
                require_fitting(self._schema, site, found.schema)
            self._described = described
        return self._described

    # Frames

    def _all(self, request: Said, wanted: type[Reply]) -> list[Reply]:
        return self._call([request] * len(self.terms.sites), wanted)

    def _every(self, grant: Grant, request: type[Said], wanted: type[Reply]) -> list[Reply]:
        return self._call([request(self._grant(grant, site)) for site in self.terms.sites], wanted)  # type: ignore[call-arg]

    def _call(
        self, asked: Sequence[Said], wanted: type[Reply], sites: Sequence[str] = (), answers: int = 1
    ) -> list[Reply]:
        sites = sites or self.terms.sites
        replies = self._exchange({site: [each] for site, each in zip(sites, asked, strict=True)}, answers=answers)
        return [expected(site, replies[site][0], wanted) for site in sites]

    def _exchange(
        self, asked: Mapping[str, Sequence[Said]], strict: bool = True, answers: int = 1
    ) -> dict[str, list[Said]]:
        frames = {site: [frame_of(each) for each in requests] for site, requests in asked.items()}
        found = self._transport.exchange(frames, answers)
        missing = [site for site in asked if site not in found or len(found[site]) != len(asked[site])]
        if missing and strict:
            raise silent(missing[0])
        return {site: [reply_of(site, reply) for reply in found[site]] for site in asked if site not in missing}

    def _are(self, replies: Sequence[Said], wanted: type[Reply]) -> list[Reply]:
        return [expected(site, reply, wanted) for site, reply in zip(self.terms.sites, replies, strict=True)]
