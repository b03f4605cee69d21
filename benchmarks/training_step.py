"""Time of one downstream training step (ConvNet of width 128, batch 256, 1x28x28): plain eager PyTorch against ours.

Both run in one process, in turn, without augmentation; the minimum over the repeats counts.

    python benchmarks/training_step.py [--repeats 7] [--width 128] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.evaluate.downstream import train
from limbeck.evaluate.presets import Preset
from limbeck.nets import NetSpec, build

SHAPE, BATCH, CLASSES = (1, 28, 28), 256, 10
STEPS = 2
RESULT = Path(__file__).parent / "results" / "training_step.json"


def plain(x: Tensor, y: Tensor, width: int) -> None:
    network = build(NetSpec(kind="convnet", width=width), SHAPE, CLASSES, 0)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    for _ in range(STEPS):
        loss = F.cross_entropy(network(x), y)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()


def ours(x: Tensor, y: Tensor, width: int) -> None:
    preset = Preset(name="benchmark", width=width, epochs=STEPS, batch=BATCH, augment=())
    train("convnet", x, y, CLASSES, preset)


def seconds(step: Callable[[Tensor, Tensor, int], None], x: Tensor, y: Tensor, width: int) -> float:
    start = time.perf_counter()
    step(x, y, width)
    return (time.perf_counter() - start) / STEPS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, *SHAPE, generator=generator)
    y = torch.randint(CLASSES, (BATCH,), generator=generator)
    first = seconds(ours, x, y, options.width)
    seconds(plain, x, y, options.width)
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for _ in range(options.repeats):
        times["plain"].append(seconds(plain, x, y, options.width))
        times["ours"].append(seconds(ours, x, y, options.width))
    plain_best, ours_best = min(times["plain"]), min(times["ours"])
    result = {
        "command": "python " + " ".join([f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "width": options.width,
        "plain_seconds": round(plain_best, 4),
        "ours_seconds": round(ours_best, 4),
        "ratio": round(plain_best / ours_best, 2),
        "ours_first_step_seconds": round(first, 2),
        "all_seconds": {name: [round(value, 4) for value in values] for name, values in times.items()},
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
