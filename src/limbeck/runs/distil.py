"""Another set, or a generator, from the answers that a release keeps. By anybody: without data, ledger and budget.

    OUT/.run/run.json                 which release and which drawing, by path and by hash of the certificate; what was wanted
    OUT/.run/checkpoint.safetensors   how far it is

Guarantee: reads the release and nothing else, opens no ledger and books nothing; what it writes is made of answers that were
paid for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from limbeck.errors import BadInput, BadSettings, LimbeckError, OutputFault, RunConflict
from limbeck.files import write_atomic
from limbeck.methods import method_named
from limbeck.methods.elixir.answers import KeptAnswers, forms_of
from limbeck.methods.elixir.distilling import AUTO, BEFORE, DRAWN, USUAL, USUAL_STEPS, Distillation, Distiller, Draw
from limbeck.methods.elixir.method import Elixir
from limbeck.methods.elixir.working_size import at_size
from limbeck.methods.settings import declared, read_settings
from limbeck.privacy.plan import Plan
from limbeck.progress import Reporter
from limbeck.release.answers import damaged_answers, read_answers, without_answers
from limbeck.release.certificate import NAME, Certificate
from limbeck.release.destination import RUN_FILE, resume_command
from limbeck.release.distilled import ANSWERS, Distilled
from limbeck.release.generator import Generator, load_generator
from limbeck.release.reader import read_release
from limbeck.release.signature import KeyFile
from limbeck.release.verification import verify
from limbeck.release.writer import ReleaseWriter
from limbeck.runs.condense import Outcome, outcome_of, pages_of
from limbeck.runs.folder import held, new_folder, put_in_place, staging
from limbeck.runs.log import SECONDS_BETWEEN_CHECKPOINTS, StepLog
from limbeck.runs.run_file import decoded, encoded
from limbeck.vault.noise import Randomness

FORMAT, FIELD = 1, "distil"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What run.json holds: all of it public or the caller's own command line."""

    release: str
    source: str  # SHA-256 of the certificate's file
    wanted: Distillation
    key: str
    drawing: str = ""  # the set whose generator it starts from, if that is not the release itself
    drawn_from: str = ""  # SHA-256 of that set's certificate

    @property
    def identity(self) -> str:
        """A checkpoint of another release, of another start or of other settings, is not taken up."""
        wanted = dataclasses.asdict(self.wanted).items()
        # What runs say nothing of that were begun before there was a choice.
        stated = {name: value for name, value in wanted if name not in BEFORE or value != BEFORE[name]}
        settings = json.dumps(stated, sort_keys=True)
        return hashlib.sha256(f"{self.source} {settings}{self.drawn_from}".encode()).hexdigest()[:32]

    @property
    def settings(self) -> dict[str, Any]:
        """What the certificate says of how the set was made."""
        return dataclasses.asdict(self.wanted) | ({"drawn_from": self.drawn_from} if self.drawn_from else {})

    def write(self, folder: Path) -> None:
        write_atomic(folder / RUN_FILE, encoded({"format": FORMAT, FIELD: dataclasses.asdict(self)}))

    @staticmethod
    def read(folder: Path) -> Work:
        try:
            values = decoded((folder / RUN_FILE).read_bytes())[FIELD]
            wanted = Distillation(**{**BEFORE, **values.pop("wanted")})
            # Before there were drawings, nothing was said of them.
            if set(values) - {"drawing", "drawn_from"} != {"release", "source", "key"}:
                raise ValueError(FIELD)
            if not all(isinstance(text, str) for text in values.values()):
                raise ValueError(FIELD)
            return Work(wanted=wanted, **values)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, BadInput):
            raise RunConflict(
                f"{folder / RUN_FILE} is damaged, so it cannot be taken up again. Nothing was paid for it: remove {folder} and "
                "distil the release again."
            ) from None


def is_distillation(folder: Path) -> bool:
    """Whether the folder holds an unfinished run of `distil`, whole or damaged."""
    try:
        values = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        return isinstance(values, dict) and FIELD in values
    except (OSError, ValueError, RecursionError):
        return False


def wanted_from(settings: Mapping[str, Any]) -> Distillation:
    """Texts (from --set key=value) are read as the setting's type. generator=auto is as many steps as usual."""
    if unknown := sorted(set(settings) - set(declared(Distillation))):
        raise BadSettings(
            f"limbeck distil has no setting '{unknown[0]}'. Known are: {', '.join(declared(Distillation))}.",
            "limbeck distil --help",
        )
    usual = {"generator": USUAL_STEPS} if settings.get("generator") == AUTO else {}
    return Distillation(**read_settings(Distillation, "distil", {**settings, **usual}))


def distil(
    release: Path,
    out: Path,
    wanted: Distillation,
    key: Path,
    reporter: Reporter,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    drawing: Path | None = None,
) -> Outcome:
    """Make a set of the release's answers and write it to `out`, signed with `key`, which is the caller's own.

    drawing: a set of the same release with a generator, whose pictures are the start.

    Guarantee: a failure before the first step leaves nothing in `out`.
    """
    certificate = _checked(release)
    work = Work(release=str(release.absolute()), source=_hash(release), wanted=wanted, key=str(key.absolute()))
    if drawing is not None:
        if wanted.generator or wanted.start not in DRAWN:
            other = f"generator={wanted.generator}" if wanted.generator else f"start={wanted.start}"
            raise BadSettings(f"A set starts from one place: leave {other} out, or the drawing {drawing}.")
        work = dataclasses.replace(work, drawing=str(drawing.absolute()), drawn_from=_hash_of_drawing(drawing))
    with new_folder(out) as made:
        try:
            source = Source.of(release, certificate, drawing)
            wanted.check(len(certificate.public_assumptions.classes), source.draw is not None)
            work.write(out)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        return _carry_out(out, work, source, reporter, checkpoint_seconds)


