"""Scores of continual learning: how well a classifier tells apart all classes that were seen so far.

A stage's score is over the test records of its own classes, answered among all classes seen so far; the curve is the mean
over the stages so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from limbeck.data import DataSource
from limbeck.errors import BadInput
from limbeck.evaluate.decoded import decoded
from limbeck.evaluate.downstream import accuracy
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.scoring import TrainingSet, score_models
from limbeck.evaluate.seen import seen, seen_records, seen_schema
from limbeck.nets import Network
from limbeck.progress import Silent
from limbeck.release.model import read_model
from limbeck.release.reader import read_release
from limbeck.release.working_size import working_size
from limbeck.vault.encoding import encode


@dataclass(frozen=True, eq=False)
class StageTests:
    """The test records of every stage. Stage s has the classes `classes[s]`, and stages follow the order of the classes."""

    classes: tuple[tuple[int, ...], ...]
    records: tuple[Labelled, ...]

    def seen(self, stage: int) -> int:
        """How many classes were seen up to and with this stage."""
        return sum(len(classes) for classes in self.classes[: stage + 1])


def stage_tests(test: DataSource, classes: tuple[tuple[int, ...], ...]) -> StageTests:
    records = test.load()
    chosen = [np.isin(records.y, stage) for stage in classes]
    parts = [Labelled(encode(records.x[mine], test.schema), torch.from_numpy(records.y[mine])) for mine in chosen]
    return StageTests(classes, tuple(parts))


def score_sets(releases: Sequence[Path], tests: StageTests, protocol: EvaluationProtocol) -> list[list[float]]:
    """Train on the union of the sets so far; for each network its scores on the stages so far. Rows of a table are decoded."""
    stage = len(releases) - 1
    found = [read_release(release) for release in releases]
    stated = [working_size(release.certificate) for release in found]
    schema = found[0].schema
    as_seen = seen_schema(schema, protocol.size, 0 if 0 in stated else max(stated))
    x = torch.cat([seen(decoded(release.x, release.schema), as_seen) for release in found])
    labels = [torch.tensor(classes)[torch.from_numpy(r.y)] for classes, r in zip(tests.classes, found, strict=False)]
    training = TrainingSet(x=x, y=torch.cat(labels), classes=tests.seen(stage))
    scoring = protocol.resolve_for_size(as_seen, len(x))
    records = [seen_records(each, as_seen) for each in tests.records[: stage + 1]]
    (outcome,) = score_models(training, records, scoring, Silent())
    if outcome.score is None:
        raise BadInput(outcome.skipped or f"{outcome.model} was not trained.")
    return [list(accuracies) for accuracies in outcome.score.by_test]


def score_model(release: Path, tests: StageTests, stage: int, device: str) -> list[list[float]]:
    """The scores of a released model, answering among the classes seen so far only."""
    network = restricted(read_model(release).network, tests.seen(stage)).to(device)
    return [[accuracy(network, test.x, test.y) for test in tests.records[: stage + 1]]]


def restricted(network: Network, classes: int) -> Network:
    """The network without the logits of the classes after the first `classes`."""
    head = nn.Linear(network.features, classes)
    with torch.no_grad():
        head.weight.copy_(network.head.weight[:classes])
        head.bias.copy_(network.head.bias[:classes])
    network.head = head
    return network.eval()
