"""Layouts in which data sets are published: each is recognised by the names of its files, and read as it is.

These sets are opened by their path, with a schema that `limbeck schema draft` begins. Their copies are not compared with
hashes, so that what is scored on them is the owner's edition.
"""

from __future__ import annotations

from pathlib import Path

from limbeck.data.published.celeba import CELEBA
from limbeck.data.published.characters import EMNIST, KMNIST
from limbeck.data.published.layout import Layout
from limbeck.data.published.medmnist import MEDMNIST
from limbeck.data.published.places365 import PLACES365
from limbeck.data.published.prepared import CAMELYON17, EUROSAT
from limbeck.data.published.svhn import SVHN

LAYOUTS: tuple[Layout, ...] = (CELEBA, PLACES365, SVHN, EMNIST, KMNIST, MEDMNIST, CAMELYON17, EUROSAT)

__all__ = ["LAYOUTS", "Layout", "layout_of"]


def layout_of(path: Path) -> Layout | None:
    """The layout that a path is in, by names of files; None for everything else."""
    return next((layout for layout in LAYOUTS if layout.holds(path)), None)
