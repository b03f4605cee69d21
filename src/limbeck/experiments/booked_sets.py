"""Sets that are made and scored one after the other, each booked like any other: what a sweep and a comparison share.

A second call with the same arguments goes on where the first one stopped: what is paid for is not paid for again, what is
scored is not scored again. The folder belongs to one specification.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from limbeck.data import DataSource
from limbeck.errors import DataUnreadable, OutputFault, RunConflict
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.provenance import Provenance
from limbeck.experiments.jobs import Cost, Job, require_budget
from limbeck.experiments.scored import Judging, scores_of
from limbeck.files import as_json, write_atomic
from limbeck.methods.elixir.working_size import AS_THEY_ARE
from limbeck.progress import Reporter
from limbeck.release.certificate import NAME as CERTIFICATE
from limbeck.release.destination import is_unfinished, require_outside
from limbeck.runs.condense import condense
from limbeck.runs.record import RunRecord
from limbeck.runs.request import Request
from limbeck.runs.resume import resume
from limbeck.vault.ledger import Ledger
from limbeck.vault.ledger.address import may_exist
from limbeck.vault.ledger.commands import naming

FORMAT = 1
SIZE = "size"  # in a specification
Planned = tuple[Sequence[Job], DataSource]


class Asked(Protocol):
    """What a sweep and a comparison both say: on which records their sets are scored, and by which models."""

    @property
    def test(self) -> str: ...
    @property
    def models(self) -> tuple[str, ...] | None: ...
    @property
    def preset(self) -> str | None: ...
    @property
    def networks(self) -> int | None: ...
    @property
    def size(self) -> int | None: ...


@dataclass(frozen=True, kw_only=True)
class BookedSets:
    """noun: what the sets are for, in sentences. file: where all figures are kept. jobs: in the order in which they are made."""

    noun: str
    file: Path
    specification: Mapping[str, Any]
    request: Request
    judging: Judging
    jobs: Sequence[Job]
    source: DataSource
    test: DataSource

    @classmethod
    def of(
        cls, noun: str, file: Path, asked: Asked, described: Mapping[str, Any], request: Request, planned: Planned
    ) -> BookedSets:
        """described: the specification, without where the records and the budgets are. planned: the sets, and their records."""
        jobs, source = planned
        where = {"data": request.data.data, "ledger": str(request.options.ledger_path.absolute())}
        size = asked.size
        if not size and _is_from_before_sizes(file):
            size, described = AS_THEY_ARE, {name: value for name, value in described.items() if name != SIZE}
        return cls(
            noun=noun,
            file=file,
            specification={**described, **where},
            request=request,
            judging=Judging(models=asked.models, preset=asked.preset, networks=asked.networks, size=size),
            jobs=jobs,
            source=source,
            test=replace(request.data, data=asked.test, part=None).source("test"),
        )

    def price(self, reporter: Reporter, only_price: bool) -> dict[str, Any]:
        """Price everything, and refuse what the budget does not cover.

        Guarantee: no record is read and nothing is booked; unless `only_price`, it returns only if the budget covers all sets
        that are still to be made.
        """
        self._claim()
        methods = list(dict.fromkeys(job.plan.method for job in self.jobs))
        self.judging.check(methods, self.source, self.test)
        for needed in () if only_price else (self.source, self.test):
            needed.prepare()  # a set that cannot be had is found before anything is paid
        path = self.request.options.ledger_path
        whole = [(job.release / CERTIFICATE).exists() for job in self.jobs]
        begun = any(job.release.exists() for job in self.jobs) and not all(whole)
        with _ledger_to_read(path, begun) as ledger:
            unpaid = [job for job in self.jobs if not _is_paid(job, ledger)]
            price = self._price(unpaid)
            reporter.say(
                f"{len(self.jobs)} sets of {self.jobs[0].plan.dataset} by {', '.join(methods)}: epsilon {price['epsilon']} in "
                f"all; still to pay: epsilon {price['to_pay']['epsilon']}, delta {price['to_pay']['delta']}"
            )
            if not only_price:
                with naming(path):
                    require_budget(ledger, unpaid, self.noun)
        return price

    def _price(self, unpaid: Sequence[Job]) -> dict[str, Any]:
        return {
            **Cost.of(self.jobs).to_dict(),
            "adjacency": self.jobs[0].plan.price.adjacency,
            "unit": self.source.schema.unit,
            "to_pay": Cost.of(unpaid).to_dict(),
        }

    def make(self, figures: Callable[[], Mapping[str, Any]], reporter: Reporter) -> bool:
        """Make and score what is missing; True if a booking made the ledger. figures: all that is measured, after each set."""
        self._keep(figures)
        created = False
        for number, job in enumerate(self.jobs, 1):
            named = ", ".join(f"{key}={value}" for key, value in job.values.items())
            reporter.say(f"set {number} of {len(self.jobs)}: {named}, epsilon {job.epsilon}")
            created |= self._made(job, reporter)
            self._score(job, reporter)
            self._keep(figures)
        return created

    def stated(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """Figures with what they are of, and whose they are."""
        return {
            "format": FORMAT,
            "specification": dict(self.specification),
            **figures,
            "test": self.test.where,
            **Provenance.of(test=self.test).to_dict(),
        }

    def _claim(self) -> None:
        """Refuse a folder that belongs to something else."""
        out = self.file.parent
        require_outside(out)
        if self.file.exists():
            try:
                kept = json.loads(self.file.read_text(encoding="utf-8"))
                same = (kept["format"], kept["specification"]) == (FORMAT, json.loads(as_json(self.specification)))
            except (OSError, ValueError, KeyError, TypeError):
                raise DataUnreadable(
                    f"{self.file} is damaged; restore it from a backup, or choose another --out."
                ) from None
            if not same:
                raise RunConflict(
                    f"{out} holds a {self.noun} with other arguments; repeat those, or choose another --out."
                )
        elif out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise RunConflict(f"{out} exists and is no {self.noun}; nothing is overwritten. Choose another --out.")

    def _made(self, job: Job, reporter: Reporter) -> bool:
        """Make the set unless it is there; True if its booking made the ledger."""
        if (job.release / CERTIFICATE).exists():
            return False
        if is_unfinished(job.release):
            return resume(job.release, reporter).ledger_created  # how long it took before, nobody knows
        outcome = condense(self.request, job.plan, self.source, job.release, reporter)
        write(job.seconds, {"seconds": outcome.seconds})
        return outcome.ledger_created

    def _score(self, job: Job, reporter: Reporter) -> None:
        if job.evaluation.exists():
            return
        protocol = self.judging.protocol(job.repeat, self.request.options.device)
        scores = scores_of(job.release, self.test, protocol, reporter)
        write(job.evaluation, replace(scores, release=job.release.name).to_dict())

    def _keep(self, figures: Callable[[], Mapping[str, Any]]) -> None:
        write(self.file, self.stated(figures()))


def _is_from_before_sizes(file: Path) -> bool:
    """Whether sets were scored here by a version that knew pictures as they are only: the others go on that way."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))["specification"]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # there is none, or `_claim` says what is wrong with it
    return isinstance(kept, dict) and SIZE not in kept


