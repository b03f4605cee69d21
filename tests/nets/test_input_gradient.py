"""The gradient with respect to the input of a convolution is that of the library, whichever way it is computed."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from limbeck.nets.kernels.fused import compiler_works
from limbeck.nets.kernels.input_gradient import input_gradient, shift_piece


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("channels", "padding"), [(1, 3), (1, 1), (3, 1), (3, 0), (3, 2), (5, 1)])
def test_it_equals_autograd(channels: int, padding: int, compiled: bool) -> None:
    if compiled and not compiler_works():
        pytest.skip("no compiler")
    x = torch.randn(4, channels, 9, 7, requires_grad=True)
    weight = torch.randn(6, channels, 3, 3)
    maps = F.conv2d(x, weight, padding=padding)
    flow = torch.randn_like(maps)
    (expected,) = torch.autograd.grad(maps, x, flow)
    found = input_gradient(flow.permute(0, 2, 3, 1).contiguous(), weight, padding, (9, 7), compiled)
    torch.testing.assert_close(found.permute(0, 3, 1, 2), expected, rtol=1e-4, atol=1e-4)


def test_a_kernel_of_another_size_is_left_to_the_library() -> None:
    x, weight = torch.randn(2, 1, 8, 8, requires_grad=True), torch.randn(4, 1, 5, 5)
    maps = F.conv2d(x, weight, padding=2)
    (expected,) = torch.autograd.grad(maps.sum(), x)
    flow = torch.ones_like(maps).permute(0, 2, 3, 1).contiguous()
    found = input_gradient(flow, weight, 2, (8, 8), compiled=True)
    torch.testing.assert_close(found.permute(0, 3, 1, 2), expected, rtol=1e-4, atol=1e-4)


def test_every_place_is_shifted_by_its_own_offset() -> None:
    # Nine products of one channel, the one of place k being k everywhere: inside, a pixel gets 0 + 1 + ... + 8.
    products = torch.arange(9.0).view(1, 9, 1, 1).expand(1, 9, 6, 6)
    assert torch.equal(shift_piece(products, 3), torch.full((1, 1, 4, 4), 36.0))
