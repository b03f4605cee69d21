"""Masks: sums that the server can read only together.

Each pair of sites agrees on a key that nobody else knows: X25519, fresh for each grant, with each public key signed by its
site's registered Ed25519 key, so that the server, which carries the keys, cannot put its own in between. For every answer the
pair's key gives a ChaCha20 stream of 64-bit numbers. The earlier site adds it, the later one subtracts it, modulo 2^64:

    y_i = x_i + sum over j > i of m_ij - sum over j < i of m_ji  (mod 2^64),      sum of y_i = sum of x_i  (mod 2^64)

Guarantee: as long as two sites keep their keys to themselves, their y are uniform but for their sum, to whoever cannot break
X25519 and ChaCha20, whatever the server and all other sites do. The stream's key is bound to all that must be equal on both
sides (`context`): terms, grant, queries, label, number of the answer, map and shape. Sites that were told different things get
masks that do not cancel, and the server noise. It is bound to the pair as well, its names and public keys: a site may offer
another one's key as its own (it need not know the secret for that, and there are several spellings of a key), and a third site,
which would add the stream for the one and subtract it for the other, would be left without a mask. A stream is never used for
two sums: the first answer to a question is stored, and no other one is ever given for its context.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from numpy.typing import NDArray

from limbeck.errors import LedgerFault, WallBreach
from limbeck.files import read_or_create
from limbeck.privacy.federation import Terms
from limbeck.vault.private_folder import folder_of

NAME = "mask"
# Of the masks. 1, of versions before 0.7.0, did not bind a stream to its pair. Sites of different protocols refuse each other's
# keys, because what is signed differs, and an answer that was masked by another one is not given again.
PROTOCOL = 2
# What is signed can be taken for nothing else that the key signs: a certificate begins with a brace.
PURPOSE = b"limbeck mask key %d\0" % PROTOCOL
_PUBLIC = re.compile(r"[0-9a-f]{64}")
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class MaskKey:
    """A site's public key for the masks of one grant, with its owner's signature; hexadecimal."""

    site: str
    public_key: str
    signature: str


class MaskKeys:
    """The keys of one site: its owner's, which signs, and one for each grant, which is made when it is first needed.

    A grant's key lies in the vault's private folder, so a site that is started again has it, and goes when the grant is closed:
    then nobody can ever take the masks of its answers off again.
    """

    def __init__(self, terms: Terms, site: str, ledger: Path, owner: Ed25519PrivateKey) -> None:
        public = owner.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        if site not in terms.sites or terms.keys[terms.sites.index(site)] != public:
            raise WallBreach(f"The terms of '{terms.name}' do not have this key for site '{site}'.")
        self.terms, self.site, self._ledger, self._owner = terms, site, ledger, owner

    def offer(self, grant: str) -> MaskKey:
        """The public key of a grant, signed."""
        public = _public_text(self._secret(grant))
        signature = self._owner.sign(_signed_bytes(self.terms, self.site, grant, public))
        return MaskKey(self.site, public, signature.hex())

    def mask(self, grant: str, keys: Sequence[MaskKey], context: bytes, count: int) -> Words:
        """What this site adds to its numbers. Guarantee: made with the registered sites' own keys, or not at all."""
        check_keys(self.terms, grant, keys)
        secret, mine = self._secret(grant), self.terms.sites.index(self.site)
        if keys[mine].public_key != _public_text(secret):
            raise WallBreach("The list of keys has another one for this site than its own.")
        total = np.zeros(count, dtype=np.uint64)
        for other, key in enumerate(keys):
            if other != mine:
                pair = (keys[min(mine, other)], keys[max(mine, other)])
                words = stream(_agreed(secret, key), _context_of_a_pair(context, *pair), count)
                total = total + words if mine < other else total - words
        return total

    def _secret(self, grant: str) -> X25519PrivateKey:
        folder = folder_of(self._ledger, grant)
        try:
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            return X25519PrivateKey.from_private_bytes(read_or_create(folder / NAME, _new_secret))
        except (OSError, ValueError):
            raise LedgerFault(f"The key of masks in {folder} cannot be used.") from None


def check_keys(terms: Terms, grant: str, keys: Sequence[MaskKey]) -> None:
    """Guarantee: returns only if each site of the terms, in their order, has signed its key for this very grant."""
    if tuple(key.site for key in keys) != terms.sites:
        raise WallBreach("The list of keys is not that of the federation's sites.")
    if not all(_PUBLIC.fullmatch(key.public_key) for key in keys):
        raise WallBreach("A public key of masks has 64 hexadecimal digits, in small letters.")
    if len({key.public_key for key in keys}) != len(keys):
        raise WallBreach("Two sites have the same key.")
    for key, owner in zip(keys, terms.keys, strict=True):
        try:
            verifier = Ed25519PublicKey.from_public_bytes(bytes.fromhex(owner))
            verifier.verify(bytes.fromhex(key.signature), _signed_bytes(terms, key.site, grant, key.public_key))
        except (InvalidSignature, ValueError):
            raise WallBreach(f"The key of site '{key.site}' was not signed by its owner for this run.") from None


def stream(shared: bytes, context: bytes, count: int) -> Words:
    """So many uniform 64-bit numbers of one pair, for one answer. Guarantee: another context is another key."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"limbeck mask %d\0" % PROTOCOL + context).derive(shared)
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * count)), dtype="<u8").astype(np.uint64)


def unmasked(terms: Terms, parts: Sequence[Words]) -> NDArray[np.int64]:
    """The sum of all sites' masked numbers, in which the masks cancel, as signed numbers."""
    if len(parts) != len(terms.sites):
        raise WallBreach("Masks cancel in the sum over all sites, and some are missing.")
    total: Words = np.stack(parts).sum(axis=0, dtype=np.uint64)
    return np.ascontiguousarray(total).view(np.int64)


def context_of(*parts: object) -> bytes:
    """Bytes that are equal only if all parts are."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


def _context_of_a_pair(context: bytes, earlier: MaskKey, later: MaskKey) -> bytes:
    return context_of(context.hex(), earlier.site, earlier.public_key, later.site, later.public_key)


def _signed_bytes(terms: Terms, site: str, grant: str, public: str) -> bytes:
    return PURPOSE + context_of(terms.digest(), site, grant, public)


def _agreed(secret: X25519PrivateKey, key: MaskKey) -> bytes:
    """The secret of a pair, before it is bound to anything."""
    try:
        return secret.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(key.public_key)))
    except ValueError:  # one of the few points at which every secret agrees on the same
        raise WallBreach(f"The key of site '{key.site}' is one that hides nothing.") from None


def _public_text(secret: X25519PrivateKey) -> str:
    return secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _new_secret() -> bytes:
    return os.urandom(32)
