"""Fits the forecast of usefulness to scored public sets, and says how far it is off on those that it has not seen.

    python -m benchmarks.forecast_fit           writes results/forecast-fit.json, forecast/fitted.py, a table of docs/forecast.md
    python -m benchmarks.forecast_fit --score   the same without a fit: the held-out cases are scored by what is shipped

Points are the small cases of `benchmarks.forecast_cases` and kept results of whole public sets. Curves and corrections are fitted
with every case's own hardness, from what a usual model reaches on its real records; what is assumed where nobody says it are
middles of those. All of this sees every part but "held-out", and the kept results; the held-out cases are only scored.
Without them it also says what is off if every case in turn is left out of the fit; of tables, if its whole data
set is, because tables differ more than pictures do (of Adult, the only one of many records, one case at a time). Margins are the
narrowest that 80 % of the single sets lie within then.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.forecast_cases import FIT, HELD_OUT, MORE, SPENT, SPENT_2
from limbeck.forecast.duration import START
from limbeck.forecast.facts import Facts
from limbeck.forecast.fitted import MARGIN, MARGIN_SAID
from limbeck.forecast.separation import accuracies_of, accuracy_of, separation_of
from limbeck.forecast.surface import BEST, WAYS, Surface, ease, kept_share, likeness, place, weights
from limbeck.forecast.usefulness import shipped

RESULTS = Path(__file__).parent / "results"
FITTED = Path(__file__).parents[1] / "src" / "limbeck" / "forecast" / "fitted.py"
PAGE = Path(__file__).parents[1] / "docs" / "forecast.md"
BEGIN, END = "<!-- errors -->", "<!-- end of errors -->"
STATED = (
    ("**held out**, `--real-accuracy` said", "held_out", "real_accuracy_said"),
    ("the same, nothing said", "held_out", "nothing_said"),
    ("fitted, each left out in turn, `--real-accuracy` said", "each_left_out_in_turn", "real_accuracy_said"),
    ("the same, nothing said", "each_left_out_in_turn", "nothing_said"),
)
COMMAND = "python -m benchmarks.forecast_fit"
COVERED = 0.8  # of the sets, each case counting as one
LOUDER, LARGER = np.linspace(0, 3, 21), np.linspace(0, 1, 21)  # margins that are tried
SEEN = (FIT, MORE, SPENT, SPENT_2)
HARDEST, EASIEST = 0.9, 4.4  # in separation, of what may be assumed where nobody says it
LARGE_TABLE = "adult"
KINDS, CURVES = ("grey", "colour", "table"), ("grey first", "grey answers", "colour first", "colour answers", "table")
ROUGH = 8.0  # points: errors above count in proportion, no longer squared
FIRMNESS = 0.6  # of what was thought before
ONE_SET = 2.0  # points: how far one set of thousands of records strays
# Before any case was made: logarithms of what is kept at best and of the level of noise, and how far they may go from there.
PRIOR = {"best": 0.7, "level": 80.0, "power": 1.0, "size": 0.05, "spread": 0.5, "classes": 0.0}
FIRM = {"best": 1.0, "level": 1.5, "power": 0.3, "size": 0.1, "spread": 0.07, "classes": 0.12}
PARAMETERS = (
    *(f"best {name}" for name in CURVES),
    *(f"level {name}" for name in CURVES),
    *("power first", "power answers", "power table", "size", "spread pictures", "classes first"),
)
# Kept results: file, data, records of a class, epsilon, synthetic records of a class, answers.
KEPT = (
    ("elixir-mnist-epsilon-0.2-cpu", "mnist", 6000, 0.2, 50, 500),
    ("elixir-mnist-epsilon-1-cpu", "mnist", 6000, 1.0, 50, 500),
    ("elixir-mnist-epsilon-10-cpu", "mnist", 6000, 10.0, 50, 500),
    ("elixir-mnist-epsilon-1-200-per-class-cpu", "mnist", 6000, 1.0, 200, 500),
    ("elixir-fashion-mnist-epsilon-0.2-cpu", "fashion-mnist", 6000, 0.2, 50, 500),
    ("elixir-fashion-mnist-epsilon-1-cpu", "fashion-mnist", 6000, 1.0, 50, 500),
    ("elixir-fashion-mnist-epsilon-10-cpu", "fashion-mnist", 6000, 10.0, 50, 500),
    ("elixir-fashion-mnist-epsilon-1-200-per-class-cpu", "fashion-mnist", 6000, 1.0, 200, 500),
    ("elixir-fashion-mnist-epsilon-10-200-per-class-cpu", "fashion-mnist", 6000, 10.0, 200, 500),
    ("ablation-first-set", "fashion-mnist", 6000, 1.0, 50, 0),
    ("forecast-digits-demo", "digits", 143.7, 1.0, 10, 0),
    ("elixir-cifar10-epsilon-0.2-cpu", "cifar10", 5000, 0.2, 50, 500),
    ("elixir-cifar10-epsilon-1-cpu", "cifar10", 5000, 1.0, 50, 500),
    ("elixir-cifar10-epsilon-10-cpu", "cifar10", 5000, 10.0, 50, 1000),
    ("elixir-cifar10-epsilon-1-200-per-class-cpu", "cifar10", 5000, 1.0, 200, 500),
    ("tables-mosaic-form-2-epsilon-0.2", "adult", 16_280, 0.2, 16_280, 0),
    ("tables-mosaic-form-2-epsilon-1", "adult", 16_280, 1.0, 16_280, 0),
    ("tables-mosaic-form-2-epsilon-10", "adult", 16_280, 10.0, 16_280, 0),
)
NUMBERS, WHOLE = (
    {"digits": 64, "mnist": 784, "fashion-mnist": 784, "cifar10": 3072, "adult": 108},
    (24_720 / 32_561, 7841 / 32_561),
)
# What a method is worth beside the default one, on MNIST at epsilon 1: kept results.
OTHERS = (
    ("ldpdc", "ldpdc-mnist-cpu"),
    ("dpmerf", "dpmerf-mnist-cpu"),
    ("datalens", "datalens-mnist-cpu"),
    ("gpate", "gpate-mnist-cpu"),
)
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    name: str
    facts: Facts
    accuracy: float
    held_out: bool
    data: str
    sets: tuple[float, ...]

    @cached_property
    def apart(self) -> float:
        """How far apart its real records lie."""
        assert self.facts.real_accuracy is not None
        return separation_of(min(self.facts.real_accuracy, BEST), self.facts.all_shares)

    @cached_property
    def unsaid(self) -> Facts:
        return replace(self.facts, real_accuracy=None)

    @cached_property
    def chance(self) -> float:
        return accuracy_of(0.0, self.facts.all_shares)

    @property
    def unsure(self) -> float:
        """The standard error of its accuracy."""
        strays = statistics.stdev(self.sets) if len(self.sets) > 1 else ONE_SET
        return math.sqrt((strays**2 + 1) / len(self.sets))

    def covered(self, low: float, high: float) -> float:
        """The share of its sets between two accuracies; one that does worse than guessing counts as guessing."""
        return statistics.fmean(low - 0.05 <= max(each, self.chance) <= high + 0.05 for each in self.sets)


def points(parts: Sequence[str] = (*SEEN, HELD_OUT)) -> list[Point]:
    found = []
    for part in parts:
        path = RESULTS / f"forecast-cases-{part}.json"
        found += [_case(case) for case in (json.loads(path.read_text()) if path.exists() else [])]
    real = json.loads((RESULTS / "forecast-real.json").read_text())["accuracy"]
    real["adult"] = _accuracy("tables-real")  # with the shares that its classes have
    for name, data, each, epsilon, size, answers in KEPT:
        kind = {"cifar10": "colour", "adult": "table"}.get(data, "grey")
        facts = Facts(
            method="mosaic" if kind == "table" else "elixir", kind=kind, classes=2 if kind == "table" else 10,
            records=each, numbers=NUMBERS[data], epsilon=epsilon, size=size, answers=answers,
            shares=WHOLE if kind == "table" else (), real_accuracy=real[data],
        )  # fmt: skip
        found.append(Point(name, facts, _accuracy(name), False, data, (_accuracy(name),)))
    return found


def _case(case: dict[str, Any]) -> Point:
    classes, shape = len(case["classes"]), case["shape"]
    kind = "table" if len(shape) == 1 else "colour" if shape[0] > 1 else "grey"
    facts = Facts(
        method=case["method"], kind=kind, classes=classes, records=case["records"] / classes,
        numbers=int(np.prod(shape)), epsilon=case["epsilon"], size=case["per_class"] or case["records"] / classes,
        answers=case["answers"], real_accuracy=case["real_accuracy"],
    )  # fmt: skip
    name = f"{case['data']} {'x'.join(map(str, shape))}, {classes} classes of {facts.records:.0f}, epsilon {facts.epsilon:g}"
    return Point(
        f"{case['part']} {case['number']}: {name}", facts, case["accuracy"], case["part"] == HELD_OUT, case["data"],
        tuple(case["accuracies"]),
    )  # fmt: skip


def _accuracy(name: str) -> float:
    kept = json.loads((RESULTS / f"{name}.json").read_text())
    return float((kept["figures"]["xgboost_accuracy"] if "figures" in kept else kept["accuracy"]["convnet"])["mean"])


def curves_of(values: Numbers) -> tuple[dict[str, dict[str, float]], float]:
    """Pictures share most; that noise grows with the classes is a matter of the first sets, which no networks mend."""
    named = dict(zip(PARAMETERS, values.tolist(), strict=True))
    curves = {}
    for name in CURVES:
        way = name.partition(" ")[2] or name
        curves[name] = {
            "best": float(np.exp(named[f"best {name}"])),
            "level": float(np.exp(named[f"level {name}"])),
            "power": named[f"power {way}"],
            "spread": 0.0 if way == "table" else named["spread pictures"],
            "classes": named["classes first"] if way == "first" else 0.0,
        }
    return curves, named["size"]


def start() -> tuple[Numbers, Numbers]:
    names = [name.partition(" ")[0] for name in PARAMETERS]
    middle = [np.log(PRIOR[name]) if name in ("best", "level") else PRIOR[name] for name in names]
    return np.array(middle), np.array([FIRM[name] for name in names])


def fitted(seen: Sequence[Point]) -> Surface:
    """Curves by least squares in points of accuracy, robust, towards what was thought before; beside them the corrections."""
    middle, firm = start()
    true, unsure = (np.array([getattr(point, name) for point in seen]) for name in ("accuracy", "unsure"))
    sure = 1 / np.sqrt(1 + (unsure / ONE_SET) ** 2)

    def off(values: Numbers) -> Numbers:
        curves, size = curves_of(values)
        errors = np.array([_curve(point, point.apart, curves, size) for point in seen]) - true
        return np.concatenate([_softened(errors / ROUGH * sure), FIRMNESS * (values - middle) / firm])

    curves, size = rounded(*curves_of(np.asarray(least_squares(off, middle, diff_step=1e-3, max_nfev=40).x)))
    on_curve, chance = (
        np.array([_curve(point, point.apart, curves, size) for point in seen]),
        np.array([point.chance for point in seen]),
    )
    way, places = ways(seen), np.array([place(point.facts, point.apart) for point in seen])
    worth = weights(way, places, on_curve, chance, true, unsure)
    cases = np.round(np.column_stack([way, places, worth]), 3)
    return Surface(curves=curves, size=size, hardness=middles(seen, curves, size, cases), cases=cases)


def ways(seen: Sequence[Point]) -> Numbers:
    return np.array([float(WAYS.index(point.facts.way)) for point in seen])


def _curve(point: Point, apart: float, curves: dict[str, dict[str, float]], size: float) -> float:
    facts = point.facts
    kept = kept_share(facts, curves[facts.curve], size, np.array([facts.signal]))
    return float(accuracies_of(apart * kept, facts.all_shares)[0])


def _softened(error: Numbers) -> Numbers:
    """Its square is that of a small error, and grows in proportion to a large one."""
    found: Numbers = np.sign(error) * np.sqrt(2 * (np.sqrt(1 + error**2) - 1))
    return found


def rounded(curves: dict[str, dict[str, float]], size: float) -> tuple[dict[str, dict[str, float]], float]:
    """As they are shipped."""
    return {name: {key: round(value, 3) for key, value in each.items()} for name, each in curves.items()}, round(
        size, 3
    )


def middles(
    seen: Sequence[Point], curves: dict[str, dict[str, float]], size: float, cases: Numbers
) -> dict[str, float]:
    """Of each kind the hardness that is least off, in points, over its cases."""
    found = {}
    for kind in KINDS:
        own, tried = [point for point in seen if point.facts.kind == kind], np.arange(HARDEST, EASIEST, 0.1)
        losses = []
        for apart in tried:
            curve = np.array([_curve(point, apart, curves, size) for point in own])
            chance = np.array([point.chance for point in own])
            like = likeness(
                ways(own), np.array([place(point.facts, apart) for point in own]), cases[:, 0], cases[:, 1:5]
            )
            forecast = np.clip(curve + ease(curve, chance) * (like @ cases[:, 5]), chance, 100)
            losses.append(float(np.abs(forecast - [point.accuracy for point in own]).mean()))
        found[kind] = round(float(tried[int(np.argmin(losses))]), 2)
    return found


@dataclass(frozen=True)
class Forecaster:
    """A fit, and whether it is told what real records give."""

    surface: Surface
    is_said: bool
    kept: dict[str, float] = field(default_factory=dict)

    def _facts(self, point: Point) -> Facts:
        return point.facts if self.is_said else point.unsaid

    def __call__(self, point: Point) -> float:
        """Per cent."""
        return self.surface.accuracy(self._facts(point))

    def off(self, point: Point) -> float:
        return self(point) - point.accuracy

    def interval(self, point: Point, margin: dict[str, float]) -> tuple[float, float]:
        if point.name not in self.kept:
            self.kept[point.name] = self.surface.moved(self._facts(point))
        moved = self.kept[point.name]
        low, high = (self.surface.at(self._facts(point), moved, margin, doubt) for doubt in (-1.0, 1.0))
        return low, high


def margins(seen: Sequence[Point], by: Sequence[Forecaster]) -> dict[str, dict[str, float]]:
    """Of each kind the narrowest that hold enough of its sets. by: forecasts that have not seen the point."""
    found = {}
    for kind in KINDS:
        own = [(point, each) for point, each in zip(seen, by, strict=True) if point.facts.kind == kind]
        best = math.inf
        for louder in LOUDER:
            for larger in LARGER:
                margin = {"signal": round(float(louder), 2), "share": round(float(larger), 2)}
                ends = [each.interval(point, margin) for point, each in own]
                held = statistics.fmean(point.covered(*end) for (point, _), end in zip(own, ends, strict=True))
                width = statistics.fmean(high - low for low, high in ends)
                if held >= COVERED and width < best:
                    best, found[kind] = width, margin
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--unscored", action="store_true", help="leave the held-out cases alone")
    options.add_argument(
        "--score", action="store_true", help="score the held-out cases by what is shipped; fit nothing"
    )
    asked = options.parse_args()
    result = scored() if asked.score else refitted((*SEEN,) if asked.unscored else (*SEEN, HELD_OUT))
    (RESULTS / "forecast-fit.json").write_text(json.dumps(result, indent=1) + "\n")
    state(result)
    print(json.dumps({name: result[name] for name in ("held_out", "each_left_out_in_turn", "seconds")}, indent=1))


def refitted(parts: Sequence[str]) -> dict[str, Any]:
    every = points(parts)
    seen, held = ([point for point in every if point.held_out is out] for out in (False, True))
    surface, alone = fitted(seen), left_out(seen)
    by = Forecaster(surface, True), Forecaster(surface, False)
    margin_said, margin = (margins(seen, [each[which] for each in alone]) for which in (0, 1))
    write(surface, margin, margin_said)
    return {
        "command": COMMAND,
        "held_out": {
            "real_accuracy_said": summary(held, [by[0]] * len(held), margin_said),
            "nothing_said": summary(held, [by[1]] * len(held), margin),
        },
        "each_left_out_in_turn": {
            "real_accuracy_said": summary(seen, [each[0] for each in alone], margin_said),
            "nothing_said": summary(seen, [each[1] for each in alone], margin),
        },
        "seconds": {part: times(part) for part in (HELD_OUT, *SEEN)},
        "cases": [listed(point, *by, margin_said, margin) for point in every],
    }


def scored() -> dict[str, Any]:
    """The kept result, with the held-out cases scored by what is shipped. Nothing is fitted, so nothing can follow them."""
    result: dict[str, Any] = json.loads((RESULTS / "forecast-fit.json").read_text())
    held = [point for point in points((HELD_OUT,)) if point.held_out]
    by = Forecaster(shipped(), True), Forecaster(shipped(), False)
    result["held_out"] = {
        "real_accuracy_said": summary(held, [by[0]] * len(held), MARGIN_SAID),
        "nothing_said": summary(held, [by[1]] * len(held), MARGIN),
    }
    result["seconds"][HELD_OUT] = times(HELD_OUT)
    others = [case for case in result["cases"] if not case["held_out"]]
    result["cases"] = [*others, *(listed(point, *by, MARGIN_SAID, MARGIN) for point in held)]
    return result


def listed(
    point: Point,
    said: Forecaster,
    unsaid: Forecaster,
    margin_said: dict[str, dict[str, float]],
    margin: dict[str, dict[str, float]],
) -> dict[str, Any]:
    kind = point.facts.kind
    return {
        "case": point.name,
        "held_out": point.held_out,
        "accuracy": round(point.accuracy, 2),
        "sets": len(point.sets),
        "real_accuracy": point.facts.real_accuracy,
        "forecast": round(unsaid(point), 2),
        "between": [round(end, 1) for end in unsaid.interval(point, margin[kind])],
        "forecast_where_real_accuracy_is_said": round(said(point), 2),
        "between_where_real_accuracy_is_said": [round(end, 1) for end in said.interval(point, margin_said[kind])],
    }


def left_out(seen: Sequence[Point]) -> list[tuple[Forecaster, Forecaster]]:
    """For each point the fits without it, of a table without its data set: where real accuracy is said, and where it is not."""
    kept: dict[tuple[str, ...], tuple[Forecaster, Forecaster]] = {}
    found = []
    for point in seen:
        whole = _is_table(point) and point.data != LARGE_TABLE
        out = tuple(other.name for other in seen if other is point or (whole and other.data == point.data))
        if out not in kept:
            others = [other for other in seen if other.name not in out]
            surface = fitted(others)
            kept[out] = Forecaster(surface, True), Forecaster(surface, False)
        found.append(kept[out])
    return found


def _is_table(point: Point) -> bool:
    return point.facts.kind == "table"


def summary(chosen: Sequence[Point], by: Sequence[Forecaster], margin: dict[str, dict[str, float]]) -> dict[str, Any]:
    if not chosen:
        return {"cases": 0}
    off = [abs(each.off(point)) for point, each in zip(chosen, by, strict=True)]
    ends = [each.interval(point, margin[point.facts.kind]) for point, each in zip(chosen, by, strict=True)]
    inside = [
        low - 0.05 <= max(point.accuracy, point.chance) <= high + 0.05
        for point, (low, high) in zip(chosen, ends, strict=True)
    ]
    sets = [point.covered(*end) for point, end in zip(chosen, ends, strict=True)]
    kinds = {
        kind: round(
            statistics.fmean(each for each, point in zip(off, chosen, strict=True) if point.facts.kind == kind), 2
        )
        for kind in KINDS
        if any(point.facts.kind == kind for point in chosen)
    }
    return {
        "cases": len(chosen), "mean_absolute_error": round(statistics.fmean(off), 2), "largest": round(max(off), 2),
        "by_kind": kinds, "within_margin": round(statistics.fmean(inside), 2),
        "sets_within_margin": round(statistics.fmean(sets), 2),
        "mean_width": round(statistics.fmean(high - low for low, high in ends), 1),
    }  # fmt: skip


def state(result: dict[str, Any]) -> None:
    """Write the table of errors into the page; what stands below it there is written by hand."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    head = (
        "| points of accuracy | cases | mean absolute error | largest | mean within the margin | single sets within it |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    rows = [
        f"| {words} | {each['cases']} | {each['mean_absolute_error']} | {each['largest']} | {each['within_margin']:.0%} | "
        f"{each['sets_within_margin']:.0%} |".replace("%", " %")
        for words, part, said in STATED
        if (each := result[part][said])["cases"]
    ]
    PAGE.write_text(before + "\n".join([BEGIN, head, *rows, END]) + after)


