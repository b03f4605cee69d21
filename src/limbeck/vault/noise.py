"""Secret randomness: noise and sampling masks from AES-256 in counter mode (rule 5), and how noise joins a sum (rule 13).

Each answer gets its own key, drawn from the operating system, and forgets it. Network weights, augmentation and evaluation
use ordinary seeded generators and never this one, so that nothing public reveals anything about the noise.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from limbeck.privacy.queries import Noised
from limbeck.vault.rounded_gaussian import rounded_gaussian

SECURE = "aes-256-ctr, operating-system seed"
Total = NDArray[np.int64] | NDArray[np.float64]  # sums and noise: whole steps, or the doubles of older bookings
INSECURE = "insecure seed: for tests, not releasable"

# An attacker who reads the last bits of a double can rule out true values that one Box-Muller draw cannot hit
# (Mironov 2012). Adding up several draws makes the reachable set too dense for that (Holohan and Braghin 2021). Here a number
# is the sum of the cosines and sines of two Box-Muller pairs: 256 random bits.
DRAWS_PER_NUMBER = 4


class SecretStream:
    """A stream of secret random numbers under one key."""

    def __init__(self, key: bytes, skip: int = 0) -> None:
        """skip: how many 64-bit numbers lie before the first; a counter need not pass through them."""
        blocks, rest = divmod(skip, 2)
        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(blocks.to_bytes(16, "big"))).encryptor()
        self.integers(rest)

    def integers(self, count: int) -> NDArray[np.uint64]:
        """Uniform 64-bit numbers."""
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype=np.uint64)

    def skip(self, count: int) -> None:
        """Pass over so many numbers, which are for records that somebody else holds."""
        for start in range(0, count, 1 << 20):
            self.integers(min(1 << 20, count - start))

    def words_of(self, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """A secret 64-bit word for each of (n, 2) numbers, under a key that is drawn for this call.

        Guarantee: equal blocks have equal words, different ones have words that tell nothing of each other (AES-256 of the
        block); a block's word does not depend on which others there are.
        """
        cipher = Cipher(algorithms.AES256(self.integers(4).tobytes()), modes.ECB()).encryptor()  # each block once
        sealed = np.frombuffer(cipher.update(np.ascontiguousarray(blocks).tobytes()), dtype=np.uint64)
        return sealed.reshape(-1, 2)[:, 0]

    def whole_gaussian(self, steps: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Gaussian numbers of this standard deviation, rounded to whole ones.

        Guarantee: independent, unpredictable to whoever does not hold the key, and exact up to 2^-1000 a number.
        """
        return rounded_gaussian(steps).draw(self, int(np.prod(shape))).reshape(shape)

    def gaussian(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Standard normal numbers as doubles: the noise of runs that were begun before 0.4.0, and of no other.

        Guarantee: independent, and unpredictable to whoever does not hold the key.
        """
        count = int(np.prod(shape))
        pairs = (count * DRAWS_PER_NUMBER + 1) // 2
        radius_bits, angle_bits = self.integers(pairs), self.integers(pairs)
        # (k + 1) / 2^53 lies in (0, 1], so the logarithm is finite.
        radius = np.sqrt(-2.0 * np.log(((radius_bits >> np.uint64(11)) + np.uint64(1)) * 2.0**-53))
        angle = (angle_bits >> np.uint64(11)) * (2.0**-53 * 2.0 * np.pi)
        draws = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[: count * DRAWS_PER_NUMBER]
        summed: NDArray[np.float64] = draws.reshape(DRAWS_PER_NUMBER, count).sum(0) / np.sqrt(DRAWS_PER_NUMBER)
        return summed.reshape(shape)


def drawn_noise(query: Noised, shape: tuple[int, ...], stream: SecretStream) -> Total:
    """The noise of one answer, in the units of its sums.

    Guarantee: the standard deviation is the query's, and nothing else of the query or of any record has a part in it.
    """
    if not query.is_private:
        return np.zeros(shape, dtype=np.int64)
    if not query.on_grid:
        return query.noise_std * stream.gaussian(shape)
    return stream.whole_gaussian(query.noise_multiplier * (query.clip / query.step), shape)


def with_noise(query: Noised, total: Total, noise: Total) -> NDArray[np.float64]:
    """The answer: sum and noise in whole steps, added as integers, and only then scaled.

    Guarantee: on the grid, a function of round(S + Z) for the sum S and one Gaussian Z. (A sum beyond 64 bits would wrap round,
    which is such a function, too.)
    """
    noised: NDArray[np.float64] = np.multiply(total + noise, query.step or 1.0, dtype=np.float64)
    return noised


@dataclass(frozen=True)
class Randomness:
    """Where the vault's keys come from. `insecure_seed` is for tests and is stamped on every certificate."""

    insecure_seed: int | None = None

    @property
    def mode(self) -> str:
        return SECURE if self.insecure_seed is None else INSECURE

    @property
    def releasable(self) -> bool:
        return self.insecure_seed is None

    def stream(self, label: str, index: int) -> SecretStream:
        """A fresh stream for one answer, under a key of its own."""
        return SecretStream(self.key(label, index))

    def key(self, label: str, index: int) -> bytes:
        """The key of such a stream; only the insecure mode makes it depend on the arguments.

        Guarantee: in secure mode no key is drawn twice, also not after a fork, a restore or a resume.
        """
        if self.insecure_seed is None:
            return os.urandom(32)
        return hashlib.sha256(f"{self.insecure_seed}/{label}/{index}".encode()).digest()
