"""Where an ensemble answers: one desk for each teacher query of a grant.

The order at a tick: the scheduled block learns -> all vote, or drawn teachers give gradients -> bounded -> added up -> noised.
The vault stores the result before it gives it. The clock of the ensemble is the index of the query, so a tick is learned once.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from limbeck.data.records import Records
from limbeck.errors import RunConflict, WallBreach
from limbeck.privacy.queries import TeacherGradient, TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.vault.ensemble.ensemble import Ensemble, teachers_mix
from limbeck.vault.ensemble.kinds import QUESTIONS, TEACHERS
from limbeck.vault.ensemble.partition import check_ensemble, partition
from limbeck.vault.ensemble.store import EnsembleStore
from limbeck.vault.ensemble.teachers import Question
from limbeck.vault.ensemble.votes import Vote
from limbeck.vault.maps.bound import Bound
from limbeck.vault.noise import SecretStream, Total, drawn_noise, with_noise

TeacherQuery = TeacherVote | TeacherGradient
SECONDS_BETWEEN_SAVES = 300.0


class Desk:
    """The ensemble of one query, its partition and its checkpoints."""

    def __init__(
        self, query: TeacherQuery, question: Question, schema: Schema, store: EnsembleStore, device: torch.device
    ):
        _check_question(query, question, schema)
        self._query, self._schema, self._store, self._device = query, schema, store, device
        self._identity = question.identity()
        self._ensemble = Ensemble(question.teacher, question.ensemble, schema, device)
        self._ensemble.clock = store.load(query.label, self._identity, self._ensemble.state) or 0
        self._placed = False
        self._saved_at = self._ensemble.clock

    @property
    def clock(self) -> int:
        return self._ensemble.clock

    def learn(self, index: int, question: Question, records: Records) -> None:
        """Tick `index`: refused unless it is the next one. A tick that is over is not learned again."""
        self._require_same(question)
        if index != self.clock:
            raise RunConflict(
                f"The teachers of '{self._query.label}' stand at tick {self.clock}, and answer {index} was asked for; their "
                "checkpoint is missing or older than the run's. Put it back, or start a new run."
            )
        if not self._placed:
            key = self._store.partition_key(self._query.label)
            self._ensemble.assign_records(records, partition(records, question.ensemble.teachers, key))
            self._placed = True
        if index == 0:
            self._ensemble.warm_up(self._pause())
        self._ensemble.learn(question)

    def _pause(self) -> Callable[[], None]:
        """Saves a long warm-up now and then."""
        began = [time.monotonic()]

        def pause() -> None:
            if time.monotonic() - began[0] >= SECONDS_BETWEEN_SAVES:
                self._write()
                began[0] = time.monotonic()

        return pause

    def noised(
        self, index: int, question: Question, records: Records, stream: SecretStream, noises: SecretStream
    ) -> NDArray[np.float64]:
        """Tick `index`: its noise is drawn, then the teachers learn, and then they answer.

        Guarantee: the mechanism that the query's `event()` states; the noise is added once, from a stream of its own, and drawn
        before any record is touched.
        """
        query, shape = self._query, (self._width(question),)
        noise = drawn_noise(query, shape, noises) if query.on_grid else None
        self.learn(index, question, records)
        total = self.answered(question, stream)
        if noise is None:  # booked by an older version, which drew it last, from the same stream
            noise = drawn_noise(query, shape, stream)
        return with_noise(query, total, noise)

    def answered(self, question: Question, stream: SecretStream) -> Total:
        """What the teachers say as they are now, without noise: whole steps where the query is on the grid."""
        if isinstance(self._query, TeacherVote):
            assert isinstance(question, Vote)
            total = vote_sum(self._ensemble, question, self._query, stream)
        else:
            total = drawn_gradients(self._ensemble, question, self._query, stream)
        return total.astype(np.int64) if self._query.on_grid else total

    def _width(self, question: Question) -> int:
        """How many numbers an answer has: public, and tried on one teacher that knows nothing."""
        if not isinstance(question, Vote):
            return question.x.numel()
        images, numbers = len(question.x), question.x[0].numel()
        votes = question.votes(torch.zeros(1, images), torch.zeros(1, images, numbers), torch.zeros)
        return question.bounded(votes, Bound.of(self._query)).shape[1]

    def keep(self) -> None:
        """Save the teachers, if they have learned since; once all ticks are over they are not needed any more."""
        if self.clock >= self._query.count:
            self._store.drop(self._query.label)
        elif self._saved_at != self.clock:
            self._write()

    def _write(self) -> None:
        self._store.save(self._query.label, self.clock, self._identity, self._ensemble.state)
        self._saved_at = self.clock

    def _require_same(self, question: Question) -> None:
        if question.identity() != self._identity:
            raise WallBreach(
                f"The ensemble of '{self._query.label}' was started with other teachers; it stays as it is."
            )


def vote_sum(ensemble: Ensemble, question: Vote, query: TeacherVote, stream: SecretStream) -> NDArray[np.float64]:
    """All teachers' bounded votes, added up, in the query's units.

    Guarantee: if what one teacher learned changes, and nothing else, the sum moves by at most `query.clip` in L2 norm.
    """
    x, y = question.x.to(ensemble.device)[None], question.y.to(ensemble.device)[None]
    total: Tensor | None = None
    for part in ensemble.each_chunk():
        scores, gradients = ensemble.scores_and_gradients(part, x, y)
        # Numbers that are not finite count as 0, so that no weight of a teacher can stop the sum (rule 8).
        scores, gradients = (torch.nan_to_num(value, 0.0, 0.0, 0.0) for value in (scores, gradients.flatten(2)))
        votes = question.bounded(
            question.votes(scores, gradients, lambda shape: _uniform(stream, shape)), Bound.of(query)
        )
        total = votes.sum(0) if total is None else total + votes.sum(0)
    assert total is not None
    return total.cpu().numpy()


def drawn_gradients(
    ensemble: Ensemble, question: Question, query: TeacherGradient, stream: SecretStream
) -> NDArray[np.float64]:
    """For each part of the images the clipped gradient of a teacher of its own, drawn in secret.

    Guarantee: draws are uniform and independent; a part's gradient has norm at most clip / 2, so what one teacher learned moves a
    part by at most `query.clip`, and only where that teacher was drawn.
    """
    drawn = torch.from_numpy((stream.integers(query.draws) % np.uint64(query.teachers)).astype(np.int64))
    x = question.x.to(ensemble.device).view(query.draws, -1, *question.x.shape[1:])
    y = question.y.to(ensemble.device).view(query.draws, -1)
    parts = []
    for start in range(0, query.draws, ensemble.chunk):
        part = slice(start, start + ensemble.chunk)
        _, gradients = ensemble.scores_and_gradients(drawn[part].to(ensemble.device), x[part], y[part])
        parts.append(Bound.of(query).half().rows(gradients.flatten(1)))
    return torch.cat(parts).flatten().cpu().numpy()


def _uniform(stream: SecretStream, shape: tuple[int, ...]) -> Tensor:
    bits = stream.integers(int(np.prod(shape)))
    return torch.from_numpy(((bits >> np.uint64(40)) * 2.0**-24).astype(np.float32)).view(shape)


def _check_question(query: TeacherQuery, question: Question, schema: Schema) -> None:
    """What a method may not get wrong: kinds from the closed lists, and the sizes that the query was booked with."""
    teacher = question.teacher
    votes = isinstance(query, TeacherVote)
    if QUESTIONS.get(question.kind) is not type(question) or votes != isinstance(question, Vote):
        raise WallBreach(f"Query '{query.label}' takes no question of the kind '{question.kind}'.")
    if TEACHERS.get(teacher.kind) is not type(teacher):
        raise WallBreach(f"There is no teacher of the kind '{teacher.kind}'.")
    if question.ensemble.teachers != query.teachers:
        raise WallBreach(
            f"Query '{query.label}' was booked with {query.teachers} teachers, not {question.ensemble.teachers}."
        )
    if (teacher.shape, teacher.classes) != (schema.shape, len(schema.classes)):
        raise WallBreach(f"The teachers of '{query.label}' are made for other records than those of '{schema.name}'.")
    check_ensemble(question.ensemble, schema)
    if teachers_mix(teacher):
        raise WallBreach(f"Teachers of the kind '{teacher.kind}' learn from one another's records.")


def check_batch(query: TeacherQuery, question: Question, schema: Schema) -> None:
    """The synthetic records of one tick: of the schema's form, with labels that exist, and as many as the draws share out."""
    for x, y in ((question.fakes, question.fake_labels), (question.x, question.y)):
        if x.shape != (len(y), *schema.shape) or not len(y):
            raise WallBreach(f"'{query.label}' was asked with synthetic records of the wrong form {tuple(x.shape)}.")
        if (x.dtype, y.dtype) != (torch.float32, torch.int64):
            raise WallBreach(f"'{query.label}' was asked with records of {x.dtype} and labels of {y.dtype}.")
        if int(y.min()) < 0 or int(y.max()) >= len(schema.classes):
            raise WallBreach(f"'{query.label}' was asked with a label outside of the {len(schema.classes)} classes.")
    if isinstance(query, TeacherGradient) and len(question.x) % query.draws:
        raise WallBreach(f"{len(question.x)} images cannot be shared out into {query.draws} equal parts.")