@contextlib.contextmanager
def _ledger_to_read(path: Path, begun: bool) -> Iterator[Ledger | None]:
    """The ledger as it is; None where the first booking will make it. What has begun has its ledger."""
    if not begun and not may_exist(path):
        yield None
        return
    with Ledger.open_to_read(path) as ledger:
        yield ledger


def _is_paid(job: Job, ledger: Ledger | None) -> bool:
    if (job.release / CERTIFICATE).exists():
        return True
    return (
        ledger is not None
        and is_unfinished(job.release)
        and ledger.state(RunRecord.read(job.release).grant) in ("open", "finished")
    )


def evaluations(jobs: Sequence[Job]) -> list[Evaluation]:
    """Of those that are scored."""
    kept = [job.evaluation for job in jobs if job.evaluation.exists()]
    return [Evaluation.from_dict(json.loads(path.read_text(encoding="utf-8"))) for path in kept]


def seen_size(done: Sequence[Evaluation]) -> dict[str, int]:
    """Of pictures that models saw averaged down: to how many pixels of the longer side. The sets of one plan have one size."""
    sizes = [evaluation.size for evaluation in done if evaluation.size is not None]
    return {SIZE: max(sizes)} if sizes else {}


def write(path: Path, values: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFault(f"The folder {path.parent} cannot be made: {error.strerror}.") from None
    write_atomic(path, as_json(values))
