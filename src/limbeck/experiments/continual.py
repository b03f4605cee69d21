"""Private continual learning: the classes come in stages, and every stage's records belong to another party.

Chen, Kerkouche and Fritz, "Private Set Generation with Discriminative Information", Section 5.2 and supplement C.5. A method
that makes sets releases one per stage, and a fresh classifier is trained on all sets so far. A method that trains a model
hands it on: every stage goes on from the model of the stage before.

A party is a data set of its own for the ledger (mnist/stage-1, ...), with a vault, a plan and a budget of its own, which the
owner sets beforehand: a record of a stage is also one of the whole set, and what both spend adds up for it. A record
has one class and so belongs to one party: adding or removing it changes what one stage asks, and everything else only
works on released results. So all stages together cost what the dearest stage costs (parallel composition). Several
methods in one comparison read the same records, so the prices of the methods do add up.

    OUT/course.json               what was asked; another course is refused in the same folder
    OUT/METHOD/stage-1/           the release of a stage
    OUT/METHOD/stage-1.json       its scores
    OUT/continual.json, .png      the curves
Whoever starts the same course again goes on where it stopped: finished stages are kept.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from limbeck.data.parts import part_text
from limbeck.errors import BadInput, BudgetRefused, OutputFault, RunConflict
from limbeck.evaluate.accuracy import std_of
from limbeck.evaluate.models import NETWORKS, choose
from limbeck.evaluate.presets import preset_named
from limbeck.evaluate.protocol import EvaluationProtocol, require_repeats
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.stages import StageTests, score_model, score_sets, stage_tests
from limbeck.files import as_json, write_atomic
from limbeck.methods import METHODS, method_named
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum, require_positive
from limbeck.privacy.schema import Schema
from limbeck.progress import Reporter
from limbeck.release import certificate as certificates
from limbeck.release.destination import is_unfinished, require_outside
from limbeck.release.model import read_model
from limbeck.runs.condense import Request, condense, make_plan, resume
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.sums import budget_command, check_fits, rounded_up, total

DP_SGD_EPOCHS = 10  # of the supplement, to balance learning against forgetting


@dataclass(frozen=True, kw_only=True)
class Course:
    """A comparison: which methods, with which settings each, in how many stages, and how it is scored."""

    request: Request
    epsilon: float
    delta: float
    methods: dict[str, dict[str, Any]]
    stages: int = 5
    model: str = "convnet"
    preset: str = "cpu"
    repeats: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        if not self.methods:
            raise BadInput("Name at least one method, with commas between them.", "limbeck methods")
        require_repeats(self.repeats)
        for name, settings in self.methods.items():
            if not method_named(name, settings).private:
                raise BadInput(f"Method '{name}' is not private, so it is no choice here.", "limbeck methods")

    def described(self) -> dict[str, Any]:
        """What a folder of this course is compared with."""
        return {
            "data": self.request.data,
            "insecure_seed": self.request.insecure_seed,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "methods": self.methods,
            "stages": self.stages,
            "model": self.model,
            "preset": self.preset,
            "repeats": self.repeats,
            "seed": self.seed,
        }


def stage_classes(classes: int, stages: int) -> tuple[tuple[int, ...], ...]:
    """The places of the classes of each stage.

    >>> stage_classes(6, 3)
    ((0, 1), (2, 3), (4, 5))
    """
    each, left = divmod(classes, max(stages, 1))
    if stages < 1 or left or each < 2:
        raise BadInput(f"{classes} classes cannot be shared out to {stages} stages of equally many, at least 2 each.")
    return tuple(tuple(range(start, start + each)) for start in range(0, classes, each))


def run_course(course: Course, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Run every stage of every method that is not finished yet, score them and draw the curves."""
    from limbeck.report.stage_figure import stage_curves  # the plotting library takes a second

    require_outside(out)
    claimed = _is_claimed(out, course)
    preset_named(course.preset)  # refuses an unknown one before anything is paid
    schema = course.request.source().schema
    places = stage_classes(len(schema.classes), course.stages)
    if choose([course.model], schema.shape)[0].model not in NETWORKS:
        raise BadInput(
            f"Model '{course.model}' is no network that is trained here; choose one of {', '.join(NETWORKS)}."
        )
    test = course.request.source("test")
    if test.schema.classes != schema.classes:
        raise BadInput("The test records have other classes than the training records; they must be the same.")
    test.prepare()  # a set that cannot be had is found before anything is paid
    if not claimed:
        _claim(out, course, places)
    tests, whose = stage_tests(test, places), Provenance.of(test=test).to_dict()
    runs: dict[str, list[list[list[float]]]] = {}
    for name in course.methods:
        folders: list[Path] = []
        runs[name] = []
        for stage in range(course.stages):
            folders.append(out / name / f"stage-{stage + 1}")
            reporter.say(
                f"{name}, stage {stage + 1} of {course.stages}: classes {', '.join(_names(schema, places[stage]))}"
            )
            _release(course, name, places, stage, folders, reporter)
            runs[name].append(_scores(course, name, folders, tests, whose))
            reporter.say(f"  accuracy {statistics.fmean(map(statistics.fmean, runs[name][-1])):.2f} %")
    result = {**_result(course, out, schema, places, runs), **whose}
    write_atomic(out / "continual.json", as_json(result))
    write_atomic(out / "continual.png", stage_curves(result))
    return result


