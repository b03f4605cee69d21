"""Another set, of any size, from the answers that a release keeps. Nothing is asked: it is post-processing and free.

Each step moves a part of the pictures of every class towards one answer that was given before; all pictures are moved equally
often. A picture has Adam moments and an average of its own, so a large set costs as much for each picture as a small one. The
pictures start from a generator, where there is one, else from copies of the release's own, which parts and chance drive apart;
or from samples of the Gaussian model of each class, as the first set did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from limbeck.errors import BadSettings
from limbeck.methods.base import MOST_PER_CLASS, Logbook, SyntheticSet
from limbeck.methods.elixir.answers import KeptAnswers
from limbeck.methods.elixir.generating import SMOOTH, UPSAMPLING, WIDTHS, GeneratorFit, GeneratorSchedule, network_for
from limbeck.methods.elixir.initial_set import bought_model, initial_set
from limbeck.methods.elixir.method import SLOWEST, Elixir
from limbeck.methods.elixir.rematching import Rematching
from limbeck.methods.elixir.snapping import snapped
from limbeck.methods.elixir.working_size import at_size, size_of_generator
from limbeck.methods.parts.matching import shared_out
from limbeck.methods.settings import check_settings, setting
from limbeck.nets.features.pooled import enlarged, pooled
from limbeck.privacy.schema import Schema

BETAS = (0.9, 0.99)
GENERATOR, OWN, FIRST, AUTO, USUAL = "generator", "release", "first", "auto", "usual"
DRAWN = (GENERATOR, AUTO, USUAL)  # starts from a generator, where there is one
STIR = 0.05  # noise that tells copies of a picture apart, of pixels in [-1, 1]
USUAL_STEPS = 2500  # of a generator, for whoever leaves it open
BEFORE: Mapping[str, Any] = {"kind": UPSAMPLING, "half": False}  # of runs that say nothing of these
# Pictures in [-1, 1] for these labels, from random numbers: the generator of a release.
Draw = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """What is wanted of the answers.

    per_class, rows
               pictures of each class, or over all classes, in equal shares
    updates    how often each picture is moved; 0 leaves the start as it is
    part       of each class, pictures that one step moves
    eta        step size of Adam, falling; average: decay of each picture's average
    start      from a generator, from the release's own pictures or from the first set's model; usual: a generator, where one was
               asked for, else the release's own. auto: any generator, else the model, as it was before version 0.7.0
    generator  steps of a new generator that is matched first, and released; 0: none
    kind, width, latent, pictures, answers
               of that generator: network, maps, random numbers, pictures of each class and answers in a step. usual: makes
               pictures at the size at which the method looked at them, and they are set up afterwards; above 48 pixels it is
               'upsampling', whose weights do not grow so fast with them. auto: the same at the full size, as before version 0.8.0
    half       whether its products run in bfloat16, where the CPU has it
    """

    per_class: int = setting(500, least=1, most=MOST_PER_CLASS)
    rows: int | None = setting(None, least=1, most=10_000_000)
    seed: int = setting(0, least=0, most=2**31 - 1)
    updates: int = setting(1000, least=0, most=1_000_000)
    part: int = setting(50, least=1)
    eta: float = setting(0.02, above=0)
    average: float = setting(0.98, least=0, below=1)
    start: str = setting(USUAL, choices=(USUAL, GENERATOR, OWN, FIRST, AUTO))
    generator: int = setting(0, least=0, most=1_000_000)
    kind: str = setting(USUAL, choices=(USUAL, AUTO, SMOOTH, UPSAMPLING))
    width: int | None = setting(None, least=1, most=4096)
    latent: int = setting(24, least=1, most=4096)
    pictures: int = setting(20, least=1, most=MOST_PER_CLASS)
    answers: int = setting(2, least=1, most=1000)
    half: bool = setting(True)

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.updates and self.start in (FIRST, OWN) and not self.generator:
            raise BadSettings(
                f"updates=0 with start={self.start} makes nothing new; choose more updates or another start."
            )

    def check(self, classes: int, has_generator: bool) -> None:
        """Refuse what makes no sense for a release, before anything is written."""
        if self.rows is not None and self.rows < classes:
            raise BadSettings(f"rows={self.rows} is less than one picture for each of {classes} classes.")
        if self.start == GENERATOR and not (self.generator or has_generator):
            raise BadSettings(
                "start=generator needs a generator, and the release has none; choose start=release or --generator auto."
            )
        if not (self.updates or self.generator or has_generator):
            raise BadSettings(
                "updates=0 makes nothing new where there is no generator; choose more updates or --generator auto."
            )

    def labels(self, classes: int) -> Tensor:
        counts = [self.per_class] * classes
        if self.rows is not None:
            counts = shared_out(self.rows, [1.0] * classes)
        return torch.arange(classes).repeat_interleave(torch.tensor(counts))

    def schedule(self, schema: Schema, size: int | None) -> GeneratorSchedule | None:
        """size: at which the method looks at pictures. What runs began with before version 0.8.0 makes them at the full one."""
        if not self.generator:
            return None
        kind = network_for(self.made(schema, size).shape) if self.kind in (AUTO, USUAL) else self.kind
        sizes = {"pictures": self.pictures, "answers": self.answers, "latent": self.latent}
        return GeneratorSchedule(
            steps=self.generator,
            kind=kind,
            width=self.width or WIDTHS[kind],
            half=self.half,
            size=size_of_generator(schema, size) if self.kind == USUAL else 0,
            **sizes,
        )

    def made(self, schema: Schema, size: int | None) -> Schema:
        """The schema of the pictures that the generator's network makes."""
        return at_size(schema, size) if self.kind == USUAL else schema


