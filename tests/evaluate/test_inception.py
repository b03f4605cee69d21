"""Inception-v3: shapes and names of the published weight files, with random weights, since none come with Limbeck."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import working as work
from limbeck.errors import BadInput, LimbeckError
from limbeck.evaluate.inception import TENSORFLOW, TORCHVISION, Conv, InceptionV3, MixedA, MixedE, read_inception
from limbeck.progress import Silent

Cli = Callable[..., Any]


def random_weights(classes: int) -> dict[str, Tensor]:
    torch.manual_seed(0)
    network = InceptionV3(classes)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)  # so that features differ between pictures
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return {name: value.clone() for name, value in network.state_dict().items()}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inception") / "weights.safetensors"
    # torchvision's file also holds the auxiliary classifier, which no feature needs.
    save_file({**random_weights(1008), "AuxLogits.fc.bias": torch.zeros(3)}, path)
    return path


def test_the_names_and_sizes_are_those_of_the_published_files() -> None:
    with torch.device("meta"):
        network = InceptionV3(1000)
    state = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    # The number of parameters of torchvision's network without its auxiliary classifier.
    assert sum(value.numel() for value in network.parameters()) == 23_834_568
    assert state["Conv2d_1a_3x3.conv.weight"] == (32, 3, 3, 3)
    assert state["Mixed_5b.branch5x5_2.conv.weight"] == (64, 48, 5, 5)
    assert state["Mixed_6b.branch7x7dbl_2.conv.weight"] == (128, 128, 7, 1)
    assert state["Mixed_7a.branch7x7x3_4.conv.weight"] == (192, 192, 3, 3)
    assert state["Mixed_7c.branch3x3dbl_3b.bn.running_var"] == (384,)
    assert state["fc.weight"] == (1000, 2048)


def test_the_maps_have_the_published_sizes() -> None:
    network, sizes = InceptionV3(1008).eval(), {}
    for name in ("Conv2d_4a_3x3", "Mixed_5d", "Mixed_6e", "Mixed_7c"):
        getattr(network, name).register_forward_hook(
            lambda module, inputs, output, name=name: sizes.update({name: tuple(output.shape[1:])})
        )
    with torch.no_grad():
        assert network(torch.zeros(1, 3, 299, 299)).shape == (1, 2048)
    assert sizes == {
        "Conv2d_4a_3x3": (192, 71, 71),
        "Mixed_5d": (288, 35, 35),
        "Mixed_6e": (768, 17, 17),
        "Mixed_7c": (2048, 8, 8),
    }


def test_a_layer_is_convolution_stored_batch_norm_and_relu() -> None:
    torch.manual_seed(0)
    layer = Conv(3, 4, 3)
    layer.bn.running_mean.uniform_(-1, 1)
    layer.bn.running_var.uniform_(0.5, 2)
    x = torch.randn(5, 3, 6, 6)
    expected = torch.relu(layer.bn.eval()(layer.conv(x)))
    torch.testing.assert_close(layer.train()(x), expected)  # also in training mode: no record sees another one
    torch.testing.assert_close(layer(x[:1]), expected[:1])


def test_the_two_variants_pool_in_their_own_ways() -> None:
    torch.manual_seed(0)
    x = torch.rand(1, 192, 5, 5) + 1
    counted, uncounted = MixedA(192, 32, True), MixedA(192, 32, False)
    uncounted.load_state_dict(counted.state_dict())
    difference = (counted(x) - uncounted(x)).abs()
    assert difference[:, :, 1:-1, 1:-1].max() < 1e-5 < difference[:, -32:, 0].max()
    averaged, largest = MixedE(16, True, False), MixedE(16, True, True)
    largest.load_state_dict(averaged.state_dict())
    y = torch.rand(1, 16, 5, 5)
    same, other = (averaged(y) - largest(y)).abs().split([1856, 192], 1)
    assert same.max() < 1e-5 < other.max()


def test_reading_weights(weights: Path) -> None:
    inception = read_inception(weights)
    assert inception.variant == TENSORFLOW and len(inception.sha256) == 64
    x = torch.rand(3, 1, 8, 8) * 2 - 1
    features = inception.features(x, Silent())
    assert features.shape == (3, 2048) and torch.isfinite(features).all()
    torch.testing.assert_close(inception.features(x[1:2], Silent()), features[1:2], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        inception.features(x.expand(-1, 3, -1, -1)[:1], Silent()), features[:1], rtol=1e-3, atol=1e-4
    )
    assert inception.network.Mixed_7c.take_maximum and not inception.network.Mixed_7c.count_padding


def test_torchvision_weights_are_called_so(tmp_path: Path) -> None:
    save_file(random_weights(1000), tmp_path / "w.safetensors")
    inception = read_inception(tmp_path / "w.safetensors")
    assert inception.variant == TORCHVISION and inception.network.Mixed_5b.count_padding


def test_wrong_files_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file({"fc.bias": torch.zeros(10)}, path)
    with pytest.raises(BadInput, match="found 10"):
        read_inception(path)
    save_file({"other": torch.zeros(10)}, path)
    with pytest.raises(BadInput, match="found none"):
        read_inception(path)
    save_file({"fc.bias": torch.zeros(1008), "Conv2d_1a_3x3.conv.weight": torch.zeros(2)}, path)
    with pytest.raises(BadInput, match=r"Conv2d_1a_3x3.conv.weight of shape \(32, 3, 3, 3\), found shape \(2,\)"):
        read_inception(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(BadInput, match="safetensors"):
        read_inception(path)
    with pytest.raises(LimbeckError, match="no file"):
        read_inception(tmp_path / "nowhere")


def test_a_pickled_file_is_not_opened_but_its_owner_is_told_how_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    torch.save({"fc.bias": torch.zeros(1008)}, path)
    with pytest.raises(BadInput, match="pickled") as refused:
        read_inception(path)
    assert refused.value.next_command is not None and "weights_only=True" in refused.value.next_command


def test_fid_stands_under_its_own_name(
    cli: Cli, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limbeck.evaluate.inception.SIDE", 75)  # the smallest picture that all layers can read
    request = work.asked(ledger=str(tmp_path / "ledger.sqlite"))
    plan, source = work.plan_for(request.data, "ldpdc", {"per_class": 1, "L": 20, "sigma": 2.0}, None, 1e-5)
    release = work.condense(request, plan, source, tmp_path / "set", Silent()).release
    arguments = ("fidelity", release, "--data", "digits", "--judge-epochs", 1, "--most", 8, "--inception", weights)
    result = cli(*arguments, "--json").json
    assert result["fid"]["weights"] == TENSORFLOW and result["fid"]["set"] > 0 and "fid" not in result["set"]
    assert result["test_records"] == 8
