"""The fast embedding is the slow one, only faster."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.errors import BadInput
from limbeck.nets import FrozenEmbedding, NetSpec, build
from limbeck.nets.kernels.fused import backward_piece, forward_piece

WIDE = NetSpec(kind="convnet", width=32)  # wide enough at 28x28 for the compiled path, where there is a compiler
CASES = [
    (WIDE, (1, 28, 28)),
    (NetSpec(kind="convnet", width=8), (1, 8, 8)),
    (NetSpec(kind="convnet", width=4), (3, 32, 32)),
    (NetSpec(kind="mlp", width=16), (1, 8, 8)),
    (NetSpec(kind="linear", width=64), (14,)),
]


def pictures(count: int) -> Tensor:
    """Smooth blobs on a black ground, the hard case for low precision: most of the signal is constant."""
    noise = torch.rand(count, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    blobs = F.avg_pool2d(noise, 7, stride=1, padding=3)
    return ((blobs - 0.5).clamp_min(0) * 8).clamp_max(1) * 2 - 1


@pytest.mark.parametrize(("spec", "shape"), CASES)
def test_float32_equals_the_network(spec: NetSpec, shape: tuple[int, ...]) -> None:
    x = torch.randn(7, *shape)
    fast = FrozenEmbedding(spec, shape, seed=3, precision="float32")
    torch.testing.assert_close(fast(x), build(spec, shape, 1, seed=3).embed(x), rtol=1e-4, atol=1e-4)
    assert fast(x[:0]).shape == (0, fast.features)


@pytest.mark.parametrize(("spec", "shape"), CASES)
def test_float32_gradient_equals_autograd(spec: NetSpec, shape: tuple[int, ...]) -> None:
    x = torch.randn(5, *shape, requires_grad=True)
    fast, slow = FrozenEmbedding(spec, shape, seed=3, precision="float32"), build(spec, shape, 1, seed=3)
    direction = torch.randn(5, fast.features)
    gradients = [torch.autograd.grad((embed(x) * direction).sum(), x)[0] for embed in (fast, slow.embed)]
    assert F.cosine_similarity(gradients[0].flatten(1), gradients[1].flatten(1)).min() > 0.9999


def test_bfloat16_stays_close() -> None:
    x = pictures(8).requires_grad_()
    fast, slow = FrozenEmbedding(WIDE, (1, 28, 28), seed=3, precision="bfloat16"), build(WIDE, (1, 28, 28), 1, seed=3)
    assert F.cosine_similarity(fast(x), slow.embed(x)).min() > 0.999
    gradients = [torch.autograd.grad(embed(x).square().sum(), x)[0].flatten(1) for embed in (fast, slow.embed)]
    assert F.cosine_similarity(gradients[0], gradients[1]).min() > 0.98


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_row_depends_on_its_own_record_only(precision: str) -> None:
    embed = FrozenEmbedding(WIDE, (1, 28, 28), seed=0, precision=precision)
    x = pictures(6)
    changed = x.clone()
    changed[4] = 100.0
    difference = (embed(x) - embed(changed)).abs().amax(1)
    assert difference[4] > 0 and difference[[0, 1, 2, 3, 5]].max() == 0


def test_chunks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    embed = FrozenEmbedding(WIDE, (1, 28, 28), seed=0, precision="float32")
    x = pictures(7).requires_grad_()
    whole = embed(x)
    (gradient,) = torch.autograd.grad(whole.square().sum(), x)
    monkeypatch.setattr("limbeck.nets.features.embedding.CHUNK_NUMBERS", 3 * 32 * 32 * 32)
    parts = embed(x)
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(torch.autograd.grad(parts.square().sum(), x)[0], gradient, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("side", "pool"), [(6, 2), (7, 2), (2, 1)])
def test_pieces_agree_with_autograd_without_a_compiler(side: int, pool: int) -> None:
    y = torch.randn(3, 4, side, side, requires_grad=True)
    gain, bias = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    expected = F.avg_pool2d(torch.relu(F.group_norm(y, 4, gain, bias)), pool)
    maps = y.detach().permute(0, 2, 3, 1).contiguous()
    pooled, mean, rstd = forward_piece(maps, gain.detach(), bias.detach(), 1e-5, pool)
    torch.testing.assert_close(pooled.permute(0, 3, 1, 2), expected, rtol=1e-4, atol=1e-5)
    grad = torch.randn_like(expected)
    torch.autograd.backward(expected, grad)
    flow = grad.permute(0, 2, 3, 1).contiguous()
    grads = backward_piece(maps, mean, rstd, gain.detach(), bias.detach(), flow, pool)
    found = (grads[0].permute(0, 3, 1, 2), grads[1].sum(0), grads[2].sum(0))
    for ours, theirs in zip(found, (y, gain, bias), strict=True):
        torch.testing.assert_close(ours, theirs.grad, rtol=1e-3, atol=1e-4)


def test_refusals() -> None:
    with pytest.raises(BadInput, match="precision"):
        FrozenEmbedding(WIDE, (1, 28, 28), seed=0, precision="float16")
    with pytest.raises(BadInput, match="shape"):
        FrozenEmbedding(WIDE, (1, 28, 28), seed=0)(torch.zeros(2, 1, 8, 8))