def times(part: str) -> dict[str, Any]:
    """Forecast over measured CPU seconds of a run, with those to start and to write, which are the same for all."""
    path = RESULTS / f"forecast-cases-{part}.json"
    ratios = [
        case["forecast_seconds"] / (START + statistics.fmean(case["seconds"]))
        for case in (json.loads(path.read_text()) if path.exists() else [])
    ]
    if not ratios:
        return {"cases": 0}
    within = sum(1 / 1.5 <= each <= 1.5 for each in ratios)
    return {
        "cases": len(ratios),
        "forecast_over_measured": {"least": round(min(ratios), 2), "most": round(max(ratios), 2)},
        "within_a_factor_of_1.5": within,
    }


def write(surface: Surface, margin: dict[str, dict[str, float]], margin_said: dict[str, dict[str, float]]) -> None:
    shares = (0.1,) * 10
    usual = separation_of(_accuracy("elixir-mnist-epsilon-1-cpu"), shares)
    methods = {("grey", "elixir"): 1.0, ("colour", "elixir"): 1.0, ("table", "mosaic"): 1.0}
    for method, name in OTHERS:
        worth = round(separation_of(_accuracy(name), shares) / usual, 2)
        methods["grey", method] = methods["colour", method] = worth
    lines = [
        f'"""What `{COMMAND}` has fitted; its error is in benchmarks/results/forecast-fit.json."""\n',
        "# Of the distance between classes what is kept at best; level and power of the noise, and how that grows.",
        f"CURVES: dict[str, dict[str, float]] = {json.dumps(surface.curves, indent=4)}",
        "# The power of the set's size.",
        f"SIZE = {surface.size}",
        "# How far apart classes are taken to lie where nobody says what real records give.",
        f"HARDNESS: dict[str, float] = {json.dumps(surface.hardness)}",
        "# What eight of ten sets lie within, in logarithms of the signal and in shares of the distance: nothing said, or said.",
        f"MARGIN: dict[str, dict[str, float]] = {json.dumps(margin, indent=4)}",
        f"MARGIN_SAID: dict[str, dict[str, float]] = {json.dumps(margin_said, indent=4)}",
        "# Of (kind, method): the share of the distance that the default one keeps.",
        "METHODS: dict[tuple[str, str], float] = {",
        *(f"    {key!r}: {value},".replace("'", '"') for key, value in methods.items()),
        "}",
        "# Of each scored case: its way, its place among others (surface.py) and what it is worth to them, in points.",
        "CASES: tuple[tuple[float, ...], ...] = (",
        *(f"    {tuple(row)}," for row in surface.cases.tolist()),
        ")",
    ]
    FITTED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
