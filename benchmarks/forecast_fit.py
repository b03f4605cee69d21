"""Fits the forecast of usefulness to scored public sets, and says how far it is off on those that it has not seen.

    python -m benchmarks.forecast_fit        writes results/forecast-fit.json and src/limbeck/forecast/fitted.py

Points are the small cases of `benchmarks.forecast_cases`, scored by a short protocol, which costs some accuracy and has a
coefficient of its own; and kept results of whole public sets, scored by the preset cpu. Held out are every third case, drawn
before any was made, and of the kept results epsilon 0.2, sets of 200 per class and Adult at 0.2 and 10. The margin is what 80 %
of the points that were held out, and no fewer of those that were fitted, lie within.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.forecast.usefulness import Facts, features

RESULTS = Path(__file__).parent / "results"
FITTED = Path(__file__).parents[1] / "src" / "limbeck" / "forecast" / "fitted.py"
RIDGE, COVERED, FARTHEST = 1.0, 0.8, 4.0
LEAST = -2.0  # on the logit: what is closer to chance is told apart by nothing but the luck of one network
PRIOR = {
    "signal": 0.8,
    "classes": -0.5,
    "size": 0.2,
    "answers": 1.0,
    "short": -0.4,
}  # before any case was made
NAMES = ("one", "signal", "classes", "size", "answers", "signal of answers", "short")
COMMAND = "python -m benchmarks.forecast_fit"
FIRM = 1000.0
# Kept results: file, kind, records of a class, numbers, epsilon, synthetic records of a class, answers, held out.
KEPT = (
    ("elixir-mnist-epsilon-1-cpu", "grey", 6000, 784, 1.0, 50, 500, False),
    ("elixir-mnist-epsilon-10-cpu", "grey", 6000, 784, 10.0, 50, 500, False),
    ("elixir-mnist-epsilon-0.2-cpu", "grey", 6000, 784, 0.2, 50, 500, True),
    ("elixir-mnist-epsilon-1-200-per-class-cpu", "grey", 6000, 784, 1.0, 200, 500, True),
    ("elixir-fashion-mnist-epsilon-1-cpu", "grey", 6000, 784, 1.0, 50, 500, False),
    ("elixir-fashion-mnist-epsilon-10-cpu", "grey", 6000, 784, 10.0, 50, 500, False),
    ("elixir-fashion-mnist-epsilon-0.2-cpu", "grey", 6000, 784, 0.2, 50, 500, True),
    ("elixir-fashion-mnist-epsilon-1-200-per-class-cpu", "grey", 6000, 784, 1.0, 200, 500, True),
    ("elixir-fashion-mnist-epsilon-10-200-per-class-cpu", "grey", 6000, 784, 10.0, 200, 500, True),
    ("ablation-first-set", "grey", 6000, 784, 1.0, 50, 0, False),
    ("elixir-cifar10-epsilon-1-cpu", "colour", 5000, 3072, 1.0, 50, 500, False),
    ("elixir-cifar10-epsilon-10-cpu", "colour", 5000, 3072, 10.0, 50, 1000, False),
    ("elixir-cifar10-epsilon-0.2-cpu", "colour", 5000, 3072, 0.2, 50, 500, True),
    ("elixir-cifar10-epsilon-1-200-per-class-cpu", "colour", 5000, 3072, 1.0, 200, 500, True),
    ("tables-mosaic-epsilon-1", "table", 16_280, 108, 1.0, 16_280, 0, False),
    ("tables-mosaic-epsilon-0.2", "table", 16_280, 108, 0.2, 16_280, 0, True),
    ("tables-mosaic-epsilon-10", "table", 16_280, 108, 10.0, 16_280, 0, True),
)
# What a method is worth beside the default one, on MNIST at epsilon 1: kept results.
OTHERS = (
    ("ldpdc", "ldpdc-mnist-cpu"),
    ("dpmerf", "dpmerf-mnist-cpu"),
    ("datalens", "datalens-mnist-cpu"),
    ("gpate", "gpate-mnist-cpu"),
)


def points() -> list[dict[str, Any]]:
    found = []
    for path in sorted(RESULTS.glob("forecast-cases-*.json")):
        for case in json.loads(path.read_text()):
            kind = "table" if len(case["shape"]) == 1 else "colour" if case["shape"][0] > 1 else "grey"
            classes, each = len(case["classes"]), case["records"] / len(case["classes"])
            facts = Facts(
                method="mosaic" if kind == "table" else "elixir", kind=kind, classes=classes, records=each,
                numbers=int(np.prod(case["shape"])), epsilon=case["epsilon"], size=case["per_class"] or each,
            )  # fmt: skip
            name = f"{case['data']}, {classes} classes of {each:.0f}, epsilon {case['epsilon']:g}"
            found.append(_point(name, facts, case["accuracy"], case["held_out"], kind != "table"))
    for name, kind, each, numbers, epsilon, size, answers, held_out in KEPT:
        classes = 2 if kind == "table" else 10
        facts = Facts(
            method="mosaic" if kind == "table" else "elixir", kind=kind, classes=classes, records=each, numbers=numbers,
            epsilon=epsilon, size=size, answers=answers,
        )  # fmt: skip
        found.append(_point(name, facts, _accuracy(name), held_out, False))
    return found


def _accuracy(name: str) -> float:
    kept = json.loads((RESULTS / f"{name}.json").read_text())
    return float((kept["figures"]["xgboost_accuracy"] if "figures" in kept else kept["accuracy"]["convnet"])["mean"])


def _point(name: str, facts: Facts, accuracy: float, held_out: bool, short: bool) -> dict[str, Any]:
    return {"name": name, "facts": facts, "accuracy": accuracy, "held_out": held_out, "short": short}


def row(point: dict[str, Any]) -> NDArray[np.float64]:
    values = {**features(point["facts"]), "short": float(point["short"])}
    return np.array([values[name] for name in NAMES])


def both(point: dict[str, Any]) -> NDArray[np.float64]:
    """Images share their slopes; colour has a constant and a slope of its own beside them."""
    own, colour = row(point), float(point["facts"].kind == "colour")
    return np.concatenate([own, [colour, colour * own[1]]])


def combined(weights: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
    found = weights[: len(NAMES)].copy()
    if kind == "colour":
        found[:2] += weights[len(NAMES) :]
    return found


def logit(accuracy: float, classes: int) -> float:
    share = (accuracy - 100 / classes) / (100 - 100 / classes)
    share = min(max(share, 1e-3), 1 - 1e-3)
    return float(np.clip(np.log(share / (1 - share)), LEAST, FARTHEST))


def fitted(chosen: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Ridge regression towards what was thought before; the constants are free."""
    x = np.array([both(point) for point in chosen])
    y = np.array([logit(point["accuracy"], point["facts"].classes) for point in chosen])
    penalty = RIDGE * np.eye(len(NAMES) + 2)
    penalty[3, 3] = FIRM  # so few points tell nothing of it, and a larger set is never worse
    penalty[0, 0] = penalty[-2, -2] = 1e-6
    prior = np.array([PRIOR.get(name, 0.0) for name in (*NAMES, "colour", "colour signal")])
    return np.asarray(np.linalg.solve(x.T @ x + penalty, x.T @ y + penalty @ prior))


