"""Secret randomness: noise and sampling masks from AES-256 in counter mode (rule 5).

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

SECURE = "aes-256-ctr, operating-system seed"
INSECURE = "insecure seed: for tests, not releasable"

# An attacker who reads the last bits of a double can rule out true values that one Box-Muller draw cannot hit
# (Mironov 2012). Adding up several draws makes the reachable set too dense for that (Holohan and Braghin 2021). Here a number
# is the sum of the cosines and sines of two Box-Muller pairs: 256 random bits.
DRAWS_PER_NUMBER = 4


class SecretStream:
    """A stream of secret random numbers under one key."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def integers(self, count: int) -> NDArray[np.uint64]:
        """Uniform 64-bit numbers."""
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype=np.uint64)

    def gaussian(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Standard normal numbers.

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
        """A fresh stream for one answer; only the insecure mode makes it depend on the arguments.

        Guarantee: in secure mode two streams never share a key, also not after a fork, a restore or a resume.
        """
        if self.insecure_seed is None:
            return SecretStream(os.urandom(32))
        return SecretStream(hashlib.sha256(f"{self.insecure_seed}/{label}/{index}".encode()).digest())
