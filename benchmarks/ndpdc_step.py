"""Time of one NDPDC iteration at the paper's size: a plain loop over classes in eager PyTorch against ours.

500 real records forward, 500 synthetic ones forward and backward to the pixels, a new random ConvNet each time, 1x28x28, of
width 128 as in the paper or of another one (Elixir's is 16). Both run in one process, in turn, with frozen weights; the
minimum over the repeats counts. Ours runs once before the plain loop does, and its peak memory is read there.

    python benchmarks/ndpdc_step.py [--width 16] [--repeats 7] [--precision auto] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from limbeck.cli.memory import keep_freed_memory
from limbeck.nets import FrozenEmbedding, NetSpec, build

PAPER = 128
SHAPE = (1, 28, 28)
CLASSES, PER_CLASS = 10, 50
RESULTS = Path(__file__).parent / "results"


def unit_sum(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows.detach(), dim=-1, keepdim=True)
    return (rows / norms).sum(-2)


def plain_loop(spec: NetSpec, real: Tensor, synthetic: Tensor, seed: int) -> Tensor:
    network = build(spec, SHAPE, 1, seed).requires_grad_(False)
    loss = torch.zeros(())
    for label in range(CLASSES):
        with torch.no_grad():
            answer = unit_sum(network.embed(real[label]))
        loss = loss + (answer - unit_sum(network.embed(synthetic[label]))).square().sum()
    return torch.autograd.grad(loss, synthetic)[0]


def ours(spec: NetSpec, real: Tensor, synthetic: Tensor, seed: int, precision: str) -> Tensor:
    embed = FrozenEmbedding(spec, SHAPE, seed, precision=precision)
    with torch.no_grad():
        answer = unit_sum(embed(real.flatten(0, 1)).view(CLASSES, PER_CLASS, -1))
    matched = unit_sum(embed(synthetic.flatten(0, 1)).view(CLASSES, PER_CLASS, -1))
    return torch.autograd.grad((answer - matched).square().sum(), synthetic)[0]


def seconds(step: Callable[[], Tensor]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=PAPER)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # as the command does; the plain loop gains from it, too
    spec = NetSpec(kind="convnet", width=options.width, depth=3)
    generator = torch.Generator().manual_seed(0)
    real = torch.randn(CLASSES, PER_CLASS, *SHAPE, generator=generator)
    synthetic = torch.randn(CLASSES, PER_CLASS, *SHAPE, generator=generator).requires_grad_()

    first = seconds(lambda: ours(spec, real, synthetic, 0, options.precision))
    fast = ours(spec, real, synthetic, 1, options.precision)
    peak_ours = peak_megabytes()
    slow = plain_loop(spec, real, synthetic, 1)
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for repeat in range(options.repeats):
        times["plain"].append(seconds(lambda seed=repeat: plain_loop(spec, real, synthetic, seed)))  # type: ignore[misc]
        times["ours"].append(seconds(lambda seed=repeat: ours(spec, real, synthetic, seed, options.precision)))  # type: ignore[misc]
    plain_best, ours_best = min(times["plain"]), min(times["ours"])
    result = {
        "command": "python " + " ".join([f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "plain_seconds": round(plain_best, 4),
        "ours_seconds": round(ours_best, 4),
        "ratio": round(plain_best / ours_best, 2),
        "ours_first_call_seconds": round(first, 1),
        "ours_peak_rss_megabytes": round(peak_ours),
        "gradient_cosine": round(float(torch.cosine_similarity(fast.flatten(), slow.flatten(), dim=0)), 5),
        "all_seconds": {name: [round(value, 4) for value in values] for name, values in times.items()},
        "precision": str(FrozenEmbedding(spec, SHAPE, 0, precision=options.precision).dtype),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    name = "ndpdc_step" if options.width == PAPER else f"ndpdc_step_width_{options.width}"
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
