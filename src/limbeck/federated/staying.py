"""A generator that has come to a site stays for a block of steps: the plan's own method takes them here, next to the vault.

No code travels. The site's own copy of the method is chosen by the booked plan, as the server's is; what comes along is numbers.
Each question of the block is put to this site's vault, which has booked it, answers it once and stores the answer before it is
followed. So a block that was broken off, or whose end got lost, is taken again with the same answers and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.methods import method_named
from limbeck.methods.parts.stepped import stay
from limbeck.vault.api import Answer, Asked, Grant, Vault
from limbeck.vault.process.requests import Stay


@dataclass(frozen=True)
class AskingHere:
    """Answers of one grant at this site. first: the number here of the answer that step `step` of the method takes."""

    vault: Vault
    grant: Grant
    step: int
    first: int

    def __call__(self, label: str, index: int, mapping: Asked) -> Answer:
        return self.vault.ask(self.grant, label, self.first + index - self.step, mapping)


def take_steps(vault: Vault, said: Stay) -> dict[str, Tensor]:
    """Guarantee: what leaves is made of the site's answers, of the luggage and of public values, and of nothing else."""
    plan = said.grant.plan
    method = method_named(plan.method, plan.settings)
    ask = AskingHere(vault, said.grant, said.step, said.index)
    return stay(method, vault.describe(), ask, said.step, said.count, said.luggage, torch.device("cpu"))
