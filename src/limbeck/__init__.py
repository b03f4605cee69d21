"""Limbeck: differentially private synthetic sets.

The public names. They are loaded when first used, because PyTorch takes a second to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limbeck.data import open_source
    from limbeck.errors import LimbeckError
    from limbeck.privacy.plan import Plan
    from limbeck.privacy.schema import Column, Schema
    from limbeck.release.certificate import verify
    from limbeck.release.generator import load_generator
    from limbeck.release.model import load_model
    from limbeck.runs.estimator import Condenser
    from limbeck.runs.planning import make_plan
    from limbeck.vault.ledger import Ledger
    from limbeck.vault.local import LocalVault

_HOMES = {
    "Column": "limbeck.privacy.schema",
    "Condenser": "limbeck.runs.estimator",
    "Ledger": "limbeck.vault.ledger.book",
    "LimbeckError": "limbeck.errors",
    "LocalVault": "limbeck.vault.local",
    "Plan": "limbeck.privacy.plan",
    "Schema": "limbeck.privacy.schema",
    "load_generator": "limbeck.release.generator",
    "load_model": "limbeck.release.model",
    "make_plan": "limbeck.runs.planning",
    "open_source": "limbeck.data",
    "verify": "limbeck.release.certificate",
}

__all__ = [
    "Column",
    "Condenser",
    "Ledger",
    "LimbeckError",
    "LocalVault",
    "Plan",
    "Schema",
    "load_generator",
    "load_model",
    "make_plan",
    "open_source",
    "verify",
]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'limbeck' has no attribute {name!r}")
