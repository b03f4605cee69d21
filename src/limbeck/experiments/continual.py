"""Private continual learning: the classes come in stages, and every stage's records belong to another party.

Chen, Kerkouche and Fritz, "Private Set Generation with Discriminative Information", Section 5.2 and supplement C.5. A method
that makes sets releases one per stage, and a fresh classifier is trained on all sets so far. A method that trains a model
hands it on: every stage goes on from the model of the stage before.

A party is a part of the data set in the ledger (mnist/stages-5/1, ...), with a vault and a plan of its own. It spends from
the budget of the whole, which the owner sets beforehand: a record of a stage is also one of the whole set. A record has
one class and so belongs to one party: adding or removing it changes what one stage asks, and everything else only works
on released results. So all stages together cost what the dearest stage costs (parallel composition). Several methods in
one comparison read the same records, so the prices of the methods do add up. If the schema protects persons, who may have
records of several classes, the stages add up as well.

    OUT/course.json               what was asked; another course is refused in the same folder
    OUT/METHOD/stage-1/           the release of a stage
    OUT/METHOD/stage-1.json       its scores
    OUT/continual.json, .png      the curves
Whoever starts the same course again goes on where it stopped: finished stages are kept.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from limbeck.errors import BadInput, OutputFault, RunConflict
from limbeck.evaluate.accuracy import std_of
from limbeck.evaluate.decoded import form_of_rows
from limbeck.evaluate.models import NETWORKS, choose
from limbeck.evaluate.presets import preset_named
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.provenance import Provenance
from limbeck.evaluate.stages import StageTests, score_model, score_sets, stage_tests
from limbeck.experiments.continual_plan import SIZE, Continual, declared, hands_on, require_budget, stage_plan
from limbeck.files import as_json, write_atomic
from limbeck.methods.elixir.working_size import AS_THEY_ARE
from limbeck.privacy.numbers import finite_or_word
from limbeck.progress import Reporter
from limbeck.release.certificate import NAME as CERTIFICATE
from limbeck.release.destination import is_unfinished, require_outside
from limbeck.release.statement import read_certificate
from limbeck.runs.condense import condense
from limbeck.runs.resume import resume
from limbeck.vault.ledger.sums import rounded_up, total

PARALLEL = "parallel: every record is in one stage, so all stages of a method together cost its largest epsilon"
SEQUENTIAL = "sequential: a person may have records in several stages, so the epsilons of all stages add up"


def run_continual(spec: Continual, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Run every stage of every method that is not finished yet, score them and draw the curves."""
    from limbeck.report.stage_figure import stage_curves  # the plotting library takes a second

    require_outside(out)
    spec = _as_begun(out, spec)
    claimed = _is_claimed(out, spec)
    preset_named(spec.preset)  # refuses an unknown one before anything is paid
    schema, classes = spec.schema, spec.classes
    if choose([spec.model], schema.shape)[0].model not in NETWORKS:
        raise BadInput(f"Model '{spec.model}' is no network that is trained here; choose one of {', '.join(NETWORKS)}.")
    test = spec.request.data.source("test")
    if test.schema.classes != schema.classes:
        raise BadInput("The test records have other classes than the training records; they must be the same.")
    test.prepare()  # a set that cannot be had is found before anything is paid
    if not claimed:
        _claim(out, spec)
    tests, whose = stage_tests(test, classes), Provenance.of(test=test).to_dict()
    runs: dict[str, list[list[list[float]]]] = {}
    for name in spec.methods:
        folders: list[Path] = []
        runs[name] = []
        for stage in range(spec.stages):
            folders.append(out / name / f"stage-{stage + 1}")
            reporter.say(f"{name}, stage {stage + 1} of {spec.stages}: classes {', '.join(spec.class_names(stage))}")
            _release(spec, name, stage, folders, reporter)
            runs[name].append(_scores(spec, name, folders, tests, whose))
            reporter.say(f"  accuracy {statistics.fmean(map(statistics.fmean, runs[name][-1])):.2f} %")
    result = {**_result(spec, out, runs), **whose}
    write_atomic(out / "continual.json", as_json(result))
    write_atomic(out / "continual.png", stage_curves(result))
    return result


