"""A site's vault where noise is added once: its sums leave under masks, each with a share of the noise.

The order of `ask_masked` is that of `LocalVault.ask`: booked -> noise drawn -> sampled -> mapped, clipped, rounded and added up
in whole steps -> noised with this site's share -> masked -> stored -> given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from limbeck.errors import BadInput, RunConflict, WallBreach
from limbeck.privacy.federation import LEAST_SHARE
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum
from limbeck.vault.api import Answer, Asked, Grant
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.maps import Map
from limbeck.vault.masking import PROTOCOL, MaskKey, MaskKeys, context_of
from limbeck.vault.noise import Randomness
from limbeck.vault.source import PrivateSource


@dataclass(frozen=True, eq=False)
class MaskedSum:
    """A noised sum under its mask: whole numbers modulo 2^64, which are noise by themselves."""

    values: NDArray[np.int64]


class MaskedVault(LocalVault):
    """The vault of one site under terms with shared noise. `masks`: its keys."""

    def __init__(
        self,
        source: PrivateSource,
        ledger: Ledger,
        masks: MaskKeys,
        randomness: Randomness | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(source, ledger, randomness, device)
        self._masks = masks

    def grant(self, plan: Plan, identity: str | None = None) -> Grant:
        """Guarantee: that of `LocalVault.grant`, for queries whose shares of noise the proof covers."""
        for query in plan.queries:
            if not isinstance(query, ClippedSum):
                continue
            if not query.on_grid:
                raise BadInput(
                    f"Query '{query.label}' is not on a grid, so its sums cannot be masked; use noise per site."
                )
            if query.is_private and self._share_steps(query) < LEAST_SHARE:
                raise BadInput(f"A share of the noise of '{query.label}' is less than {LEAST_SHARE:g} steps wide.")
        return super().grant(plan, identity)

    def offer_key(self, grant: Grant) -> MaskKey:
        """This site's signed public key for the masks of a booked grant."""
        self._require_booked(grant)
        if self.state(grant.id) != "open":  # its key is gone, and a new one would open nothing
            raise RunConflict(f"Grant {grant.id} is closed; nothing is masked for it any more.")
        return self._masks.offer(grant.id)

    def ask(self, grant: Grant, label: str, index: int, mapping: Asked) -> Answer:
        """Questions to teachers are answered as ever; sums only under masks."""
        if isinstance(grant.plan.query(label), ClippedSum):
            raise WallBreach("This site's terms say that its sums leave under masks.")
        return super().ask(grant, label, index, mapping)

    def ask_masked(self, grant: Grant, label: str, index: int, mapping: Map, keys: Sequence[MaskKey]) -> MaskedSum:
        """This site's masked part of one answer: the stored one if there is one, else a new one.

        Guarantee: as that of `LocalVault.ask`; and the mask is bound to grant, queries, label, index, map and all sites' keys.
        """
        self._require_booked(grant)
        query = self._booked_query(grant, label, index, mapping)
        if not isinstance(query, ClippedSum):
            raise WallBreach("Only sums have masks.")
        shape = (len(self._schema.classes) if query.by_class else 1, self._sums.width_of(mapping))
        context = self._context(grant, label, index, mapping, shape)
        digest = hashlib.sha256(context + json.dumps([key.public_key for key in keys]).encode()).hexdigest()
        stored = self._ledger.fetch(grant.id, label, index)
        if stored is not None:
            if stored.map_digest != digest:
                raise RunConflict(
                    f"Answer {index} of '{label}' was given for other parameters; it is not given for these."
                )
            return _masked(stored.payload, shape)
        # Before anything is read: a list of keys that is refused must cost nothing and tell nothing.
        mask = self._masks.mask(grant.id, keys, context, shape[0] * shape[1]).reshape(shape)
        self.open_records(grant)
        noised = self._noised_steps(query, index, mapping, shape)
        masked = (noised.view(np.uint64) + mask).astype("<u8")
        return _masked(self._ledger.store(grant.id, label, index, map_digest=digest, payload=masked.tobytes()), shape)

    def _noised_steps(self, query: ClippedSum, index: int, mapping: Map, shape: tuple[int, int]) -> NDArray[np.int64]:
        """Sum and share of the noise in whole steps, modulo 2^64. The noise is drawn before a record is touched."""
        assert self._records is not None
        coins, noises = self._streams(query, index)
        noise = np.zeros(shape, dtype=np.int64)
        if query.is_private:
            noise = noises.whole_gaussian(self._share_steps(query), shape)
        total = self._sums.summed(query, mapping, self._records, coins)
        added: NDArray[np.int64] = total.astype(np.int64) + noise
        return np.ascontiguousarray(added)

    def _share_steps(self, query: ClippedSum) -> float:
        return query.noise_multiplier * (query.clip / query.step) * self._masks.terms.share

    def _context(self, grant: Grant, label: str, index: int, mapping: Map, shape: tuple[int, int]) -> bytes:
        queries = [query.to_dict() for query in grant.plan.queries]
        said = (self._masks.terms.digest(), grant.id, queries, label, index, mapping.digest(), list(shape))
        return context_of(PROTOCOL, *said)

    def _booked_text(self, plan: Plan) -> str:
        """Also the terms: what was booked for masked sums is never answered otherwise, nor under other terms."""
        booked = json.loads(super()._booked_text(plan))
        return json.dumps({**booked, "terms": self._masks.terms.digest()}, sort_keys=True, allow_nan=False)


def _masked(payload: bytes, shape: tuple[int, int]) -> MaskedSum:
    return MaskedSum(np.frombuffer(payload, dtype="<u8").astype(np.uint64).view(np.int64).reshape(shape))
