"""The accuracy of a set over public numbers: a curve, and beside it what scored sets of like numbers gave.

**The curve.** A set teaches less than real records do: its classes lie closer together (`separation.py`). It keeps a share of
the distance, 1 / root(1 + (level / signal)^(2 p)), as a classifier does whose direction is a noisy mean. The signal is records of
a class, times what one record is worth in standard deviations of the noise; of pictures, over a power of the numbers of a record.
**The correction.** What scored sets were off the curve, in points, is carried over to others by how near they lie: a Gaussian
process whose mean is the curve. It can say more where a set is neither sure nor hopeless (`ease`). More records or more epsilon
never forecast less: between the highest value at less signal and the lowest one at more, the middle is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from limbeck.forecast.facts import Facts
from limbeck.forecast.separation import Numbers, accuracies_of, separation_of

BEST = 99.5  # per cent: who says more of real records is believed this
SIGNALS = np.arange(-3.0, 12.01, 0.25)  # logarithms, at which the surface is looked at
# The lengths over which sets are alike: in logarithms of the signal, in separation, in logarithms of classes and of numbers.
LENGTHS = np.array([1.0, 0.6, 0.8, 3.0])
POINTS = 14.0  # how far sets stray from the curve, at most
STRAY = 3.0  # how far one does that no other is like
LEAST_EASE = 0.2  # of straying, at chance and at 100 %
WAYS = ("first", "answers", "table")
ACROSS = 0.5  # how alike pictures are with and without networks that ask
WAY, PLACE, WEIGHT = 0, slice(1, 5), 5  # the columns of a table of cases


@dataclass(frozen=True, kw_only=True, eq=False)
class Surface:
    """curves: by name, what is kept at best, level and power of the noise, and how that grows with the numbers of a record and
    with the classes. size: the power of the set's size. hardness: of each kind, where nobody says what real records give. cases:
    of each its way, its place and its weight."""

    curves: dict[str, dict[str, float]]
    size: float
    hardness: dict[str, float]
    cases: Numbers

    def apart(self, facts: Facts) -> float:
        """How far apart real records lie: as said, or as of public sets of the kind."""
        if facts.real_accuracy is None:
            return self.hardness[facts.kind]
        return separation_of(min(facts.real_accuracy, BEST), facts.all_shares)

    def accuracy(self, facts: Facts) -> float:
        """In per cent."""
        return self.at(facts, self.moved(facts))

    def at(self, facts: Facts, moved: float, margin: dict[str, float] | None = None, doubt: float = 0.0) -> float:
        """moved: off the curve. doubt: -1 and 1 at the ends of the margin, whose `signal` is the logarithm of how much more or
        less the records may say, and whose `share` is of the distance."""
        margin = margin or {"signal": 0.0, "share": 0.0}
        signals = np.array([facts.signal + doubt * margin["signal"]])
        curve = self.curve(facts, self.apart(facts), signals, 1 + doubt * margin["share"])[0]
        return float(np.clip(curve + moved, 100 * max(facts.all_shares), 100.0))

    def moved(self, facts: Facts) -> float:
        """How far the surface lies above the curve, in points."""
        apart, own = self.apart(facts), np.array([facts.signal])
        signals = np.append(SIGNALS, own)
        found = self.corrected(facts, apart, signals)
        never_less = float(found[signals <= own].max() + found[signals >= own].min()) / 2
        return never_less - float(self.curve(facts, apart, own)[0])

    def corrected(self, facts: Facts, apart: float, signals: Numbers) -> Numbers:
        """At these logarithms of the signal."""
        curve, chance = self.curve(facts, apart, signals), 100 * max(facts.all_shares)
        places = np.array([place(facts, apart)] * len(signals))
        places[:, 0] = signals
        way = np.full(len(signals), WAYS.index(facts.way))
        like = likeness(way, places, self.cases[:, WAY], self.cases[:, PLACE])
        moved: Numbers = curve + ease(curve, chance) * (like @ self.cases[:, WEIGHT])
        return np.clip(moved, chance, 100.0)

    def curve(self, facts: Facts, apart: float, signals: Numbers, share: float = 1.0) -> Numbers:
        kept = share * kept_share(facts, self.curves[facts.curve], self.size, signals)
        return accuracies_of(apart * kept, facts.all_shares)


def kept_share(facts: Facts, curve: dict[str, float], size: float, signals: Numbers) -> Numbers:
    """Of the distance between classes."""
    level = math.log(curve["level"]) + curve["classes"] * math.log(facts.classes / 2)
    noise = np.exp(2 * curve["power"] * (level + curve["spread"] * facts.more_numbers - signals))
    larger = (min(max(facts.size, 1), 200) / 50) ** size if facts.kind != "table" else 1.0
    kept: Numbers = curve["best"] * larger / np.sqrt(1 + noise)
    return kept


def place(facts: Facts, apart: float) -> tuple[float, float, float, float]:
    """Where a case lies among others."""
    return facts.signal, apart, math.log(facts.classes / 2), facts.more_numbers


def likeness(way: Numbers, places: Numbers, other_way: Numbers, others: Numbers) -> Numbers:
    """(places, others): 1 where they are the same, 0 between pictures and tables."""
    off = (places[:, None] - others[None]) / LENGTHS
    same, table = way[:, None] == other_way[None], WAYS.index("table")
    pictures = (way[:, None] != table) & (other_way[None] != table)
    found: Numbers = np.exp(-(off**2).sum(-1) / 2) * np.where(same, 1.0, np.where(pictures, ACROSS, 0.0))
    return found


def ease(accuracy: Numbers, chance: Numbers | float) -> Numbers:
    """How easily a set strays from the curve, from `LEAST_EASE` to 1 half way between chance and 100 %."""
    share = np.clip((accuracy - chance) / (100 - chance), 0, 1)
    found: Numbers = LEAST_EASE + (1 - LEAST_EASE) * 4 * share * (1 - share)
    return found


def weights(
    way: Numbers, places: Numbers, curve: Numbers, chance: Numbers, accuracy: Numbers, unsure: Numbers
) -> Numbers:
    """What each case is worth to others. unsure: the standard error of its accuracy."""
    easy = ease(curve, chance)
    alike = POINTS**2 * likeness(way, places, way, places) * np.outer(easy, easy)
    solved = np.linalg.solve(alike + np.diag(unsure**2 + STRAY**2), accuracy - curve)
    found: Numbers = POINTS**2 * easy * solved
    return found