def _names(schema: Schema, places: Sequence[int]) -> list[str]:
    return [schema.classes[place] for place in places]


def _hands_on(name: str) -> bool:
    """Whether the method trains a model, which goes from party to party."""
    return METHODS[name].makes == "model"


def _request(course: Course, name: str, places: tuple[tuple[int, ...], ...], stage: int) -> Request:
    """A model must know all classes from the start; a set has the classes of its stage."""
    part = part_text(f"stage-{stage + 1}", places[stage], keep_all=_hands_on(name))
    return replace(course.request, part=part)


def _plan(
    course: Course, name: str, places: tuple[tuple[int, ...], ...], stage: int, start: Path | None = None
) -> Plan:
    schema = _request(course, name, places, stage).source().schema
    settings = dict(course.methods[name])
    if name == "psg":
        settings = {"R": 200, **settings}
    if name == "dpsgd":
        query = method_named(name, settings).queries(schema, 1.0)[0]
        assert isinstance(query, ClippedSum)
        settings = {"T": max(1, round(DP_SGD_EPOCHS / query.rate[0])), **settings}
    if start is not None:
        settings["start"] = read_model(start).model.fingerprint()
    return make_plan(schema, method_named(name, settings), course.epsilon, course.delta)


def _is_claimed(out: Path, course: Course) -> bool:
    """Whether the folder holds this very course; one that holds anything else is refused."""
    path = out / "course.json"
    try:
        if path.exists():
            if json.loads(path.read_text(encoding="utf-8")) != json.loads(as_json(course.described())):
                raise RunConflict(f"{out} holds another course; give the same options again, or choose another --out.")
            return True
        if out.exists() and any(out.iterdir()):
            raise RunConflict(f"{out} is not empty and holds no course; choose another --out.")
    except (OSError, ValueError) as error:
        raise OutputFault(f"The folder {out} cannot be used: {error}.") from None
    return False


def _claim(out: Path, course: Course, places: tuple[tuple[int, ...], ...]) -> None:
    """Plan everything, so that what cannot be done is refused before it costs anything; look at the budgets; note the course."""
    plans = {name: [_plan(course, name, places, stage) for stage in range(course.stages)] for name in course.methods}
    _require_budgets(course, plans)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFault(f"The folder {out} cannot be made: {error.strerror}.") from None
    write_atomic(out / "course.json", as_json(course.described()))


