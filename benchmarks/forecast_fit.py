"""Fits the forecast of usefulness to scored public sets, and says how far it is off on those that it has not seen.

    python -m benchmarks.forecast_fit        writes results/forecast-fit.json and src/limbeck/forecast/fitted.py

Points are the small cases of `benchmarks.forecast_cases` and kept results of whole public sets. The curves are fitted with every
case's own hardness, from what a usual model reaches on its real records; what is assumed where nobody says it are middles of
those. All of this sees the cases of the part "fit" and the kept results alone; those of "held-out" are only scored. Without them
it also says what is off if every case in turn is left out of the fit. Margins are what 80 % of the fitted points lie within.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.forecast_cases import FIT, HELD_OUT
from limbeck.forecast.duration import START
from limbeck.forecast.separation import accuracy_of, separation_of
from limbeck.forecast.usefulness import BEST, Facts, kept_share

RESULTS = Path(__file__).parent / "results"
FITTED = Path(__file__).parents[1] / "src" / "limbeck" / "forecast" / "fitted.py"
COMMAND = "python -m benchmarks.forecast_fit"
COVERED = 0.8
KINDS, CURVES = ("grey", "colour", "table"), ("grey first", "grey answers", "colour first", "colour answers", "table")
ROUGH = 8.0  # points: errors above count in proportion, no longer squared
# Before any case was made: logarithms of what is kept at best and of the level of noise, and how far they may go from there.
PRIOR = {"best": 0.7, "level": 80.0, "power": 1.0, "size": 0.05, "spread": 0.5, "classes": 0.0}
FIRM = {"best": 1.0, "level": 1.5, "power": 0.3, "size": 0.1, "spread": 0.07, "classes": 0.12}
PARAMETERS = (
    *(f"best {name}" for name in CURVES),
    *(f"level {name}" for name in CURVES),
    *("power first", "power answers", "power table", "size", "spread pictures", "spread table", "classes first"),
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
    ("tables-mosaic-epsilon-0.2", "adult", 16_280, 0.2, 16_280, 0),
    ("tables-mosaic-epsilon-1", "adult", 16_280, 1.0, 16_280, 0),
    ("tables-mosaic-epsilon-10", "adult", 16_280, 10.0, 16_280, 0),
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

    @property
    def apart(self) -> float:
        """How far apart its real records lie."""
        assert self.facts.real_accuracy is not None
        return separation_of(min(self.facts.real_accuracy, BEST), self.facts.all_shares)

    def off(self, apart: float) -> float:
        return accuracy_of(max(apart, 0.0), self.facts.all_shares) - self.accuracy


def points() -> list[Point]:
    found = []
    for part in (FIT, HELD_OUT):
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
        found.append(Point(name, facts, _accuracy(name), False))
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
    return Point(f"{case['part']} {case['number']}: {name}", facts, case["accuracy"], case["part"] == HELD_OUT)


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
            "spread": named[f"spread {'table' if way == 'table' else 'pictures'}"],
            "classes": named["classes first"] if way == "first" else 0.0,
        }
    return curves, named["size"]


def start() -> tuple[Numbers, Numbers]:
    names = [name.partition(" ")[0] for name in PARAMETERS]
    middle = [np.log(PRIOR[name]) if name in ("best", "level") else PRIOR[name] for name in names]
    return np.array(middle), np.array([FIRM[name] for name in names])


def fitted(seen: Sequence[Point]) -> Numbers:
    """Least squares in points of accuracy, robust, towards what was thought before."""
    middle, firm = start()
    apart = [point.apart for point in seen]

    def off(values: Numbers) -> Numbers:
        curves, size = curves_of(values)
        each = [
            _softened(point.off(real * kept_share(point.facts, curves[point.facts.curve], size)) / ROUGH)
            for point, real in zip(seen, apart, strict=True)
        ]
        return np.concatenate([each, 0.3 * (values - middle) / firm])

    return np.asarray(least_squares(off, middle, diff_step=1e-3).x)


def _softened(error: float) -> float:
    """Its square is that of a small error, and grows in proportion to a large one."""
    return float(np.sign(error) * np.sqrt(2 * (np.sqrt(1 + error**2) - 1)))


def forecast(point: Point, values: Numbers, hardness: dict[str, float] | None = None) -> float:
    """How far apart. hardness: of each kind, where what real records give is not said."""
    curves, size = curves_of(values)
    real = point.apart if hardness is None else hardness[point.facts.kind]
    return real * kept_share(point.facts, curves[point.facts.curve], size)


def middles(seen: Sequence[Point], values: Numbers) -> dict[str, float]:
    """Of each kind the hardness that is least off, in points, over its cases."""
    found = {}
    for kind in KINDS:
        own, tried = [point for point in seen if point.facts.kind == kind], np.linspace(0.5, 5, 91)
        losses = [
            statistics.fmean(abs(point.off(forecast(point, values, {kind: float(each)}))) for point in own)
            for each in tried
        ]
        found[kind] = round(float(tried[int(np.argmin(losses))]), 2)
    return found


def margins(seen: Sequence[Point], apart: Sequence[float]) -> dict[str, float]:
    """Of each kind, in separation; what lies beyond all that an accuracy of a few hundred tests can tell counts no more."""
    found = {}
    for kind in KINDS:
        needed = [_needed(point, each) for point, each in zip(seen, apart, strict=True) if point.facts.kind == kind]
        found[kind] = round(float(np.quantile(needed, COVERED)), 2)
    return found


def _needed(point: Point, apart: float) -> float:
    """The margin around a forecast that just holds the accuracy that was measured."""
    shares = point.facts.all_shares
    return abs(separation_of(min(point.accuracy, BEST), shares) - min(apart, separation_of(BEST, shares)))


def main() -> None:
    every = points()
    seen = [point for point in every if not point.held_out]
    values = fitted(seen)
    hardness = middles(seen, values)
    alone = [_left_out(seen, index) for index in range(len(seen))]
    said = {point.name: forecast(point, values) for point in every}
    unsaid = {point.name: forecast(point, values, hardness) for point in every}
    margin_said = margins(seen, [each[0] for each in alone])
    margin = margins(seen, [each[1] for each in alone])
    held = [point for point in every if point.held_out]
    result: dict[str, Any] = {
        "command": COMMAND,
        "held_out": {
            "real_accuracy_said": summary(held, [said[point.name] for point in held], margin_said),
            "nothing_said": summary(held, [unsaid[point.name] for point in held], margin),
        },
        "each_left_out_in_turn": {
            "real_accuracy_said": summary(seen, [each[0] for each in alone], margin_said),
            "nothing_said": summary(seen, [each[1] for each in alone], margin),
        },
        "seconds": {part: times(part) for part in (HELD_OUT, FIT)},
        "cases": [
            {
                "case": point.name,
                "held_out": point.held_out,
                "accuracy": round(point.accuracy, 2),
                "real_accuracy": point.facts.real_accuracy,
                "forecast": round(point.accuracy + point.off(unsaid[point.name]), 2),
                "forecast_where_real_accuracy_is_said": round(point.accuracy + point.off(said[point.name]), 2),
            }
            for point in every
        ],
    }
    (RESULTS / "forecast-fit.json").write_text(json.dumps(result, indent=1) + "\n")
    curves, size = curves_of(values)
    write(curves, size, hardness, margin, margin_said)
    shown = {name: result[name] for name in ("held_out", "each_left_out_in_turn")}
    print(json.dumps({**shown, "curves": curves, "size": size, "hardness": hardness}, indent=1))


def _left_out(seen: Sequence[Point], index: int) -> tuple[float, float]:
    others = [*seen[:index], *seen[index + 1 :]]
    values = fitted(others)
    return forecast(seen[index], values), forecast(seen[index], values, middles(others, values))


def summary(chosen: Sequence[Point], apart: Sequence[float], margin: dict[str, float]) -> dict[str, Any]:
    if not chosen:
        return {"cases": 0}
    off = [abs(point.off(each)) for point, each in zip(chosen, apart, strict=True)]
    inside = [_needed(point, each) <= margin[point.facts.kind] for point, each in zip(chosen, apart, strict=True)]
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
    }  # fmt: skip


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


def write(
    curves: dict[str, dict[str, float]],
    size: float,
    hardness: dict[str, float],
    margin: dict[str, float],
    margin_said: dict[str, float],
) -> None:
    rounded = {name: {key: round(value, 3) for key, value in each.items()} for name, each in curves.items()}
    shares = (0.1,) * 10
    usual = separation_of(_accuracy("elixir-mnist-epsilon-1-cpu"), shares)
    methods = {("grey", "elixir"): 1.0, ("colour", "elixir"): 1.0, ("table", "mosaic"): 1.0}
    for method, name in OTHERS:
        worth = round(separation_of(_accuracy(name), shares) / usual, 2)
        methods["grey", method] = methods["colour", method] = worth
    lines = [
        f'"""What `{COMMAND}` has fitted; its error is in benchmarks/results/forecast-fit.json."""\n',
        "# Of the distance between classes what is kept at best; level and power of the noise, and how that grows.",
        f"CURVES: dict[str, dict[str, float]] = {json.dumps(rounded, indent=4)}",
        "# The power of the set's size.",
        f"SIZE = {round(size, 3)}",
        "# How far apart classes are taken to lie where nobody says what real records give.",
        f"HARDNESS: dict[str, float] = {json.dumps(hardness)}",
        "# What eight of ten cases lie within: where nothing is said, and where it is.",
        f"MARGIN: dict[str, float] = {json.dumps(margin)}",
        f"MARGIN_SAID: dict[str, float] = {json.dumps(margin_said)}",
        "# Of (kind, method): the share of the distance that the default one keeps.",
        "METHODS: dict[tuple[str, str], float] = {",
        *(f"    {key!r}: {value},".replace("'", '"') for key, value in methods.items()),
        "}",
    ]
    FITTED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
