"""A site: one owner's records, ledger and key behind a desk that answers frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from limbeck.federated.desk import Desk, Log
from limbeck.federated.staying import take_steps
from limbeck.privacy.federation import SHARED, Terms
from limbeck.release.endorsing import endorse_booked
from limbeck.release.signature import KeyFile, signing_key
from limbeck.vault.api import Grant, Randomness, Vault
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.masked import MaskedVault
from limbeck.vault.masking import MaskKeys
from limbeck.vault.process.counter import Counter
from limbeck.vault.process.server import described
from limbeck.vault.process.shared_records import SharedRecords
from limbeck.vault.source import PrivateSource


def desk_of(
    source: PrivateSource,
    ledger: Ledger,
    terms: Terms,
    site: str,
    randomness: Randomness,
    device: torch.device | str,
    log: Log,
) -> Desk:
    """The parts, joined.

    Guarantee: whose key is not in the terms answers nothing. Masks are the terms' choice, not the server's.
    """
    records = SharedRecords(source, lambda error: log(f"the records cannot be read: {described(error)}"))
    key = KeyFile.beside(ledger.file.home)
    masks = MaskKeys(terms, site, ledger.file.home, signing_key(key.path))

    def open_vault() -> Vault:
        if terms.noise == SHARED:
            return MaskedVault(records, ledger, masks, randomness, device)
        return LocalVault(records, ledger, randomness, device)

    def endorse(vault: Vault, grant: Grant, stated: Mapping[str, Any]) -> Mapping[str, Any]:
        return endorse_booked(vault, grant, stated, terms, site, key)

    return Desk(Counter(open_vault, endorse=endorse, stay=take_steps), log)
