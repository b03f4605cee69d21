"""Time of GS-WGAN's critics at the paper's size: 32 independent ones at once, ours, against 32 calls of a plain PyTorch module.

Two halves. Answering: each critic gives the gradient of its score with respect to an image of its own. Learning: each finds the
gradient of the Wasserstein loss with gradient penalty on 32 records and 32 fakes. 1x28x28, filters 64, 128, 256, spectral
norm, projection on the label. The rival is what one writes first: a module with PyTorch's convolutions and spectral norm,
called once for every critic. Both in one process, in turn, the minimum over the repeats.

    python -m benchmarks.gswgan_critics [--repeats 5] [--threads N] [--width 64]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from limbeck.nets.architectures.critic import CONVOLUTIONS, LEAK, turn_vectors
from limbeck.privacy.schema import Schema
from limbeck.vault.ensemble.critics import Critic
from limbeck.vault.ensemble.ensemble import Ensemble
from limbeck.vault.ensemble.teachers import Batch, EnsembleSpec, balanced

SCHEMA = Schema(name="digits", shape=(1, 28, 28), classes=tuple("0123456789"), records=60_000, low=0, high=255)
CRITICS, RECORDS = 32, 32
RESULT = Path(__file__).parent / "results" / "gswgan_critics.json"


class PlainCritic(nn.Module):
    """One critic, as one writes it in PyTorch; its weights are those of a row of ours."""

    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = (1, width, 2 * width, 4 * width)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, 5, stride=2, padding=2) for before, after in pairwise(sizes)
        )
        self.head = nn.Linear(16 * sizes[-1], 1)
        self.label = nn.Linear(16 * sizes[-1], 10, bias=False)

    def take(self, weights: dict[str, Tensor], row: int) -> PlainCritic:
        with torch.no_grad():
            for name, layer in zip(CONVOLUTIONS, cast(Any, self.convolutions), strict=True):
                kernel = weights[f"{name}.weight"][row].view(5, 5, -1, layer.out_channels).permute(3, 2, 0, 1)
                _set(layer, kernel, weights[f"{name}.vector"][row])
                layer.bias.copy_(weights[f"{name}.bias"][row])
            # Ours has the channels last where a map becomes a vector.
            for name, linear in (("head", self.head), ("label", self.label)):
                matrix = weights[f"{name}.weight"][row].view(4, 4, -1, linear.out_features).permute(3, 2, 0, 1)
                _set(linear, matrix.flatten(1), weights[f"{name}.vector"][row])
            self.head.bias.copy_(weights["head.bias"][row])
        return self.eval()  # PyTorch's spectral norm then leaves its vectors alone, as ours does while it answers

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        for layer in self.convolutions:
            x = F.leaky_relu(layer(x), LEAK)
        features = x.flatten(1)
        told: Tensor = self.head(features)[:, 0]
        return told + (features * self.label.weight[y]).sum(1)


def _set(layer: nn.Conv2d | nn.Linear, weight: Tensor, vector: Tensor) -> None:
    layer.weight.copy_(weight)
    spectral_norm(layer)
    norm = cast(Any, layer).parametrizations.weight[0]
    norm._u.copy_(vector)
    norm._v.copy_(F.normalize(weight.flatten(1).T @ vector, dim=0))


class Work:
    def __init__(self, width: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.teacher = Critic(shape=SCHEMA.shape, classes=10, width=width)
        self.ensemble = Ensemble(
            self.teacher, EnsembleSpec(teachers=CRITICS, batch=RECORDS), SCHEMA, torch.device("cpu")
        )
        for _ in range(100):  # until the norms are exact, so that one turn more or less makes no difference
            turn_vectors(self.ensemble.weights)
        self.plain = [PlainCritic(width).take(self.ensemble.weights, row) for row in range(CRITICS)]
        self.images = torch.rand((CRITICS, 1, 1, 28, 28), generator=generator) * 2 - 1
        self.labels = torch.randint(0, 10, (CRITICS, 1), generator=generator)
        self.reals = torch.rand((CRITICS, RECORDS, 1, 28, 28), generator=generator) * 2 - 1
        self.real_labels = torch.randint(0, 10, (CRITICS, RECORDS), generator=generator)
        self.fakes = torch.rand((1, RECORDS, 1, 28, 28), generator=generator) * 2 - 1
        self.fake_labels = torch.randint(0, 10, (1, RECORDS), generator=generator)

    def chunks(self) -> list[slice]:
        return list(self.ensemble.each_chunk())

    def answer_ours(self) -> Tensor:
        rows = torch.arange(CRITICS)
        parts = [
            self.ensemble.scores_and_gradients(rows[part], self.images[part], self.labels[part])[1]
            for part in self.chunks()
        ]
        return torch.cat(parts)

    def answer_plain(self) -> Tensor:
        found = []
        for critic, image, label in zip(self.plain, self.images, self.labels, strict=True):
            moved = image.clone().requires_grad_(True)
            found.append(torch.autograd.grad(critic(moved, label).sum(), moved)[0])
        return torch.stack(found)

    def learn_ours(self) -> Tensor:
        found = []
        for part in self.chunks():
            weights = {
                name: value[part].clone().requires_grad_(name not in self.teacher.fixed)
                for name, value in self.ensemble.weights.items()
            }
            real = Batch(self.reals[part], self.real_labels[part], torch.ones(len(self.reals[part]), RECORDS))
            fake = Batch(self.fakes, self.fake_labels, torch.ones(1, RECORDS))
            loss = self.teacher.loss(weights, real, fake, torch.Generator().manual_seed(1))
            moving = {name: value for name, value in weights.items() if value.requires_grad}
            gradients = dict(zip(moving, torch.autograd.grad(loss.sum(), list(moving.values())), strict=True))
            found.append(gradients["conv1.bias"])
        return torch.cat(found)

    def learn_plain(self) -> Tensor:
        found = []
        share = torch.rand((1, RECORDS, 1, 1, 1), generator=torch.Generator().manual_seed(1))[0]
        ones = torch.ones(1, RECORDS)
        for critic, x, y in zip(self.plain, self.reals, self.real_labels, strict=True):
            fakes = self.fakes[0]
            weights = balanced(Batch(x[None], y[None], ones), Batch(self.fakes, self.fake_labels, ones), 10)[0]
            apart = (critic(fakes, self.fake_labels[0]) * weights).mean() - critic(x, y).mean()
            between = (share * x + (1 - share) * fakes).requires_grad_(True)
            (slope,) = torch.autograd.grad(critic(between, y).sum(), between, create_graph=True)
            loss = apart + self.teacher.penalty * (slope.flatten(1).norm(dim=1) - 1).square().mean()
            moving = dict(critic.named_parameters())
            gradients = dict(zip(moving, torch.autograd.grad(loss, list(moving.values())), strict=True))
            found.append(gradients["convolutions.0.bias"])
        return torch.stack(found)


def seconds(work: Callable[[], Tensor]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    work = Work(options.width)
    halves = {
        "answer": {"ours": work.answer_ours, "calls": work.answer_plain},
        "learn": {"ours": work.learn_ours, "calls": work.learn_plain},
    }
    differences, best = {}, {}
    times: dict[str, dict[str, list[float]]] = {half: {side: [] for side in sides} for half, sides in halves.items()}
    for half, sides in halves.items():
        found = {side: run() for side, run in sides.items()}
        differences[half] = float((found["ours"] - found["calls"]).norm() / found["calls"].norm())
        for _ in range(options.repeats):
            for side, run in sides.items():
                times[half][side].append(seconds(run))
        best[half] = {side: min(values) for side, values in times[half].items()}
    result: dict[str, Any] = {
        "command": "python -m benchmarks.gswgan_critics " + " ".join(sys.argv[1:]),
        "critics": CRITICS,
        "width": options.width,
        "critics_in_a_chunk": work.ensemble.chunk,
        "seconds": {half: {side: round(value, 4) for side, value in sides.items()} for half, sides in best.items()},
        "ratio_answer": round(best["answer"]["calls"] / best["answer"]["ours"], 2),
        "ratio_learn": round(best["learn"]["calls"] / best["learn"]["ours"], 2),
        "relative_difference": differences,
        "all_seconds": times,
        "threads": options.threads,
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
