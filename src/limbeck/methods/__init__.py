"""All methods by name."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from limbeck.errors import BadSettings
from limbeck.methods.base import Logbook, Method, Result, SyntheticSet, TrainedGenerator, TrainedModel
from limbeck.methods.datalens import DataLens
from limbeck.methods.dc import DC, DSA
from limbeck.methods.dm import DM
from limbeck.methods.dpmerf import DPMERF
from limbeck.methods.dpsgd import DPSGD
from limbeck.methods.elixir.method import Elixir
from limbeck.methods.gpate import GPATE
from limbeck.methods.gswgan import GSWGAN
from limbeck.methods.ldpdc import LDPDC
from limbeck.methods.ndpdc import NDPDC
from limbeck.methods.pategan import PATEGAN
from limbeck.methods.psg import PSG
from limbeck.methods.psg_prior import PSGPrior

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Elixir, LDPDC, NDPDC, PSG, PSGPrior, DM, DC, DSA, DPMERF, DPSGD, DataLens, PATEGAN, GPATE, GSWGAN)
}

__all__ = [
    "METHODS",
    "Logbook",
    "Method",
    "Result",
    "SyntheticSet",
    "TrainedGenerator",
    "TrainedModel",
    "method_named",
    "settings_of",
]


def method_named(name: str, settings: Mapping[str, Any]) -> Method:
    """The method with these settings; texts (from --set key=value) are read as the field's type."""
    if name not in METHODS:
        raise BadSettings(f"There is no method '{name}'. Known are: {', '.join(METHODS)}.", "limbeck methods")
    kind = METHODS[name]
    types_of = typing.get_type_hints(kind)
    known = [field.name for field in dataclasses.fields(kind)]
    for key in settings:
        if key not in known:
            raise BadSettings(
                f"Method '{name}' has no setting '{key}'. Known are: {', '.join(known)}.", "limbeck methods"
            )
    return kind(**{key: _typed(key, value, types_of[key]) for key, value in settings.items()})


def settings_of(method: Method) -> dict[str, Any]:
    return dataclasses.asdict(method)


def _typed(key: str, value: Any, kind: Any) -> Any:
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if value in (None, "none") and type(None) in options:
        return None
    for option in (bool, int, float, str):
        if option not in options:
            continue
        try:
            return _read(value, option)
        except ValueError:
            continue
    names = " or ".join(option.__name__ for option in options if option is not type(None))
    raise BadSettings(f"The setting {key}={value} is not of the form {names}.")


def _read(value: Any, kind: type) -> Any:
    if kind is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if isinstance(value, bool) or str(value).lower() in words:
            return value if isinstance(value, bool) else words[str(value).lower()]
        raise ValueError(value)
    if isinstance(value, bool) or (kind is int and isinstance(value, float) and value != int(value)):
        raise ValueError(value)
    return kind(value)