def _as_begun(out: Path, spec: Continual) -> Continual:
    """A course that an earlier version began goes on with pictures as they are, as its first stages were scored."""
    try:
        kept = json.loads((out / "course.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return spec  # there is none, or `_is_claimed` says what is wrong with it
    return spec if not isinstance(kept, dict) or SIZE in kept else replace(spec, size=AS_THEY_ARE)


def _is_claimed(out: Path, spec: Continual) -> bool:
    """Whether the folder holds this very course; one that holds anything else is refused."""
    path = out / "course.json"
    try:
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(kept, dict) or {SIZE: AS_THEY_ARE, **kept} != json.loads(as_json(spec.described())):
                raise RunConflict(f"{out} holds another course; give the same options again, or choose another --out.")
            return True
        if out.exists() and any(out.iterdir()):
            raise RunConflict(f"{out} is not empty and holds no course; choose another --out.")
    except (OSError, ValueError) as error:
        raise OutputFault(f"The folder {out} cannot be used: {error}.") from None
    return False


def _claim(out: Path, spec: Continual) -> None:
    """Plan everything, so that what cannot be done is refused before it costs anything; then note what was asked."""
    plans = {name: [stage_plan(spec, name, stage) for stage in range(spec.stages)] for name in spec.methods}
    require_budget(spec, plans)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFault(f"The folder {out} cannot be made: {error.strerror}.") from None
    write_atomic(out / "course.json", as_json(spec.described()))


def _release(spec: Continual, name: str, stage: int, folders: list[Path], reporter: Reporter) -> None:
    folder = folders[-1]
    if (folder / CERTIFICATE).exists() and not is_unfinished(folder):
        return
    if is_unfinished(folder):
        resume(folder, reporter, spec.request.options.ledger_path)
        return
    with declared(spec):
        pass  # a course that an earlier version began knows no split yet
    start = folders[-2] if stage and hands_on(name) else None
    request = spec.stage_request(name, stage, start)
    condense(request, stage_plan(spec, name, stage, start), request.data.source(), folder, reporter)


def _scores(
    spec: Continual, name: str, folders: list[Path], tests: StageTests, whose: dict[str, Any]
) -> list[list[float]]:
    """For each network the scores on the stages so far; kept, because training takes minutes."""
    path = folders[-1].with_suffix(".json")
    if path.exists():
        kept: list[list[float]] = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return kept
    device = spec.request.options.device
    if hands_on(name):
        runs = score_model(folders[-1], tests, len(folders) - 1, device)
    else:
        protocol = EvaluationProtocol(
            models=(spec.model,),
            preset=spec.preset,
            repeats=spec.repeats,
            seed=spec.seed,
            device=device,
            size=spec.size,
        )
        runs = score_sets(folders, tests, protocol)
    runs = [[round(score, 4) for score in run] for run in runs]
    write_atomic(path, as_json({"runs": runs, **whose}))
    return runs


def _result(spec: Continual, out: Path, runs: dict[str, list[list[list[float]]]]) -> dict[str, Any]:
    return {
        **spec.described(),
        **({} if (form := form_of_rows(spec.schema)) is None else {"form": form}),
        "adjacency": spec.schema.adjacency,
        "parties": [
            {
                "dataset": read_certificate(out / next(iter(runs)) / f"stage-{stage + 1}").dataset,
                "classes": spec.class_names(stage),
            }
            for stage in range(spec.stages)
        ],
        "composition": PARALLEL if spec.split.disjoint else SEQUENTIAL,
        "curves": {name: _curve(out, name, scores, spec.split.disjoint) for name, scores in runs.items()},
    }


def _curve(out: Path, name: str, runs: list[list[list[float]]], disjoint: bool) -> dict[str, Any]:
    """The scores of one method, and what its certificates say about every stage."""
    releases = [f"{name}/stage-{stage + 1}" for stage in range(len(runs))]
    stated = [read_certificate(out / release) for release in releases]
    return {
        "epsilon": finite_or_word(_together([certificate.epsilon for certificate in stated], disjoint)),
        "epsilon_by_stage": [finite_or_word(certificate.epsilon) for certificate in stated],
        "settings": [certificate.settings for certificate in stated],
        "releases": releases,
        "mean": [round(statistics.fmean(map(statistics.fmean, stage)), 4) for stage in runs],
        "std": [std_of([statistics.fmean(run) for run in stage]) for stage in runs],
        "by_stage": [_column_means(stage) for stage in runs],
    }


def _together(epsilons: list[float], disjoint: bool) -> float:
    return max(epsilons) if disjoint else rounded_up(total(epsilons))


def _column_means(runs: list[list[float]]) -> list[float]:
    return [round(statistics.fmean(column), 4) for column in zip(*runs, strict=True)]
