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
from torch import Tensor, nn

from limbeck.data import DataSource
from limbeck.evaluate.downstream import accuracy, train
from limbeck.evaluate.presets import Preset
from limbeck.nets import Network
from limbeck.release.model import read_model
from limbeck.release.reader import read_release
from limbeck.vault.encoding import encode


@dataclass(frozen=True, eq=False)
class StageTests:
    """The test records of every stage. Stage s has the classes `places[s]`, and stages follow the order of the classes."""

    places: tuple[tuple[int, ...], ...]
    records: tuple[tuple[Tensor, Tensor], ...]

    def seen(self, stage: int) -> int:
        """How many classes were seen up to and with this stage."""
        return sum(len(places) for places in self.places[: stage + 1])

    def scores(self, network: Network, stage: int) -> list[float]:
        """Accuracy on the test records of each stage so far."""
        return [accuracy(network, x, y) for x, y in self.records[: stage + 1]]


def stage_tests(test: DataSource, places: tuple[tuple[int, ...], ...]) -> StageTests:
    records = test.load()
    chosen = [np.isin(records.y, stage) for stage in places]
    parts = [(encode(records.x[mine], test.schema), torch.from_numpy(records.y[mine])) for mine in chosen]
    return StageTests(places, tuple(parts))


def score_sets(
    releases: Sequence[Path], tests: StageTests, model: str, preset: Preset, repeats: int, seed: int, device: str
) -> list[list[float]]:
    """Train on the union of the sets so far; for each network its scores on the stages so far."""
    stage = len(releases) - 1
    found = [read_release(release) for release in releases]
    x = torch.from_numpy(np.concatenate([release.x for release in found]))
    labels = [torch.tensor(places)[torch.from_numpy(r.y)] for places, r in zip(tests.places, found, strict=False)]
    chosen = preset.for_size(len(x)).fitted(found[0].schema)
    runs = []
    for repeat in range(repeats):
        network = train(model, x, torch.cat(labels), tests.seen(stage), chosen, seed + repeat, device)
        runs.append(tests.scores(network, stage))
    return runs


def score_model(release: Path, tests: StageTests, stage: int, device: str) -> list[list[float]]:
    """The scores of a released model, answering among the classes seen so far only."""
    network = read_model(release).network
    return [tests.scores(restricted(network, tests.seen(stage)).to(device), stage)]


def restricted(network: Network, classes: int) -> Network:
    """The network without the logits of the classes after the first `classes`."""
    head = nn.Linear(network.features, classes)
    with torch.no_grad():
        head.weight.copy_(network.head.weight[:classes])
        head.bias.copy_(network.head.bias[:classes])
    network.head = head
    return network.eval()
