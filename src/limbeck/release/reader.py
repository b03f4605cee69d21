"""A released set read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data.arrays import stored
from limbeck.errors import BadInput, DataNotFound, DataUnreadable, NotAuthentic
from limbeck.privacy.schema import Schema
from limbeck.release import framed, shown
from limbeck.release.certificate import Certificate
from limbeck.release.statement import read_certificate


@dataclass(frozen=True, eq=False)
class Release:
    """A release read back: the exact numbers, and what its certificate says.

    A table comes as a frame, too, with its decoded columns: categories are categoricals of all that the schema declares, whole
    numbers that may be missing are nullable, dates are dates. The types of the frame that it was made from are in no release.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    certificate: Certificate
    schema: Schema

    def to_arrow(self) -> Any:
        return framed.to_arrow(self.x, self.y, self.schema)

    def to_pandas(self) -> Any:
        return framed.to_pandas(self.x, self.y, self.schema)

    def to_polars(self) -> Any:
        return framed.to_polars(self.x, self.y, self.schema)

    def to_hf(self) -> Any:
        """A `Dataset` of Hugging Face, of pictures or of a table."""
        return framed.to_hf(self.x, self.y, self.schema)

    def to_torch(self) -> Any:
        """A `TensorDataset` of the exact numbers, in [-1, 1], and the class indices. For pictures, too."""
        return framed.to_torch(self.x, self.y)

    def _repr_html_(self) -> str:
        return shown.release_html(self)


def read_release(folder: Path) -> Release:
    """Read the set of a release. `limbeck verify` checks it; this only needs it to be whole."""
    certificate = read_certificate(folder)
    if certificate.is_model:
        raise BadInput(f"The release in {folder} is a trained model, not a set; in Python limbeck.load_model opens it.")
    try:
        content = stored(folder / "set.npz", ("x", "y"))
        return Release(content["x"], content["y"], certificate, certificate.public_assumptions)
    except (OSError, KeyError, TypeError, BadInput, DataNotFound, DataUnreadable):
        raise NotAuthentic(
            f"The release in {folder} is damaged: set.npz cannot be read.", f"limbeck verify {folder}"
        ) from None
