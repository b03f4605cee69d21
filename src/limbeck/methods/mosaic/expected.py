"""The third question: what the model of the label expects of the records.

The label's terms are fitted so that rows of the mixture have the measured counts. But columns of these rows go together less
closely than those of the records, so right counts lead to wrong terms. The model is public: for each cell the records say what it
expects of them (one Newton step of a logistic regression on them, of which the labels' part was bought before), and what the rows
expect too much or too little is taken off the counts.

Where pairs surely ask for more than terms, that is no help. There the labels are counted once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.methods.mosaic.axes import Axis
from limbeck.methods.mosaic.labels import LabelModel
from limbeck.methods.mosaic.measured import Measured
from limbeck.vault.api import Answer, Ask, LabelCells

Numbers = NDArray[np.float64]
TINY = 1e-30  # of squared shares: nothing is divided by none


@dataclass(frozen=True, eq=False)
class Expected:
    """shift, doubt: (classes, cells) and (cells,), what is added to the label's counts, as shares, and to their variance.
    opinion: of the mixture, (1,); below 0 before the answer is there."""

    shift: Tensor
    doubt: Tensor
    opinion: Tensor

    @staticmethod
    def none(classes: int, cells: int) -> Expected:
        return Expected(torch.zeros(classes, cells), torch.zeros(cells), torch.full((1,), -1.0))

    @property
    def state(self) -> dict[str, Tensor]:
        return {"label_shift": self.shift, "label_doubt": self.doubt, "label_opinion": self.opinion}

    @property
    def is_there(self) -> bool:
        return bool(self.opinion >= 0)


def ask_labels(
    model: LabelModel, axes: tuple[Axis, ...], measured: Measured, records: float, ask: Ask, said: Expected
) -> None:
    """Put what the answer says into `said`, in place. model: fitted before anything was asked."""
    cuts, classes = tuple(axis.cut() for axis in axes), len(measured.single)
    terms = torch.from_numpy(np.concatenate([model.constant[None], model.terms])).float()
    mapping = LabelCells(cuts=cuts, classes=classes, terms=terms if model.opinion == 0 else None)
    answer = ask("labels", 0, mapping)
    found, variance = _shares(answer, mapping, records)
    if model.opinion == 0:
        shift, doubt = _expectation(found - model.expected(), variance, measured)
    else:
        shift, doubt = _counts(found, variance, measured)
    said.shift.copy_(torch.from_numpy(shift))
    said.doubt.copy_(torch.from_numpy(doubt))
    said.opinion.fill_(model.opinion)


def _shares(answer: Answer, mapping: LabelCells, records: float) -> tuple[Numbers, float]:
    """(classes, cells): of all records, and the variance of each. They add up to 0 over the classes, but for the noise."""
    scale = mapping.added * records
    found = answer.values.astype(np.float64).reshape(mapping.cells, mapping.classes).T / scale
    return found - found.mean(0), (answer.noise_std / scale) ** 2


def _expectation(apart: Numbers, variance: float, measured: Measured) -> tuple[Numbers, Numbers]:
    """apart: what is expected of the records, less what is of the rows.

    A cell strays in proportion to its records; how far, all cells of a column say together. So much is believed of each as noise
    does not explain: of small cells little, and where noise explains it all, nothing changes.
    """
    shift, doubt = np.zeros(apart.shape), np.zeros(apart.shape[1])
    noise = variance * (1 - 1 / len(apart))
    squares = measured.totals()[0].double().clamp_min(0).square().numpy()
    for block in measured.blocks():
        surely = np.maximum((np.square(apart[:, block]) - noise).sum(), 0.0)
        strays = surely * squares[block] / (len(apart) * max(squares[block].sum(), TINY))
        believed = strays / (strays + noise)
        shift[:, block] = -believed * apart[:, block]
        doubt[block] = believed**2 * variance
    return shift, doubt


def _counts(found: Numbers, variance: float, measured: Measured) -> tuple[Numbers, Numbers]:
    """Two answers to one question are weighed by their precision."""
    single, own = (each.double().numpy() for each in measured.combined())
    believed = own / (own + variance)
    shift: Numbers = believed * (found - (single - single.mean(0)))
    return shift, -believed * own
