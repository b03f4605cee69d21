"""All methods by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from limbeck.errors import BadSettings, did_you_mean
from limbeck.methods.aim import AIM
from limbeck.methods.base import Logbook, Method, Result, SyntheticSet, TrainedGenerator, TrainedModel
from limbeck.methods.datalens import DataLens
from limbeck.methods.dc import DC, DSA
from limbeck.methods.dm import DM
from limbeck.methods.dpcgan import DPCGAN
from limbeck.methods.dpgan import DPGAN
from limbeck.methods.dphp import DPHP
from limbeck.methods.dpmerf import DPMERF
from limbeck.methods.dpmerf_ae import DPMERFAE
from limbeck.methods.dpmix import DPMix
from limbeck.methods.dpsgd import DPSGD
from limbeck.methods.dpsinkhorn import DPSinkhorn
from limbeck.methods.elixir.method import Elixir
from limbeck.methods.gpate import GPATE
from limbeck.methods.gswgan import GSWGAN
from limbeck.methods.ldpdc import LDPDC
from limbeck.methods.mosaic.method import Mosaic
from limbeck.methods.mst import MST
from limbeck.methods.ndpdc import NDPDC
from limbeck.methods.pategan import PATEGAN
from limbeck.methods.privbayes import PrivBayes
from limbeck.methods.psg import PSG
from limbeck.methods.psg_prior import PSGPrior
from limbeck.methods.settings import declared, read_settings
from limbeck.privacy.schema import Schema

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Elixir,
        Mosaic,
        AIM,
        MST,
        PrivBayes,
        LDPDC,
        NDPDC,
        PSG,
        PSGPrior,
        DM,
        DC,
        DSA,
        DPMERF,
        DPMERFAE,
        DPHP,
        DPCGAN,
        DPGAN,
        DPSinkhorn,
        DPMix,
        DPSGD,
        DataLens,
        PATEGAN,
        GPATE,
        GSWGAN,
    )
}

__all__ = [
    "METHODS",
    "Logbook",
    "Method",
    "Result",
    "SyntheticSet",
    "TrainedGenerator",
    "TrainedModel",
    "declared",
    "default_method",
    "method_named",
    "settings_of",
    "with_rows",
]


def method_named(name: str, settings: Mapping[str, Any]) -> Method:
    """The method with these settings; texts (from --set key=value) are read as the setting's type.

    >>> method_named("ldpdc", {"L": "50", "sigma": "none"}).L
    50
    """
    kind = kind_named(name)
    return kind(**read_settings(kind, name, settings))


def kind_named(name: str) -> type[Method]:
    if name not in METHODS:
        raise BadSettings(
            f"There is no method '{name}'.{did_you_mean(name, METHODS)} Known are: {', '.join(METHODS)}.",
            "limbeck methods",
        )
    return METHODS[name]


def default_method(schema: Schema) -> str:
    """The method for whoever names none: one for images, one for tables. The schema says which, and it is public.

    >>> default_method(Schema(name="scans", shape=(1, 8, 8), classes=("healthy", "ill"), records=100, low=0, high=255))
    'elixir'
    """
    return Elixir.name if schema.is_image else Mosaic.name


def with_rows(name: str, settings: Mapping[str, Any], rows: int | None) -> Mapping[str, Any]:
    """The settings with so many rows over all classes; a method that cannot be told how many is refused."""
    if rows is None or name not in METHODS:  # `method_named` says that there is none
        return settings
    if not METHODS[name].sized_by_rows:
        able = [kind.name for kind in METHODS.values() if kind.sized_by_rows]
        raise BadSettings(
            f"Method '{name}' makes so many records of each class, so it takes --per-class and not --rows {rows}. "
            f"A number of rows is for {', '.join(able[:-1])} and {able[-1]}, which make whole tables.",
            "limbeck methods",
        )
    return {**settings, "rows": rows}


def settings_of(method: Method) -> dict[str, Any]:
    """All settings by name, as a plan states them."""
    return dataclasses.asdict(method)
