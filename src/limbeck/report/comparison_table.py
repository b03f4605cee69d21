"""The page of a comparison: methods down, models across, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from limbeck.privacy.unit import adjacency_and_unit


def models_of(result: Mapping[str, Any]) -> list[str]:
    """Every model that scored some set, in the order in which they were first met."""
    return list(dict.fromkeys(model for row in result["methods"] for model in row["accuracy"]))


def comparison_page(result: Mapping[str, Any]) -> str:
    price = result["price"]
    lines = [f"# {_plain(result['dataset'])}: {len(result['methods'])} methods beside one another", ""]
    if "edition" in result:
        lines += ["**OWNER'S EDITION**: scored on private records. Never share it.", ""]
    lines += [
        f"Accuracy on `{_plain(result['test'])}` in per cent: mean ± standard deviation over released sets. Of a set with "
        "several networks their mean counts. Seconds are those of making one set, without scoring it.",
        "",
        *_table([_head(result), *(_cells(row, models_of(result)) for row in result["methods"])]),
        "",
        *size_sentences(result),
        f"{price['sets']} sets were booked; their prices add up to epsilon {price['epsilon']} and delta {price['delta']}, "
        f"{adjacency_and_unit(price['adjacency'], price['unit'])}. That much is learnt by whoever sees all of them, not the "
        "epsilon of one row.",
    ]
    return "\n".join(lines) + "\n"


def _head(result: Mapping[str, Any]) -> list[str]:
    return ["method", *models_of(result), "epsilon of a set", "seconds", "sets"]


def _cells(row: Mapping[str, Any], models: Sequence[str]) -> list[str]:
    scores = [score_words(row["accuracy"].get(model)) for model in models]
    return [row["method"], *scores, str(row["epsilon"]), seconds_words(row["seconds"]), str(row["sets"])]


def size_sentences(result: Mapping[str, Any]) -> list[str]:
    """Which methods' pictures were averaged down before models saw them."""
    smaller = [f"{_plain(row['method'])} ({row['size']})" for row in result["methods"] if row.get("size")]
    if not smaller:
        return []
    return [
        f"Seen averaged down, set and test records alike, to so many pixels of the longer side: {', '.join(smaller)}.",
        "",
    ]


def score_words(score: Mapping[str, Any] | None, sign: str = "±") -> str:
    """
    >>> score_words({"mean": 81.25, "std": None}), score_words({"mean": 81.25, "std": 0.5}), score_words(None)
    ('81.25', '81.25 ± 0.50', '-')
    """
    if score is None or score["mean"] is None:
        return "-"
    return f"{score['mean']:.2f}" + ("" if score["std"] is None else f" {sign} {score['std']:.2f}")


def seconds_words(seconds: float | None) -> str:
    """Unknown where every set was made in several goes."""
    return "-" if seconds is None else f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(_plain(cell) for cell in row)} |" for row in rows]
    return [lines[0], f"| --- |{' ---: |' * (len(rows[0]) - 1)}", *lines[1:]]


def _plain(text: str) -> str:
    """Names of an owner's data may hold anything; in a table they stay one cell of one line."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")
