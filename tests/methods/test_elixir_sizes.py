"""Elixir on large pictures: they are averaged down inside the vault, and the set is set up again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from limbeck import Condenser
from limbeck.errors import BadInput
from limbeck.evaluate.models import network_spec
from limbeck.evaluate.presets import preset_named
from limbeck.methods import method_named, settings_of
from limbeck.methods.elixir.method import Elixir
from limbeck.nets import NetSpec
from limbeck.nets.features.pooled import enlarged, pooled
from limbeck.nets.generators.spec import build_generator
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Residual
from limbeck.vault.local import LocalVault
from limbeck.vault.process.codec import pack, unpack

LARGE = Schema(
    name="large",
    shape=(1, 64, 56),
    classes=("a", "b"),
    records=60,
    class_sizes=(30, 30),
    augmentation=(),
    low=0,
    high=255,
)
FEW: dict[str, Any] = {"T": 2, "L": 5, "networks": 2, "memory": 2, "width": 4, "sigma": 2.0}


def resolved(schema: Schema, **settings: Any) -> Elixir:
    found = method_named("elixir", settings).resolved(schema, 1.0)
    assert isinstance(found, Elixir)
    return found


def test_the_vault_is_asked_for_small_pictures_and_the_set_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    ask = LocalVault.ask

    def listen(self: LocalVault, grant: Any, label: str, index: int, mapping: Any) -> Any:
        asked.append(mapping)
        return ask(self, grant, label, index, mapping)

    monkeypatch.setattr(LocalVault, "ask", listen)
    x = np.random.default_rng(0).integers(0, 255, (60, *LARGE.shape), dtype=np.uint8)
    condenser = Condenser("elixir", None, 1e-3, per_class=2, settings=FEW, ledger=tmp_path / "ledger.sqlite")
    schema = dataclasses.replace(LARGE, resize="crop")
    made = condenser.fit(x, np.arange(60) % 2, schema=schema)
    assert made.certificate_.public_assumptions == schema  # what is printed of it holds for pictures that were cropped
    assert made.X_.shape == (4, *LARGE.shape) and made.plan_.settings["size"] == 32
    assert [tuple(mapping.size) for mapping in asked] == [(32, 28)] * 7  # five for the initial set, two of networks
    spec = made.generator_.spec  # its network makes small pictures too, which are set up
    assert (spec.kind, spec.size) == ("smooth_dcgan", 32)
    drawn, _ = made.generator_.sample(5)
    assert drawn.shape == (5, *LARGE.shape) and np.abs(drawn).max() <= 1
    network = build_generator(dataclasses.replace(spec, size=0), (1, 32, 28), 2, seed=0)
    network.load_state_dict(made.generator_.trained.weights)
    latents, labels = spec.latents(6, torch.Generator().manual_seed(1)), torch.arange(6) % 2
    averaged = pooled(made.generator_.network(latents, labels), (32, 28))
    assert (averaged - network(latents, labels)).abs().max() < 0.05


def test_a_plan_from_before_there_were_sizes_works_on_pictures_as_they_are() -> None:
    """Run folders of earlier versions state all settings but this one; their stored answers are to be found again."""
    old = settings_of(resolved(LARGE))
    del old["size"]
    questions = method_named("elixir", old).questions(LARGE)  # type: ignore[attr-defined]
    assert questions.size is None and questions.schema is LARGE and questions.net.depth == 3
    net = questions.net
    weights: dict[str, torch.Tensor] = {}
    asked = dataclasses.replace(questions.again(_replay(net), weights), size=None)
    assert "size" not in asked.parameters()


def _replay(net: NetSpec) -> Any:
    class Replay:
        step, centre, scale = 0, torch.zeros(2, 4), 1.0
        fourier_centre, fourier_scale = torch.zeros(2, 256), 1.0

    return Replay()


@pytest.mark.parametrize(
    ("shape", "size", "worked_on", "depth"),
    [
        ((3, 32, 32), None, (3, 32, 32), 3),
        ((3, 128, 96), None, (3, 32, 24), 3),
        ((3, 128, 96), 64, (3, 64, 48), 3),
        ((3, 128, 128), 64, (3, 64, 64), 4),
        ((3, 128, 128), 128, (3, 128, 128), 5),
        ((3, 128, 128), 0, (3, 128, 128), 3),
        ((1, 200, 3), None, (1, 32, 2), 3),
    ],
)
def test_the_working_size(shape: tuple[int, ...], size: int | None, worked_on: tuple[int, ...], depth: int) -> None:
    schema = dataclasses.replace(LARGE, shape=shape)
    method = resolved(schema, **({} if size is None else {"size": size}))
    questions = method.questions(schema)
    assert questions.schema.shape == worked_on and questions.net.depth == depth
    assert (questions.size is None) == (worked_on == shape)


def test_schema_and_questions_reach_a_vault_behind_a_socket_as_they_are() -> None:
    """With the digest that a vault in this process has of them, so that stored answers are found again."""
    question = Residual(centre=torch.zeros(2, 16), scale=1.0, size=(4, 4))
    for value in (question, dataclasses.replace(question, size=None), dataclasses.replace(LARGE, resize="fit")):
        tensors: list[torch.Tensor] = []
        back = unpack(type(value), json.loads(json.dumps(pack(value, tensors))), tuple(tensors))
        if isinstance(value, Residual):
            assert back.digest() == value.digest() and back.size == value.size
        else:
            assert back == value
    for size in ((0, 4), (4,), (1 << 20, 4)):
        with pytest.raises(BadInput, match="size must be"):
            dataclasses.replace(question, size=size)


def test_an_enlarged_picture_averages_to_what_it_was() -> None:
    small = torch.rand((3, 2, 8, 7), generator=torch.Generator().manual_seed(0)) * 2 - 1
    for size, off in (((32, 28), 0.03), ((30, 29), 0.07)):  # areas that overlap are set right more slowly
        large = enlarged(small, size)
        assert large.shape == (3, 2, *size) and (pooled(large, (8, 7)) - small).abs().max() < off
    assert pooled(small, None) is small and pooled(small, (8, 7)) is small
    for size in ((9, 7), (8, 8)):
        with pytest.raises(BadInput, match="cannot be averaged down"):
            pooled(small, size)


def test_a_convnet_that_scores_is_deeper_for_larger_pictures() -> None:
    depths = [network_spec("convnet", preset_named("cpu"), (3, side, side)).depth for side in (28, 32, 64, 128, 224)]
    assert depths == [3, 3, 4, 5, 6]
