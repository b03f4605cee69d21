"""The per-record maps that a query may name. All run inside the vault; their parameters are public values.

The list is closed: the vault accepts these kinds and no other. A kind, once released, keeps its name and its meaning.
"""

from __future__ import annotations

from limbeck.vault.maps.base import Map
from limbeck.vault.maps.cells import Cells, Cut
from limbeck.vault.maps.hermite import Hermite
from limbeck.vault.maps.label_cells import LabelCells
from limbeck.vault.maps.labelled import Labelled
from limbeck.vault.maps.moments import Identity, OneHot, SecondMoment
from limbeck.vault.maps.network_gradient import NetworkGradient, ReconstructionGradient, ScoreGradient
from limbeck.vault.maps.random_features import RandomFeatures
from limbeck.vault.maps.random_fourier import CodeFourier, RandomFourier
from limbeck.vault.maps.residuals import FeatureResidual, Residual, ResidualFourier
from limbeck.vault.maps.top_gradient import TopGradient
from limbeck.vault.maps.transport import Transport

MAPS: dict[str, type[Map]] = {
    "identity": Identity,
    "one_hot": OneHot,
    "second_moment": SecondMoment,
    "random_features": RandomFeatures,
    "network_gradient": NetworkGradient,
    "top_gradient": TopGradient,
    "random_fourier": RandomFourier,
    "residual": Residual,
    "feature_residual": FeatureResidual,
    "cells": Cells,
    "hermite": Hermite,
    "score_gradient": ScoreGradient,
    "transport": Transport,
    "labelled": Labelled,
    "label_cells": LabelCells,
    "reconstruction_gradient": ReconstructionGradient,
    "code_fourier": CodeFourier,
}

__all__ = [
    "MAPS",
    "Cells",
    "CodeFourier",
    "Cut",
    "FeatureResidual",
    "Hermite",
    "Identity",
    "LabelCells",
    "Labelled",
    "Map",
    "NetworkGradient",
    "OneHot",
    "RandomFeatures",
    "RandomFourier",
    "ReconstructionGradient",
    "Residual",
    "ResidualFourier",
    "ScoreGradient",
    "SecondMoment",
    "TopGradient",
    "Transport",
]
