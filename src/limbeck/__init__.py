"""Limbeck: differentially private synthetic sets.

The public names are those of `limbeck.api`. They are loaded when first used, because PyTorch takes a second to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limbeck.api import (
        Certificate,
        Column,
        Condenser,
        Evaluation,
        Ledger,
        LimbeckError,
        LocalVault,
        Plan,
        Schema,
        budget,
        condense,
        distil,
        draft,
        load,
        load_generator,
        load_model,
        make_plan,
        open_source,
        plan,
        resume,
        sample,
        set_budget,
        verify,
    )

# `evaluate` is a package here, so the function of that name is in `limbeck.api` alone.
__all__ = [
    "Certificate",
    "Column",
    "Condenser",
    "Evaluation",
    "Ledger",
    "LimbeckError",
    "LocalVault",
    "Plan",
    "Schema",
    "budget",
    "condense",
    "distil",
    "draft",
    "load",
    "load_generator",
    "load_model",
    "make_plan",
    "open_source",
    "plan",
    "resume",
    "sample",
    "set_budget",
    "verify",
]
__version__ = "0.8.0"


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("limbeck.api"), name)
    raise AttributeError(f"module 'limbeck' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
