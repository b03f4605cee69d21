"""Names and groups of models, and the scores that stand beside a score."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.evaluate import downstream
from limbeck.evaluate.accuracy import Accuracy
from limbeck.evaluate.baselines import ClassifiersMean, calibrated
from limbeck.evaluate.downstream import Score, Task, accuracy, score_model, train
from limbeck.evaluate.labelled import Labelled
from limbeck.evaluate.models import ARCHITECTURES, CLASSIFIERS, GROUPS, NETWORKS, build_model, choose
from limbeck.evaluate.presets import OPTIMISTIC, PRESETS, Preset
from limbeck.evaluate.protocol import Scoring
from limbeck.evaluate.scoring import SLOW_RECORDS, Outcome, TrainingSet, noise_like, score_models
from limbeck.progress import Silent

TINY = Preset(name="tiny", width=8, epochs=3, batch=16, lr=0.05, augment=())
IMAGE, TABLE = (1, 8, 8), (14,)


def clusters(shape: tuple[int, ...], records: int = 60, seed: int = 0) -> tuple[Tensor, Tensor]:
    centres = torch.rand(3, *shape, generator=torch.Generator().manual_seed(9)) * 2 - 1
    y = torch.arange(records) % 3
    return centres[y] + 0.2 * torch.randn(records, *shape, generator=torch.Generator().manual_seed(seed)), y


def test_all_are_nineteen() -> None:
    assert len(ARCHITECTURES) == 6 and len(CLASSIFIERS) == 13
    assert [choice.model for choice in choose(["all"], IMAGE)] == [*ARCHITECTURES, *CLASSIFIERS]
    assert len(set(GROUPS["all"])) == 19


def test_names_groups_and_repeats() -> None:
    names = ["random_forest", "Nets", "mlp", "linear"]
    assert [choice.model for choice in choose(names, IMAGE)] == ["random-forest", *ARCHITECTURES, "linear"]
    for wrong in (["forest"], [], ["all", "svm"]):
        with pytest.raises(BadInput, match="Choose"):
            choose(wrong, IMAGE)


def test_a_group_on_tables_leaves_rows_empty_and_a_name_is_refused() -> None:
    skipped = {choice.model for choice in choose(["all"], TABLE) if choice.skipped}
    assert skipped - {"xgboost"} == {"convnet", "lenet", "alexnet", "vgg11", "resnet18", "cnn"}
    with pytest.raises(BadInput, match="images"):
        choose(["mlp", "vgg11"], TABLE)
    with pytest.raises(BadInput, match="8x8"):
        choose(["cnn"], (1, 7, 7))


def test_without_xgboost_its_row_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "xgboost" else real(name))
    for names in (["all"], ["xgboost", "lda"], ["xgboost"]):
        (row,) = (choice for choice in choose(names, IMAGE) if choice.model == "xgboost")
        assert row.skipped is not None and "pip install 'limbeck[xgboost]'" in row.skipped


@pytest.mark.parametrize("model", NETWORKS)
def test_every_network_is_built_and_repeats_itself(model: str) -> None:
    first, second, other = (build_model(model, IMAGE, 3, TINY, seed).eval() for seed in (0, 0, 1))
    x = torch.randn(4, *IMAGE)
    assert torch.equal(first(x), second(x)) and not torch.equal(first(x), other(x))


def test_dropout_repeats_itself_and_leaves_the_global_generator_alone() -> None:
    x, y = clusters(IMAGE)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = train("cnn", x, y, 3, TINY, seed=1)
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(6)
    assert torch.equal(first.head.weight, train("cnn", x, y, 3, TINY, seed=1).head.weight)


def test_unit_inputs_are_the_same_numbers_shifted() -> None:
    unit = Preset(name="unit", inputs="unit")
    signed, shifted = (build_model("mlp", TABLE, 3, preset, 0) for preset in (TINY, unit))
    x = torch.rand(5, *TABLE) * 2 - 1
    torch.testing.assert_close(shifted(x), signed((x + 1) / 2))


def test_the_best_epoch_is_reported_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([40.0, 90.0, 60.0, 50.0, 55.0, 70.0])
    monkeypatch.setattr(downstream, "accuracy", lambda *_: next(looks))
    watched = Preset(name="watched", epochs=3, batch=16, augment=(), every_epoch=True)
    x, y = clusters(TABLE)
    score = score_model("mlp", Task(x, y, (Labelled(x, y),), 3), watched, 2)
    assert score.runs == (60.0, 70.0) and score.best == (90.0, 70.0) and score.mean == 65.0
    values = Outcome(model="mlp", records=60, preset=watched, score=score).row.to_dict()
    assert values["mean"] == 65.0 and values["best_on_test"]["mean"] == 80.0
    assert values["best_on_test"]["selection"] == OPTIMISTIC
    assert next(looks, None) is None  # the last epoch is not looked at twice


def test_only_the_preset_that_says_so_looks_at_every_epoch() -> None:
    assert [name for name, preset in PRESETS.items() if preset.every_epoch] == ["datalens"]


def test_the_papers_presets() -> None:
    assert (PRESETS["psg"].epochs, PRESETS["psg-full"].epochs, PRESETS["psg"].augment) == (300, 40, ("crop", "scale"))
    assert (PRESETS["dpdc"].epochs, PRESETS["dpdc"].networks) == (300, 1)
    lens = PRESETS["datalens"]
    assert (lens.epochs, lens.batch, lens.lr, lens.momentum, lens.models) == (600, 512, 2e-3, 0.0, ("cnn",))
    assert lens.course.lr_at(599) == lens.lr
    gs = PRESETS["gs-wgan"]
    assert gs.networks == 5 and GROUPS[gs.models[0]] == CLASSIFIERS and gs.course.lr_at(39) == 10 * gs.course.lr_at(40)
    for preset in PRESETS.values():
        assert preset.source and preset.for_size(60_000).name in PRESETS and preset.for_size(500) is preset


def test_classifiers_without_chance_are_fitted_once() -> None:
    x, y = clusters(TABLE)
    task = Task(x, y, (Labelled(x, y),), 3)
    assert len(score_model("lda", task, TINY, 3).runs) == 1
    assert len(score_model("decision-tree", task, TINY, 3).runs) == 3


def test_rows_for_all_choices_also_where_one_fails() -> None:
    x, y = torch.zeros(6, *TABLE), torch.arange(6) % 3  # a stump is no better than chance on records that are all alike
    choices = choose(["adaboost", "gaussian-nb", "cnn", "all"][:2], TABLE)
    scoring = Scoring(choices=tuple(choices), preset=TINY, repeats=2)
    rows = score_models(TrainingSet(x=x, y=y, classes=3), [Labelled(x, y)], scoring, Silent())
    assert [row.model for row in rows] == ["adaboost", "gaussian-nb"]
    assert rows[0].score is None and "adaboost" in str(rows[0].row.to_dict()["skipped"])
    assert isinstance(rows[1].score, Score)


def test_real_records_are_thinned_out_for_slow_models() -> None:
    x, y = torch.zeros(SLOW_RECORDS + 5, 2), torch.arange(SLOW_RECORDS + 5) % 2
    real = TrainingSet(x=x, y=y, classes=2, real=True)
    assert real.records("resnet18") == SLOW_RECORDS and real.records("lda") == SLOW_RECORDS + 5
    few = TrainingSet(x=x, y=y, classes=2, real=True, subsample=100)
    assert few.task("lda", [Labelled(x, y)], 0).x.shape[0] == 100 == few.records("resnet18")
    own = TrainingSet(x=x, y=y, classes=2)
    assert own.records("resnet18") == SLOW_RECORDS + 5


def test_a_subsample_keeps_labels_with_their_records() -> None:
    y = torch.arange(50) % 5
    training = TrainingSet(x=y[:, None].float(), y=y, classes=5, real=True, subsample=20)
    task = training.task("lda", [Labelled(y[:, None].float(), y)], 3)
    assert torch.equal(task.x[:, 0].long(), task.y) and task.x.shape[0] == 20


def test_calibrated_accuracy() -> None:
    accuracy = {"lda": Accuracy(44.0), "cnn": Accuracy(50.0), "gbm": Accuracy(1.0)}
    assert calibrated(accuracy, {"lda": Accuracy(88.0), "cnn": Accuracy(0.0)}) == {"lda": 50.0}
    assert ClassifiersMean.of({"lda": 50.0, "cnn": 60.0, "convnet": 0.0}) == ClassifiersMean(classifiers=2, mean=55.0)
    assert ClassifiersMean.of({"lda": 50.0}) is None


def test_noise_teaches_nothing_about_the_test_records() -> None:
    x, y = clusters(IMAGE, 300)
    noise = noise_like(x, 0)
    assert noise.shape == x.shape and -1 <= float(noise.min()) < -0.9 and 0.9 < float(noise.max()) <= 1
    assert torch.equal(noise, noise_like(x, 0)) and not torch.equal(noise, noise_like(x, 1))
    test_x, test_y = clusters(IMAGE, 300, seed=1)
    assert accuracy(train("mlp", x, y, 3, TINY), test_x, test_y) > 90
    scores = [accuracy(train("mlp", noise_like(x, seed), y, 3, TINY), test_x, test_y) for seed in range(5)]
    assert sum(scores) / 5 < 60


def test_numbers_that_are_not_finite_are_refused() -> None:
    x, y = clusters(TABLE)
    x[3, 2] = float("nan")
    with pytest.raises(BadInput, match="finite"):
        Task(x, y, (Labelled(x, y),), 3)