def forecast(point: dict[str, Any], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Logit and accuracy."""
    line = float(row(point) @ weights)
    chance = 100 / point["facts"].classes
    return line, chance + (100 - chance) / (1 + float(np.exp(-line)))


def main() -> None:
    every, coefficients, margins, cases = points(), {}, {}, []
    for kind in ("grey", "colour", "table"):
        own = [point for point in every if point["facts"].kind == kind]
        seen = [
            point for point in every if not point["held_out"] and (point["facts"].kind == "table") == (kind == "table")
        ]
        weights = combined(fitted(seen), kind)
        apart = []
        for point in own:
            line, accuracy = forecast(point, weights)
            off = abs(line - logit(point["accuracy"], point["facts"].classes))
            apart.append((off, point["held_out"]))
            cases.append(
                {
                    "case": point["name"], "held_out": point["held_out"], "accuracy": round(point["accuracy"], 2),
                    "forecast": round(accuracy, 2), "off": off, "kind": kind,
                }
            )  # fmt: skip
        parts = ([off for off, held in apart if held], [off for off, held in apart if not held])
        margins[kind] = round(max(float(np.quantile(part, COVERED)) for part in parts if part), 2)
        coefficients[kind] = {name: round(float(value), 4) for name, value in zip(NAMES, weights, strict=True)}
    margins["colour"] = max(margins["grey"], margins["colour"])  # of colour there are too few to trust less
    methods = {("grey", "elixir"): 0.0, ("colour", "elixir"): 0.0, ("table", "mosaic"): 0.0}
    usual = logit(_accuracy("elixir-mnist-epsilon-1-cpu"), 10)
    for method, name in OTHERS:
        methods["grey", method] = methods["colour", method] = round(logit(_accuracy(name), 10) - usual, 2)
    result: dict[str, Any] = {
        "command": COMMAND,
        "held_out": summary(cases, margins, True),
        "fitted": summary(cases, margins, False),
    }
    result |= {"margins": margins, "cases": [{**case, "off": round(case["off"], 3)} for case in cases]}
    (RESULTS / "forecast-fit.json").write_text(json.dumps(result, indent=1) + "\n")
    short = {
        kind: {name: value for name, value in each.items() if name != "short"} for kind, each in coefficients.items()
    }
    FITTED.write_text(
        f'"""What `{COMMAND}` has fitted; its error is in benchmarks/results/forecast-fit.json."""\n\n'
        f"COEFFICIENTS: dict[str, dict[str, float]] = {json.dumps(short, indent=4)}\n"
        "# On the logit: what eight of ten cases lie within.\n"
        f"MARGIN: dict[str, float] = {json.dumps(margins)}\n"
        "# Of (kind, method), on the logit beside the default one.\n"
        "METHODS: dict[tuple[str, str], float] = {\n"
        + "".join(f"    {key!r}: {value},\n" for key, value in methods.items())
        + "}\n"
    )
    print(
        json.dumps({"held_out": result["held_out"], "fitted": result["fitted"], "coefficients": coefficients}, indent=1)
    )


def summary(cases: list[dict[str, Any]], margins: dict[str, float], held_out: bool) -> dict[str, Any]:
    chosen = [case for case in cases if case["held_out"] == held_out]
    off = [abs(case["accuracy"] - case["forecast"]) for case in chosen]
    inside = [case["off"] <= margins[case["kind"]] for case in chosen]
    return {
        "cases": len(chosen),
        "mean_absolute_error": round(float(np.mean(off)), 2),
        "largest": round(max(off), 2),
        "within_margin": round(float(np.mean(inside)), 2),
    }


if __name__ == "__main__":
    main()