def take_up(out: Path, reporter: Reporter) -> Outcome:
    """Go on with a set that was stopped on its way."""
    with held(out):
        work = Work.read(out)
        release = Path(work.release)
        if not (release / NAME).is_file() or _hash(release) != work.source:
            raise RunConflict(
                f"The release in {release} is not there any more, or not the one that {out} was begun from. Put it back, or "
                f"remove {out} and distil another one; nothing was paid."
            )
        drawing = Path(work.drawing) if work.drawing else None
        if drawing is not None and _hash_of_drawing(drawing) != work.drawn_from:
            raise RunConflict(
                f"The set in {drawing} is not the one any more that {out} was begun from. Put it back, or remove {out} and "
                "distil another one; nothing was paid."
            )
        source = Source.of(release, _checked(release), drawing)
        return _carry_out(out, work, source, reporter, SECONDS_BETWEEN_CHECKPOINTS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A release whose answers are there and whole."""

    certificate: Certificate
    method: Elixir
    kept: KeptAnswers
    own: tuple[torch.Tensor, torch.Tensor]
    draw: Draw | None
    stated: Mapping[str, Any]

    @staticmethod
    def of(release: Path, certificate: Certificate, drawing: Path | None = None) -> Source:
        _, tensors = read_answers(release)
        schema = certificate.public_assumptions
        try:
            method = method_named(certificate.method, certificate.settings)
            if not isinstance(method, Elixir):
                raise ValueError(certificate.method)
            pool, work = method.pool_of_one(schema, torch.device("cpu")), at_size(schema, method.size)
            kept = KeptAnswers.read(tensors, forms_of(work, pool, method.chosen(schema).waves))
        except (ValueError, KeyError, TypeError, BadInput):
            raise damaged_answers(release) from None
        stated = json.loads((release / NAME).read_bytes())
        draw = _draw(release, certificate) if drawing is None else _draw_of_another(drawing, release, stated)
        found = read_release(release)
        own = torch.from_numpy(found.x), torch.from_numpy(found.y)
        return Source(certificate=certificate, method=method, kept=kept, own=own, draw=draw, stated=stated)


def _draw(release: Path, certificate: Certificate) -> Draw | None:
    if not certificate.has_generator:
        return None
    generator = load_generator(release)
    assert isinstance(generator, Generator)
    return generator.draw


def _draw_of_another(drawing: Path, release: Path, stated: Mapping[str, Any]) -> Draw:
    """Of a set that was distilled before.

    Guarantee: only of this very release. The answers of another one cost a budget that the new certificate would not state.
    """
    found = verify(drawing)
    if found.distilled is None or found.distilled.sha256 != Distilled(stated, {}).sha256:
        raise BadInput(
            f"The set in {drawing} was not distilled from {release}, so the new set's certificate would not state all that it is "
            "made of. Take a set of this release, or make one.",
            f"limbeck distil {release} --generator auto --out NEW",
        )
    draw = _draw(drawing, found)
    if draw is None:
        raise BadInput(
            f"The set in {drawing} has no generator to start from.",
            f"limbeck distil {release} --generator auto --out NEW",
        )
    return draw


def _checked(release: Path) -> Certificate:
    certificate = verify(release)
    if ANSWERS not in certificate.files:
        raise without_answers(release, certificate)
    return certificate


def _carry_out(out: Path, work: Work, source: Source, reporter: Reporter, every: float) -> Outcome:
    began, certificate = time.monotonic(), source.certificate
    staged = staging(out)
    shutil.rmtree(staged, ignore_errors=True)
    log = StepLog(out, work.identity, f"distil, {certificate.dataset}", reporter, every)
    made = Distiller(
        method=source.method,
        schema=certificate.public_assumptions,
        kept=source.kept,
        own=source.own,
        wanted=work.wanted,
        device=torch.device("cpu"),
    ).run(_starting_from(work, source), log)
    writer = _writer(work, source)
    try:
        staged.mkdir()
        writer.write(staged, made)
        put_in_place(out)
    except OSError as error:
        raise OutputFault(
            f"The release could not be written: {error.strerror or error}.", resume_command(out)
        ) from None
    except LimbeckError as error:
        error.next_command = error.next_command or resume_command(out)
        raise
    return outcome_of(out, writer.plan, certificate.unit, writer.randomness, began)


def _starting_from(work: Work, source: Source) -> Draw | None:
    """Where the owner had asked for a generator, before version 0.8.0, sets start there; they do not where one always comes."""
    own = not work.drawing and source.method.generator_kind and work.wanted.start == USUAL and work.wanted.updates
    return None if own else source.draw


def _writer(work: Work, source: Source) -> ReleaseWriter:
    certificate = source.certificate
    plan = Plan(
        dataset=certificate.dataset,
        method=certificate.method,
        settings=dict(certificate.settings),
        queries=certificate.queries,
        price=certificate.accounting,
    )
    return ReleaseWriter(
        plan=plan,
        schema=certificate.public_assumptions,
        # Noise that was not secret stays what it was.
        randomness=Randomness() if certificate.randomness == Randomness().mode else Randomness(insecure_seed=0),
        signer=KeyFile(Path(work.key)),
        drawn=lambda: certificate.drawn,
        pages=partial(pages_of, None),
        distilled=Distilled(source.stated, work.settings),
    )


def _hash(release: Path) -> str:
    return hashlib.sha256((release / NAME).read_bytes()).hexdigest()


def _hash_of_drawing(drawing: Path) -> str:
    if not (drawing / NAME).is_file():
        raise BadInput(f"There is no set in {drawing} to start from.")
    return _hash(drawing)
