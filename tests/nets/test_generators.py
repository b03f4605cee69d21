"""Generators: what their networks cannot draw."""

from __future__ import annotations

import pytest
import torch

from limbeck.errors import BadInput
from limbeck.nets.features.pooled import pooled
from limbeck.nets.generators.dcgan import SmoothDCGAN
from limbeck.nets.generators.spec import GeneratorSpec, build_generator


def alternating(height: int, wide: int, across: bool) -> torch.Tensor:
    """1, -1, 1, ... along one axis."""
    signs = 1 - 2 * (torch.arange(wide if across else height) % 2).float()
    return (signs[None, :] if across else signs[:, None]).expand(height, wide)[None, None]


@pytest.mark.parametrize("across", [True, False])
def test_a_smooth_generator_lets_no_checkerboard_pass(across: bool) -> None:
    network = SmoothDCGAN((1, 28, 28), 10, 24, 32)
    pattern, even = alternating(28, 28, across), torch.full((1, 1, 28, 28), 0.3)
    inside = (slice(None), slice(None), slice(1, -1), slice(1, -1))
    assert float(network.finished(pattern)[inside].abs().max()) < 1e-6
    assert torch.allclose(network.finished(even), even)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (3, 20, 48)])
def test_a_smooth_generator_makes_pictures_of_any_shape_and_is_rebuilt_from_its_spec(shape: tuple[int, ...]) -> None:
    spec = GeneratorSpec.from_dict({"kind": "smooth_dcgan", "latent": 24, "law": "normal", "width": 4, "fitted": 0})
    made, again = (build_generator(spec, shape, 3, seed=1) for _ in range(2))
    latents, labels = spec.latents(6, torch.Generator().manual_seed(0)), torch.arange(3).repeat(2)
    pictures = made(latents, labels)
    assert pictures.shape == (6, *shape) and float(pictures.detach().abs().max()) <= 1
    assert torch.equal(pictures, again(latents, labels))


def test_a_network_that_makes_small_pictures_is_stated_with_their_size() -> None:
    """Descriptions of networks without it stay as they were, so that earlier versions read them."""
    spec = GeneratorSpec(kind="smooth_dcgan", latent=3, width=4, size=16)
    assert spec.to_dict()["size"] == 16 and GeneratorSpec.from_dict(spec.to_dict()) == spec
    assert set(GeneratorSpec(kind="dcgan", latent=3).to_dict()) == {"kind", "latent", "law", "width", "fitted"}
    large, small = build_generator(spec, (3, 64, 40), 2, seed=1), build_generator(spec, (3, 16, 10), 2, seed=1)
    latents, labels = spec.latents(4, torch.Generator().manual_seed(0)), torch.tensor([0, 1, 1, 0])
    made = large(latents, labels)
    assert made.shape == (4, 3, 64, 40) and float(made.detach().abs().max()) <= 1
    assert small(latents, labels).shape == (4, 3, 16, 10) and set(large.state_dict()) == set(small.state_dict())
    assert torch.allclose(pooled(made, (16, 10)), small(latents, labels), atol=0.05)


@pytest.mark.parametrize("values", [{"size": -1}, {"size": True}, {"kind": "gauss"}])
def test_a_generator_that_is_none_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        GeneratorSpec.from_dict({"kind": "gaussian", "latent": 2, **values})
