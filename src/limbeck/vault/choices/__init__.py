"""The scores that a choice may name. All are computed inside the vault; their parameters are public values.

The list is closed: the vault accepts these kinds and no other. A kind, once released, keeps its name and its meaning.
"""

from __future__ import annotations

from limbeck.vault.choices.marginal_errors import MarginalErrors
from limbeck.vault.choices.scores import Scores

SCORES: dict[str, type[Scores]] = {"marginal_errors": MarginalErrors}

__all__ = ["SCORES", "MarginalErrors", "Scores"]
