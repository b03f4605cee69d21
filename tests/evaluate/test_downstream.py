"""Training on a set and scoring on another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.evaluate import downstream
from limbeck.evaluate.downstream import Score, accuracy, area_under_curve, train
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import choose
from limbeck.evaluate.presets import PRESETS, Preset
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.scoring import Outcome, TrainingSet, score_models
from limbeck.progress import Reporter, Silent

TINY = Preset(name="tiny", width=8, epochs=12, batch=32, lr=0.05, augment=("crop",))


def separable(shape: tuple[int, ...], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Three classes, each around a pattern of its own."""
    centres = torch.randn(3, *shape, generator=torch.Generator().manual_seed(9))
    y = torch.arange(60) % 3
    return centres[y] + 0.3 * torch.randn(60, *shape, generator=torch.Generator().manual_seed(seed)), y


def scores_of(
    training: TrainingSet, test: Labelled, models: list[str], repeats: int = 3, reporter: Reporter | None = None
) -> dict[str, Score]:
    scoring = Scoring(choices=tuple(choose(models, tuple(training.x.shape[1:]))), preset=TINY, repeats=repeats)
    found = score_models(training, [test], scoring, reporter or Silent())
    return {each.model: each.score for each in found if each.score is not None}


class Counted(Silent):
    """Notes what a reporter is told."""

    def __init__(self) -> None:
        self.total, self.seen = 0, []  # type: ignore[var-annotated]

    def start(self, title: str, total: int, first: int) -> None:
        self.total = total

    def advance(self, step: int) -> None:
        self.seen.append((step, self.total))


@pytest.mark.parametrize(
    ("model", "shape"),
    [("convnet", (1, 8, 8)), ("mlp", (1, 8, 8)), ("mlp", (14,)), ("linear", (14,))],
)
def test_training_learns_separable_data(model: str, shape: tuple[int, ...]) -> None:
    x, y = separable(shape)
    test_x, test_y = separable(shape, seed=1)
    assert accuracy(train(model, x, y, 3, TINY), test_x, test_y) > 90


def test_the_seed_fixes_the_network() -> None:
    x, y = separable((1, 8, 8))
    first, second, other = (train("convnet", x, y, 3, TINY, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.head.weight, second.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)


def test_soft_labels_train_and_are_reported() -> None:
    x, y = separable((14,))
    soft = 0.8 * F.one_hot(y, 3) + 0.2 / 3
    scores = scores_of(TrainingSet(x=x, y=soft, classes=3), Labelled(*separable((14,), seed=1)), ["mlp"], repeats=1)
    assert scores["mlp"].labels == "soft" and scores["mlp"].mean > 90 and scores["mlp"].std is None


def test_every_network_is_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = separable((14,))
    asked, logits = [], downstream._logits
    monkeypatch.setattr(downstream, "_logits", lambda *given: asked.append(1) or logits(*given))
    counted = Counted()
    scores = scores_of(TrainingSet(x=x, y=y, classes=3), Labelled(x, y), ["mlp", "linear"], 2, counted)
    for score in scores.values():
        one, other = score.runs
        assert score == Score((one + other) / 2, abs(one - other) / 2**0.5, score.runs, "hard")
        # The confusions are of the very same answers.
        assert sum(score.confusion[at][at] for at in range(3)) * 100 / len(y) == pytest.approx(one + other)
    assert len(asked) == 4 and counted.seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_two_classes_have_an_area_under_the_curve() -> None:
    x, y = separable((14,))
    two = y < 2
    network = train("linear", x[two], y[two], 2, TINY)
    by_score = (network(x[two])[:, 1] - network(x[two])[:, 0]).detach()
    pairs = by_score[y[two] == 1][:, None] > by_score[y[two] == 0][None]
    assert area_under_curve(network, x[two], y[two]) == pytest.approx(100 * pairs.float().mean().item())
    # Turned round, the best order is the worst; with one class there is none.
    assert area_under_curve(network, x[two], 1 - y[two]) == pytest.approx(100 * (1 - pairs.float().mean().item()))
    assert area_under_curve(network, x[y == 0], y[y == 0]) is None
    scores = scores_of(TrainingSet(x=x[two], y=y[two], classes=2), Labelled(x[two], y[two]), ["mlp", "gaussian-nb"], 2)
    assert len(scores["mlp"].areas) == 2 and scores["gaussian-nb"].areas == ()
    row = Outcome(model="mlp", records=40, preset=TINY, score=scores["mlp"]).row.to_dict()
    assert row["area_under_curve"]["mean"] > 90


@pytest.mark.parametrize("model", ["convnet", "lenet"])
def test_image_models_refuse_tables_before_any_training(model: str) -> None:
    x, y = separable((14,))
    with pytest.raises(BadInput, match="images"):
        scores_of(TrainingSet(x=x, y=y, classes=3), Labelled(x, y), ["mlp", model])


def test_lenet_trains() -> None:
    x, y = separable((1, 8, 8))
    slow_starter = Preset(name="lenet", epochs=60, batch=32, lr=0.05, augment=())
    assert accuracy(train("lenet", x, y, 3, slow_starter), x, y) > 90


def test_refusals() -> None:
    x, y = separable((14,))
    for labels in (y[:5], y + 1, y.float(), F.one_hot(y, 4)):
        with pytest.raises(BadInput):
            train("mlp", x, labels, 3, TINY)
    for model, preset in (("forest", "paper"), ("mlp", "hasty")):
        with pytest.raises(BadInput, match="Choose"):
            train(model, x, y, 3, preset)


def test_the_papers_protocol() -> None:
    paper = PRESETS["paper"]
    assert (paper.width, paper.epochs, paper.batch, paper.lr, paper.momentum, paper.weight_decay) == (
        128, 300, 256, 0.01, 0.9, 5e-4
    )  # fmt: skip
