"""The releases of a folder as reports, each checked and read once and kept while no file of it changes."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections import OrderedDict
from pathlib import Path, PurePath
from typing import Any

from limbeck.errors import LimbeckError
from limbeck.evaluate.evaluation import Evaluation
from limbeck.report.gather import Sources, gather
from limbeck.report.page import Report, render
from limbeck.report.scores import ScoreTable, require_fit, require_public, score_table
from limbeck.serve.inside import NotInside, Stamp, plain_stamps, read_inside, stamp
from limbeck.serve.runs import Catalog, RunInfo

MOST_KEPT = 24
LARGEST_SCORES = 2_000_000


class Shelf:
    """Reports of the release edition only: a page that may be seen from elsewhere shows nothing that was not paid for."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._reports: OrderedDict[str, tuple[Any, Report]] = OrderedDict()
        self._files: dict[str, tuple[Stamp, Evaluation]] = {}
        self._busy = threading.Lock()  # checking computes epsilon again, which may take seconds: one at a time

    def page(self, info: RunInfo) -> str:
        return render(self.report(info))

    def report(self, info: RunInfo) -> Report:
        """The verified release with its public scores.

        Guarantee: raises unless the release verified in the state that its files are in now.
        """
        folder = self._catalog.root / info.name
        scores = self.evaluations(info)
        with self._busy:
            mark = (plain_stamps(folder), scores)
            known = self._reports.get(info.name)
            if known is None or known[0] != mark:
                report = gather(Sources(run=folder))
                known = (mark, _with_scores(report, scores))
            self._reports[info.name] = known
            self._reports.move_to_end(info.name)
            while len(self._reports) > MOST_KEPT:
                self._reports.popitem(last=False)
        return known[1]

    def evaluations(self, info: RunInfo) -> list[Evaluation]:
        """Scores that lie beside the release as JSON, are of this release, and may be shown to everybody."""
        return [self._files[name][1] for name in self._look(_beside(info)) if self._is_of(self._files[name][1], info)]

    def tables(self, info: RunInfo) -> list[ScoreTable]:
        return [score_table(evaluation.public()) for evaluation in self.evaluations(info)]

    def scores(self, infos: list[RunInfo]) -> dict[str, list[ScoreTable]]:
        """All runs that have scores, with one look at each folder."""
        by_name = {info.name: info for info in infos}
        found: dict[str, list[ScoreTable]] = {}
        for file in [file for folder in sorted({_beside(info) for info in infos}) for file in self._look(folder)]:
            evaluation = self._files[file][1]
            info = by_name.get(str(PurePath(file).parent / PurePath(evaluation.release or "").name))
            if info is not None and self._is_of(evaluation, info):
                found.setdefault(info.name, []).append(score_table(evaluation.public()))
        return found

    def _is_of(self, evaluation: Evaluation, info: RunInfo) -> bool:
        if info.certificate is None or PurePath(evaluation.release or "").name != PurePath(info.name).name:
            return False
        try:
            require_fit(evaluation, info.certificate, Path("scores"))
            require_public(evaluation, "It")
        except LimbeckError:
            return False
        return True

    def _look(self, folder: str) -> list[str]:
        """The JSON files of a folder of releases; what cannot be read counts as empty."""
        try:
            with os.scandir(self._catalog.root / folder) as entries:
                found = sorted(entry.name for entry in entries if entry.name.endswith(".json"))
        except OSError:
            found = []
        names = [str(PurePath(folder) / name) for name in found]
        for name in names:
            mark = stamp(self._catalog.root / name)
            if name not in self._files or self._files[name][0] != mark:
                self._files[name] = (mark or (0, 0, 0), self._read(name))
        return [name for name in names if name in self._files]

    def _read(self, name: str) -> Evaluation:
        try:
            values = json.loads(read_inside(self._catalog.root, *PurePath(name).parts, most=LARGEST_SCORES))
        except (NotInside, ValueError, RecursionError):
            values = None
        return Evaluation.from_dict(values if isinstance(values, dict) else {})


def _beside(info: RunInfo) -> str:
    """The folder that a run lies in, below that of all runs."""
    return str(PurePath(info.name).parent)


def _with_scores(report: Report, scores: list[Evaluation]) -> Report:
    return dataclasses.replace(report, evaluations=[evaluation.public() for evaluation in scores])
