"""Where requests are answered: one at a time, each by the vault of its own grant.

Every grant has a vault of its own over the same records and the same ledger, so that no run disturbs another one's teachers,
and a run that fails in the middle is opened afresh, as after a restart: all that counts is journalled.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from limbeck.errors import LimbeckError, RunConflict, WallBreach, ran_out
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Grant, Map, Scores, Vault
from limbeck.vault.maps.bound import Bound
from limbeck.vault.masked import MaskedVault
from limbeck.vault.process.requests import (
    Answered,
    Ask,
    AskDrawn,
    AskMasked,
    AskState,
    Book,
    Close,
    Describe,
    Described,
    Done,
    Drawn,
    Endorse,
    Endorsed,
    Forget,
    GiveBack,
    GivenBack,
    Granted,
    InState,
    Keep,
    Masked,
    Offered,
    OfferKey,
    OpenRecords,
    Said,
    Sign,
    Signed,
    Stay,
    Stayed,
    TakeUp,
)
from limbeck.vault.process.wire import CutOff

SignStatement = Callable[[Vault, Grant, Mapping[str, Any]], Mapping[str, Any]]
TakeSteps = Callable[[Vault, Stay], dict[str, Tensor]]
Asking = OpenRecords | Ask | Stay  # what may compute answers
MOST_VAULTS = 8  # whose teachers are held in memory; the others are kept on the disk
MOST_FAILURES = 100
LONGEST_NAME = 200


class Counter:
    """Answers requests.

    open_vault   a vault over the records and the ledger, as after a restart
    sign         signs a certificate of a grant, or refuses; None where nothing is signed
    endorse      states and signs a site's part of a federation's certificate; None where there is no federation
    stay         takes a generator through a block of steps; None where none may stay
    """

    def __init__(
        self,
        open_vault: Callable[[], Vault],
        sign: SignStatement | None = None,
        endorse: SignStatement | None = None,
        stay: TakeSteps | None = None,
    ) -> None:
        self._open_vault, self._sign, self._endorse, self._stay = open_vault, sign, endorse, stay
        self._book = open_vault()  # for what the ledger alone can say
        self._vaults: dict[str, tuple[Grant, Vault]] = {}
        self._turn = threading.Lock()
        self._ended = False
        self._failures = 0

    def answer(self, said: Said) -> Said:
        """Guarantee: one request at a time reaches a vault. What only looks at the book need not wait for it."""
        if isinstance(said, Describe):
            return Described(self._book.describe(), self._book.randomness.mode)
        if isinstance(said, AskState):
            return InState(self._book.state(said.identity))
        with self._turn:
            if self._ended:
                raise CutOff("the server ends")  # it has not failed: whoever waited asks again when it is back
            return self._in_turn(said)

    def _in_turn(self, said: Said) -> Said:
        match said:
            case Book():
                _require_plain(said.plan)
                _require_grid(said.plan)
                return Granted(self._book.grant(said.plan, said.identity).id)
            case TakeUp():
                _require_plain(said.plan)
                _require_grid(said.plan)
                return Granted(self._book.take_up(said.identity, said.plan, said.booked).id)
            case AskDrawn():
                return Drawn(dict(self._book.drawn(said.grant)))
            case Forget():
                self._book.forget(said.grant, said.label, said.before)
                return Done()
            case OfferKey():
                return Offered(_masked_vault(self._book).offer_key(said.grant))
            case Sign():
                return Signed(dict(self._signed(self._sign, said)))
            case Endorse():
                return Endorsed(dict(self._signed(self._endorse, said)))
            case OpenRecords() | Ask() | Stay() | Keep() | GiveBack() | Close():
                return self._by_vault(said)
        raise WallBreach("There is no such request.")

    def _signed(self, sign: SignStatement | None, said: Sign | Endorse) -> Mapping[str, Any]:
        if sign is None:
            raise WallBreach("This vault signs nothing of this kind.")
        return sign(self._book, said.grant, said.stated)

    def _by_vault(self, said: Asking | Keep | GiveBack | Close) -> Said:
        if isinstance(said, Asking):
            self._require_booked(said.grant)
        held = self._vaults.pop(said.grant.id, None)
        grant, vault = held or (said.grant, self._open_vault())
        # After a failure the vault is not put back: its teachers may have learned without an answer that was stored.
        reply = self._counted(vault, said)
        if isinstance(said, Asking) or (held and isinstance(said, Keep | GiveBack) and reply != GivenBack(True)):
            self._put_back(grant, vault)
        return reply

    def _require_booked(self, grant: Grant) -> None:
        """A vault goes by the plan of the grant that it is handed, and this one comes from somebody else.

        Guarantee: no vault here ever sees an open grant with a plan that is not the booked one.
        """
        held = self._vaults.get(grant.id)
        if (held and held[0] == grant) or self._book.state(grant.id) != "open":
            return  # what is not open has no answer to give, whatever its plan
        try:
            self._book.take_up(grant.id, grant.plan, booked=True)
        except RunConflict as error:
            raise WallBreach(f"It was booked with another plan: {error.message}") from None

    def _counted(self, vault: Vault, said: Asking | Keep | GiveBack | Close) -> Said:
        """Guarantee: failures that nobody foresaw, which might depend on records, are told MOST_FAILURES times at most."""
        if self._failures >= MOST_FAILURES and isinstance(said, Ask | Stay):
            raise WallBreach(
                "Too many requests failed in ways that nobody foresaw; look into them, then start it again."
            )
        try:
            return _done(vault, said, self._stay)
        except LimbeckError:
            raise
        except Exception:
            self._failures += 1
            raise

    def _put_back(self, grant: Grant, vault: Vault) -> None:
        self._vaults[grant.id] = (grant, vault)
        while len(self._vaults) > MOST_VAULTS:
            first = next(iter(self._vaults))  # the one that was used least lately
            self._let_go(*self._vaults.pop(first))

    def _let_go(self, grant: Grant, vault: Vault) -> None:
        with contextlib.suppress(LimbeckError):  # then they are as old as the run's last checkpoint
            if vault.state(grant.id) == "open":
                vault.keep(grant)

    def end(self, seconds: float) -> bool:
        """Let the request under way end and save what teachers have learned; False if it takes longer than that."""
        if not self._turn.acquire(timeout=seconds):
            return False
        try:
            self._ended = True
            while self._vaults:
                self._let_go(*self._vaults.popitem()[1])
        finally:
            self._turn.release()
        return True


def _done(vault: Vault, said: Asking | Keep | GiveBack | Close, stay: TakeSteps | None) -> Said:
    match said:
        case OpenRecords():
            vault.open_records(said.grant)
        case Ask():
            tried = said.mapping.cells if isinstance(said.mapping, Scores) else said.mapping
            if isinstance(tried, Map):
                _require_fit(tried, vault.describe())
            if isinstance(said, AskMasked):
                return _masked(vault, said)
            answer = vault.ask(said.grant, said.label, said.index, said.mapping)
            return Answered(torch.from_numpy(answer.values.copy()))
        case Stay():
            if stay is None:
                raise WallBreach("No generator may stay here.")
            return Stayed(stay(vault, said))
        case Keep():
            vault.keep(said.grant)
        case GiveBack():
            return GivenBack(vault.give_back(said.grant))
        case Close():
            vault.close(said.grant)
    return Done()


def _masked(vault: Vault, said: AskMasked) -> Masked:
    if not isinstance(said.mapping, Map):
        raise WallBreach("Only sums have masks.")
    sums = _masked_vault(vault).ask_masked(said.grant, said.label, said.index, said.mapping, said.keys)
    return Masked(torch.from_numpy(sums.values.copy()))


def _masked_vault(vault: Vault) -> MaskedVault:
    if not isinstance(vault, MaskedVault):
        raise WallBreach("This vault masks nothing.")
    return vault


def _require_plain(plan: Plan) -> None:
    """The ledger keeps these for ever and its owner is shown them, so a stranger does not put whatever they like there."""
    for name in (plan.method, *(text for query in plan.queries for text in (query.label, query.map))):
        if not name.isprintable() or len(name) > LONGEST_NAME:
            raise WallBreach(f"A plan names its method and its queries in {LONGEST_NAME} printable characters at most.")


def _require_grid(plan: Plan) -> None:
    """Sums and noise in doubles are for runs that an older version began, and those had their vault in their own process."""
    if any(query.is_private and not query.on_grid for query in plan.queries):
        raise WallBreach("The plan asks for noise in doubles, which only runs of versions before 0.4.0 have.")


@torch.no_grad()
def _require_fit(mapping: Map, schema: Schema) -> None:
    """Try this very map on two public records, of the first and of the last class, whatever was tried of its form before.

    Guarantee: a map that does not fit the schema fails here, and not for the sake of a record that is in the sample or not.
    """
    x, y = torch.zeros(2, *schema.shape), torch.tensor([0, len(schema.classes) - 1])
    try:
        rows = mapping.rows(x, y)
        total = mapping.clipped_sum(x, y, y, len(schema.classes), Bound(1.0), len(x))
        fits = rows.dim() == 2 and total.shape == (len(schema.classes), mapping.width or rows.shape[1])
    except Exception as error:
        if isinstance(error, LimbeckError) or ran_out(error):
            raise
        fits = False
    if not fits:
        raise WallBreach(f"The map '{mapping.kind}' does not fit records of shape {schema.shape}.")
