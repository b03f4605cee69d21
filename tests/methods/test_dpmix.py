"""DPMix: a record and its label are one row, what a mixture costs, and a run that resumes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import assert_paid_once, broken_off_and_resumed, make

from limbeck.errors import BadSettings
from limbeck.methods import method_named
from limbeck.privacy.accounting import price
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.runs.log import RunLog
from limbeck.vault.api import Answer, Labelled
from limbeck.vault.ledger import Ledger

MNIST = Schema(
    name="m", shape=(1, 28, 28), low=0, high=255, classes=tuple("0123456789"), records=60_000, class_sizes=(6000,) * 10
)
SMALL: dict[str, Any] = {"L": 5, "per_class": 2, "sigma": 1.0}


def test_a_mixture_of_all_classes_is_one_answer_at_the_rate_of_all_records() -> None:
    (query,) = method_named("dpmix", {"label": 0.75}).queries(MNIST, 1.0)
    assert isinstance(query, ClippedSum)
    assert (query.count, query.rate, query.by_class) == (500, (50 / 60_000,), False)
    assert query.clip == pytest.approx(0.4 * 28 * 1.25)
    same = ClippedSum(label="x", map="identity", clip=1.0, noise_multiplier=1.0, rate=(50 / 60_000,), count=500)
    assert price((query,), 1e-5).epsilon == price((same,), 1e-5).epsilon


def test_record_and_label_are_one_row() -> None:
    x, y = torch.tensor([[-1.0, 1.0], [0.0, 1.0]]), torch.tensor([1, 7])
    rows = Labelled(classes=3, weight=2.0, shift=1.0, scale=0.5).rows(x, y)
    assert rows.tolist() == [[0.0, 1.0, 0.0, 2.0, 0.0], [0.5, 1.0, 0.0, 0.0, 0.0]]


class Plain:
    def steps(self, total: int, state: dict[str, torch.Tensor], answers: str) -> Iterator[int]:
        return iter(range(total))


def test_a_mixture_is_the_mean_of_its_records_and_of_the_class_that_it_has_most_of() -> None:
    schema = Schema(
        name="s", shape=(3,), low=0, high=1, classes=("a", "b"), records=10, class_sizes=(4, 6), augmentation=()
    )
    x = torch.rand((10, 3), generator=torch.Generator().manual_seed(0)) * 2 - 1
    y = torch.tensor([0] * 4 + [1] * 6)

    def ask(label: str, index: int, mapping: Any) -> Answer:
        return Answer(mapping.rows(x, y).sum(0, keepdim=True).numpy())

    made = method_named("dpmix", {"L": 10, "per_class": 2}).run(schema, ask, Plain(), torch.device("cpu"))
    assert made.y.tolist() == [1] * 4
    assert np.allclose(made.x, x.mean(0).expand(4, 3), atol=1e-6)


@pytest.mark.parametrize(("owner", "name", "call"), [(Ledger, "store", 2), (RunLog, "_save", 3), (Ledger, "finish", 1)])
def test_killed_and_resumed_ends_in_the_same_set(tmp_path: Path, owner: type, name: str, call: int) -> None:
    whole = make("dpmix", SMALL, tmp_path / "whole", tmp_path / "whole.sqlite")
    ledger = tmp_path / "ledger.sqlite"
    resumed = broken_off_and_resumed("dpmix", SMALL, tmp_path / "out", ledger, owner, name, call)
    assert (resumed / "set.npz").read_bytes() == (whole / "set.npz").read_bytes()
    assert read_release(resumed).certificate.drawn == {"mixtures": 20}
    assert_paid_once(ledger)


@pytest.mark.parametrize("settings", [{"L": 0}, {"clip": 0}, {"clip": 1.1}, {"label": 0}, {"sigma": 0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        method_named("dpmix", settings)
