"""Kept results: one JSON file for each run of a table at each scale. The page of results is made of these and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.papers.run import DELTA, FORMAT, commands
from benchmarks.papers.scales import scoring_at, settings_at
from benchmarks.papers.spec import REAL, Run, Table
from limbeck.data.named import named_set
from limbeck.errors import BadInput, DataUnreadable, OutputFault
from limbeck.files import write_atomic
from limbeck.methods import method_named
from limbeck.release.editions import is_owners
from limbeck.runs.planning import make_plan

Result = dict[str, Any]


def path_of(folder: Path, table: Table, run: Run, scale: str) -> Path:
    return folder / table.name / f"{run.name.replace('/', '-')}.{scale}.json"


def write_result(folder: Path, table: Table, run: Run, scale: str, result: Result) -> Path:
    path = path_of(folder, table, run, scale)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFault(f"The folder {path.parent} for the results cannot be made: {error.strerror}.") from None
    write_atomic(path, (json.dumps(result, indent=1, allow_nan=False) + "\n").encode())
    return path


def read_result(folder: Path, table: Table, run: Run, scale: str) -> Result | None:
    """The kept result, or None. A file that belongs elsewhere is refused: it would put a wrong figure on the page."""
    path = path_of(folder, table, run, scale)
    if not path.exists():
        return None
    result = _read(path)
    if (result.get("format"), result.get("table"), result.get("run"), result.get("scale")) != (
        FORMAT,
        table.name,
        run.name,
        scale,
    ):
        raise DataUnreadable(f"{path} is not the result of {table.name} {run.name} at scale {scale}; remove it.")
    return result


def _read(path: Path) -> Result:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataUnreadable(f"{path} cannot be opened: {error.strerror}.") from None
    except ValueError:
        raise DataUnreadable(f"{path} cannot be read as JSON.") from None
    if not isinstance(result, dict):
        raise DataUnreadable(f"{path} does not hold a result.")
    return result


def import_result(table: Table, run: Run, scale: str, path: Path) -> Result:
    """Take a figure from the result of an earlier `limbeck condense` and `evaluate`, or of another table, if these are what the
    run asks for.

    Guarantee: method, data, every setting that the file states, budget, models, protocol and number of networks are the run's.
    """
    found, scoring = _read(path), scoring_at(run, scale)
    if run.method == REAL or scoring.sets != 1:
        raise BadInput(
            f"{table.name} {run.name} at scale {scale} is not one released set, so no result can be taken for it."
        )
    schema = named_set(run.data).schema
    plan = make_plan(schema, method_named(run.method, settings_at(run, scale)), run.epsilon, DELTA)
    try:
        found |= _of_a_table(found)
        scored = found.get("scored_on") == run.data or any(f"--test {run.data} " in line for line in found["commands"])
        made = any(f"limbeck condense {run.data} --method {run.method} " in line for line in found["commands"])
        differences = [
            *_differences("settings", found["settings"], plan.settings),
            *_differences("accounting", {"delta": found["accounting"]["delta"]}, {"delta": DELTA}),
            *_differences(
                "evaluate",
                {name: found[name] for name in ("preset", "repeats", "labels")},
                {"preset": scoring.preset.name, "repeats": scoring.networks, "labels": "hard"},
            ),
        ]
        if is_owners(found):
            differences.append("it is marked as the owner's, so it was scored on private records")
        if not made or not scored:
            differences.append(f"it was made by '{'; '.join(found['commands'])}'")
        if abs(found["epsilon"] - plan.price.epsilon) > 0.01 * plan.price.epsilon:
            differences.append(f"epsilon is {found['epsilon']}, not {plan.price.epsilon}")
        differences += [f"it has no {model}" for model in run.models if model not in found["accuracy"]]
    except (KeyError, TypeError, ValueError):
        raise DataUnreadable(f"{path} is not the result of a set that was made and scored.") from None
    if differences:
        raise BadInput(f"{path} is not a result of {table.name} {run.name} at scale {scale}: {'; '.join(differences)}.")
    return {
        "format": FORMAT,
        "table": table.name,
        "run": run.name,
        "scale": scale,
        "commands": [*commands(table, run, scale), *found["commands"]],
        "imported_from": path.as_posix(),
        "settings_not_stated": sorted(set(plan.settings) - set(found["settings"])),
        "data": run.data,
        "method": run.method,
        "delta": DELTA,
        "settings": found["settings"],
        "epsilon": found["epsilon"],
        "adjacency": found["accounting"]["adjacency"],
        "accounting": found["accounting"],
        "preset": found["preset"],
        "sets": 1,
        "networks": found["repeats"],
        "accuracy": {model: found["accuracy"][model] for model in run.models},
        "condense_seconds": found.get("condense_seconds"),
        "evaluate_seconds": None,
        "created": None,
        "versions": found["versions"],
    }


def _of_a_table(found: Result) -> Result:
    """What `evaluate` would say of a table's own result. A table scores hard labels, on the test records of its data."""
    if found.get("format") != FORMAT or found.get("sets") != 1:
        return {}
    return {"repeats": found["networks"], "labels": "hard", "scored_on": found["data"]}


def _differences(what: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    return [
        f"{what} {name} is {value}, not {wanted.get(name, 'known')}"
        for name, value in found.items()
        if name not in wanted or wanted[name] != value
    ]