@dataclass(frozen=True, kw_only=True, eq=False)
class Distiller:
    """method: as the source's certificate states it; its questions are put again. own: the source's pictures and labels."""

    method: Elixir
    schema: Schema
    kept: KeptAnswers
    own: tuple[Tensor, Tensor]
    wanted: Distillation
    device: torch.device

    def run(self, draw: Draw | None, logbook: Logbook) -> SyntheticSet:
        """draw: of the source's generator, where it has one."""
        wanted, schedule = self.wanted, self.wanted.schedule(self.schema, self.method.size)
        labels = wanted.labels(len(self.schema.classes)).to(self.device)
        work = at_size(self.schema, self.method.size)
        fit = None if schedule is None else self._fit(schedule)
        answers = self._answers()
        parts = self._parts(labels)
        pictures = Pictures(self._start(labels, draw) if fit is None else torch.zeros(len(labels), *work.shape))
        before, moves = wanted.generator, wanted.updates * parts
        for step in logbook.steps(before + moves, pictures.state | ({} if fit is None else fit.state), ""):
            if fit is not None and step < before:
                fit.move(step, answers)
                if step == before - 1:
                    pictures.begin(self._start(labels, fit.draw))
                continue
            self._move(step - before, moves, parts, pictures, labels, answers)
        large = enlarged(pictures.average, self.schema.shape[1:]).clamp(-1, 1)
        return SyntheticSet(
            snapped(large, self.method.snap).cpu().numpy(),
            labels.cpu().numpy(),
            generator=None if fit is None else fit.made(),
        )

    def _move(self, step: int, moves: int, parts: int, pictures: Pictures, labels: Tensor, answers: Rematching) -> None:
        chosen = self._part(step // parts, step % parts, parts, labels)
        (row,) = torch.randint(len(answers), (1,), generator=self._rng("answer", step)).tolist()
        moved, of = pictures.now[chosen].requires_grad_(True), labels[chosen]
        elsewhere = 1 - torch.bincount(of) / torch.bincount(labels)
        (gradient,) = torch.autograd.grad(answers.loss(row, moved, of, elsewhere), moved)
        eta = SLOWEST + self.wanted.eta * (1 + math.cos(math.pi * step / moves)) / 2
        pictures.move(chosen, gradient, eta, self.wanted.average)

    def _start(self, labels: Tensor, draw: Draw | None) -> Tensor:
        rng, work = self._rng("start", 0), at_size(self.schema, self.method.size)
        if draw is not None and self.wanted.start in DRAWN:
            return pooled(draw(labels, rng), work.shape[1:]).to(self.device).clamp(-1, 1)
        if self.wanted.start in (OWN, USUAL):
            made = pooled(copies(*self.own, labels.cpu(), rng), work.shape[1:])
        else:
            made = initial_set(bought_model(work, self.kept.ask, self.kept.sizes), labels.cpu(), work, rng)
        return made.to(self.device)

    def _answers(self) -> Rematching:
        pool = self.method.pool_of_one(self.schema, self.device)
        return Rematching(self.kept.replays, self.method.questions(self.schema), pool, self.device)

    def _fit(self, schedule: GeneratorSchedule) -> GeneratorFit:
        seed = int(self._rng("generator weights", 0).initial_seed() % 2**31)
        return GeneratorFit(schedule, self.wanted.made(self.schema, self.method.size), self._rng, seed, self.device)

    def _parts(self, labels: Tensor) -> int:
        counts = torch.bincount(labels)
        return min(math.ceil(int(counts.max()) / self.wanted.part), int(counts.min()))

    def _part(self, turn: int, number: int, parts: int, labels: Tensor) -> Tensor:
        """Places of one part; the parts of a turn hold every picture once."""
        rng, first, chosen = self._rng("part", turn), 0, []
        for count in torch.bincount(labels).tolist():
            chosen.append(first + torch.randperm(count, generator=rng)[number::parts])
            first += count
        return torch.cat(chosen).to(self.device)

    def _rng(self, point: str, step: int) -> torch.Generator:
        """Apart from the random numbers of the source, which had a seed of its own."""
        return self.method.rng("distil", self.wanted.seed, point, step)


def copies(pictures: Tensor, of: Tensor, labels: Tensor, rng: torch.Generator) -> Tensor:
    """Of the pictures of each class, in turn, as many as `labels`, which are sorted, ask for; no two of them quite alike."""
    rows = []
    for index, count in enumerate(torch.bincount(labels).tolist()):
        own = torch.nonzero(of == index)[:, 0]
        rows.append(own[torch.arange(count) % len(own)])
    found = pictures[torch.cat(rows)]
    return (found + STIR * torch.randn(found.shape, generator=rng)).clamp(-1, 1)


class Pictures:
    """Pictures with Adam moments and an average for each of them: tensors that a checkpoint can hold."""

    def __init__(self, start: Tensor) -> None:
        self.now, self.average = start.clone(), start.clone()
        self._first, self._second = torch.zeros_like(start), torch.zeros_like(start)
        self._moves = torch.zeros(len(start), device=start.device)

    @property
    def state(self) -> dict[str, Tensor]:
        moments = {"first": self._first, "second": self._second, "moves": self._moves}
        return {"pictures": self.now, "average": self.average, **moments}

    def begin(self, start: Tensor) -> None:
        self.now.copy_(start)
        self.average.copy_(start)

    def move(self, chosen: Tensor, gradient: Tensor, eta: float, decay: float) -> None:
        """Adam for these pictures alone."""
        self._moves[chosen] += 1
        first = self._first[chosen] * BETAS[0] + gradient * (1 - BETAS[0])
        second = self._second[chosen] * BETAS[1] + gradient.square() * (1 - BETAS[1])
        self._first[chosen], self._second[chosen] = first, second
        moves = self._moves[chosen].view(-1, *[1] * (gradient.dim() - 1))
        scale = (second / (1 - BETAS[1] ** moves)).sqrt() + 1e-8
        moved = (self.now[chosen] - eta * first / (1 - BETAS[0] ** moves) / scale).clamp(-1, 1)
        self.now[chosen] = moved
        self.average[chosen] = self.average[chosen] * decay + moved * (1 - decay)
