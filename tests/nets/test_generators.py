"""Generators: what their networks cannot draw."""

from __future__ import annotations

import pytest
import torch

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