def _require_budgets(course: Course, plans: dict[str, list[Plan]]) -> None:
    """Refuse unless the owner has set a budget for every party, and each covers what this comparison costs it.

    Guarantee: no account of a party is opened by a run. The records of a stage are records of the whole too, so budgets of
    stages that opened by themselves would be a second budget for a data set that is spent.
    """
    lacking: dict[str, str] = {}
    path = course.request.ledger_path
    with contextlib.ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open_to_read(path)) if path.exists() else None
        for stage in range(course.stages):
            planned = [plans[name][stage] for name in plans]
            party = planned[0].dataset
            epsilon = rounded_up(total(plan.price.epsilon for plan in planned))
            delta = rounded_up(total(plan.price.delta for plan in planned))
            account = ledger.account(party) if ledger is not None and ledger.has_budget(party) else None
            if account is None:
                lacking[party] = budget_command(party, epsilon, delta) or ""
                continue
            try:
                check_fits(account, epsilon, delta)
            except BudgetRefused as refused:
                lacking[party] = refused.next_command or ""
    if lacking:
        option = f" --ledger {shlex.quote(str(path))}" if course.request.ledger else ""
        raise BudgetRefused(
            f"No budget, or one that does not cover this course, is set for {', '.join(lacking)}. Nothing was booked. Each "
            f"stage is an account of its own, beside that of the whole data set, whose records it shares: what the stages may "
            "spend as well is the data owner's decision.",
            " && ".join(f"{command}{option}" for command in lacking.values() if command) or None,
        )


def _release(
    course: Course,
    name: str,
    places: tuple[tuple[int, ...], ...],
    stage: int,
    folders: list[Path],
    reporter: Reporter,
) -> None:
    folder = folders[-1]
    if (folder / certificates.NAME).exists() and not is_unfinished(folder):
        return
    if is_unfinished(folder):
        resume(folder, reporter, course.request.ledger_path)
        return
    start = folders[-2] if stage and _hands_on(name) else None
    request = replace(_request(course, name, places, stage), start=None if start is None else str(start))
    plan = _plan(course, name, places, stage, start)
    condense(request, plan, request.source(), folder, reporter)


def _scores(
    course: Course, name: str, folders: list[Path], tests: StageTests, whose: dict[str, Any]
) -> list[list[float]]:
    """For each network the scores on the stages so far; kept, because training takes minutes."""
    path = folders[-1].with_suffix(".json")
    if path.exists():
        kept: list[list[float]] = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return kept
    device = course.request.device
    if _hands_on(name):
        runs = score_model(folders[-1], tests, len(folders) - 1, device)
    else:
        protocol = EvaluationProtocol(
            models=(course.model,), preset=course.preset, repeats=course.repeats, seed=course.seed, device=device
        )
        runs = score_sets(folders, tests, protocol)
    runs = [[round(score, 4) for score in run] for run in runs]
    write_atomic(path, as_json({"runs": runs, **whose}))
    return runs


def _result(
    course: Course,
    out: Path,
    schema: Schema,
    places: tuple[tuple[int, ...], ...],
    runs: dict[str, list[list[list[float]]]],
) -> dict[str, Any]:
    return {
        **course.described(),
        "adjacency": schema.adjacency,
        "parties": [
            {"dataset": f"{schema.name}/stage-{stage + 1}", "classes": _names(schema, chosen)}
            for stage, chosen in enumerate(places)
        ],
        "composition": "parallel: every record is in one stage, so all stages of a method together cost its largest epsilon",
        "curves": {name: _curve(out, name, scores) for name, scores in runs.items()},
    }


def _curve(out: Path, name: str, runs: list[list[list[float]]]) -> dict[str, Any]:
    """The scores of one method, and what its certificates say about every stage."""
    releases = [f"{name}/stage-{stage + 1}" for stage in range(len(runs))]
    stated = [certificates.read(out / release) for release in releases]
    return {
        "epsilon": max(certificate["epsilon"] for certificate in stated),  # parallel: a record is in one stage
        "epsilon_by_stage": [certificate["epsilon"] for certificate in stated],
        "settings": [certificate["settings"] for certificate in stated],
        "releases": releases,
        "mean": [round(statistics.fmean(map(statistics.fmean, stage)), 4) for stage in runs],
        "std": [std_of([statistics.fmean(run) for run in stage]) for stage in runs],
        "by_stage": [_column_means(stage) for stage in runs],
    }


def _column_means(runs: list[list[float]]) -> list[float]:
    return [round(statistics.fmean(column), 4) for column in zip(*runs, strict=True)]
