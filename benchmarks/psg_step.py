"""Time and memory of one PSG step at the paper's size: ours against Opacus's per-record gradients.

B = 256 real records (per-record gradients of a ConvNet of width 128, clipped and added up), 10 synthetic records per class
(gradient of the set, distance, gradient to the pixels), 1x28x28. The rival takes Opacus's GradSampleModule for the first
half and automatic differentiation for the second. Times: both in one process, in turn, the minimum over the repeats. Memory:
each in a process of its own, the peak above what the process held before its first step.

    python -m benchmarks.psg_step [--repeats 5] [--threads N]
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from limbeck.methods.parts.gradients import distance
from limbeck.nets import NetSpec, SetGradients, build
from limbeck.privacy.grid import step_of
from limbeck.vault.maps.bound import Bound
from limbeck.vault.maps.clipped_gradients import ClippedGradients

SPEC = NetSpec(kind="convnet", width=128)
SHAPE, CLASSES, RECORDS, PER_CLASS, CLIP = (1, 28, 28), 10, 256, 10, 0.1
RESULT = Path(__file__).parent / "results" / "psg_step.json"
# Multiply-adds of the three convolutions for one record; the first one needs no gradient of its input for real records.
FIRST, ALL = 128 * 9 * 32 * 32, 128 * 9 * (32 * 32 + 128 * 16 * 16 + 128 * 8 * 8)


class Step:
    """The two halves of a step as functions of nothing."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.x = torch.rand((RECORDS, *SHAPE), generator=generator) * 2 - 1
        self.y = torch.randint(0, CLASSES, (RECORDS,), generator=generator).sort().values
        self.set_x = torch.randn((CLASSES * PER_CLASS, *SHAPE), generator=generator)
        self.set_y = torch.arange(CLASSES).repeat_interleave(PER_CLASS)
        self.network = build(SPEC, SHAPE, CLASSES, seed=1)
        self.weights = {name: value.detach().clone() for name, value in self.network.named_parameters()}

    def real(self) -> Tensor:
        raise NotImplementedError

    def match(self, target: Tensor) -> Tensor:
        raise NotImplementedError

    def target(self, flat: Tensor) -> dict[str, Tensor]:
        parts = torch.split(flat, [value.numel() for value in self.weights.values()])
        pairs = zip(self.weights.items(), parts, strict=True)
        return {name: part.view(value.shape) for (name, value), part in pairs}


class Ours(Step):
    def __init__(self) -> None:
        super().__init__()
        self.set_gradients = SetGradients(SPEC, SHAPE, CLASSES, torch.device("cpu"))

    def real(self) -> Tensor:
        # A new engine each time, as in a run: the weights are new at every step.
        engine = ClippedGradients(build(SPEC, SHAPE, CLASSES, seed=1), SHAPE, self.weights, torch.device("cpu"))
        with torch.no_grad():
            bound = Bound(CLIP, step_of(CLIP, 1.0))
            return engine.clipped_sum(self.x, self.y, bound).float().mul_(bound.step)

    def match(self, target: Tensor) -> Tensor:
        wanted = self.target(target)
        return self.set_gradients.pull_back(self.weights, self.set_x, self.set_y, lambda g: distance(g, wanted))[1]


class Opacus(Step):
    def __init__(self) -> None:
        super().__init__()
        from opacus.grad_sample import GradSampleModule

        self.sampled = GradSampleModule(build(SPEC, SHAPE, CLASSES, seed=1), loss_reduction="sum")

    def real(self) -> Tensor:
        for parameter in self.sampled.parameters():
            parameter.grad, parameter.grad_sample = None, None
        F.cross_entropy(self.sampled(self.x), self.y, reduction="sum").backward()
        with torch.no_grad():
            rows = [parameter.grad_sample for parameter in self.sampled.parameters()]
            norms = torch.stack([row.flatten(1).norm(dim=1) for row in rows], dim=1).norm(dim=1)
            factors = (CLIP / (norms + 1e-6)).clamp(max=1.0)
            return torch.cat([torch.einsum("i,i...", factors, row).flatten() for row in rows])

    def match(self, target: Tensor) -> Tensor:
        records = self.set_x.clone().requires_grad_(True)
        parameters = dict(self.network.named_parameters())
        loss = F.cross_entropy(self.network(records), self.set_y)
        gradient = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
        measured = distance(dict(zip(parameters, gradient, strict=True)), self.target(target))
        return torch.autograd.grad(measured, records)[0]


SIDES: dict[str, type[Step]] = {"ours": Ours, "opacus": Opacus}


def seconds(work: Callable[[], Tensor]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def resident(field: str) -> float:
    """VmRSS (now) or VmHWM (the most since the mark was reset) in megabytes; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def memory_of(side: str, threads: int) -> float:
    command = [sys.executable, "-m", "benchmarks.psg_step", "--memory-of", side, "--threads", str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_memory(side: str) -> None:
    step = SIDES[side]()
    if side == "ours":
        # The compiler's own memory is not that of a step: it works on records too few to matter.
        ClippedGradients(build(SPEC, SHAPE, CLASSES, seed=1), SHAPE, step.weights, torch.device("cpu")).rows(
            step.x[:2], step.y[:2]
        )
        small = SetGradients(SPEC, SHAPE, CLASSES, torch.device("cpu"))
        zero = step.target(torch.zeros(sum(value.numel() for value in step.weights.values())))
        small.pull_back(step.weights, step.set_x[:2], step.set_y[:2], lambda g: distance(g, zero))
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the mark, so that the compiler's own peak does not count
    for _ in range(2):
        step.match(step.real())
    print(round(resident("VmHWM") - before))


def arithmetic(threads: int) -> float:
    """The fastest convolution of this machine, in multiply-adds a second: the limit to compare with."""
    maps = torch.randn(32, 128, 16, 16).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(128, 128, 3, 3).contiguous(memory_format=torch.channels_last)
    best = min(seconds(lambda: F.conv2d(maps, weight, padding=1)) for _ in range(30))
    return 32 * 128 * 128 * 9 * 16 * 16 / best


def shares(step: Step, target: Tensor) -> dict[str, float]:
    """Where our time goes: convolutions (with the matrix products of weight gradients), compiled passes, the rest."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        step.match(step.real())
    groups = {"convolutions": 0.0, "norm, ReLU and pooling": 0.0, "copies and the rest": 0.0}
    for event in profiled.key_averages():
        if any(word in event.key for word in ("convolution", "bmm", "addmm", "::mm")):
            group = "convolutions"
        elif "Compiled" in event.key or "graph" in event.key:
            group = "norm, ReLU and pooling"
        else:
            group = "copies and the rest"
        groups[group] += event.self_cpu_time_total
    total = sum(groups.values())
    return {name: round(value / total, 3) for name, value in groups.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--memory-of", choices=list(SIDES))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        print_memory(options.memory_of)
        return
    steps = {name: side() for name, side in SIDES.items()}
    sums = {name: step.real() for name, step in steps.items()}
    target = sums["opacus"]
    pulled = {name: step.match(target) for name, step in steps.items()}
    times: dict[str, dict[str, list[float]]] = {name: {"real": [], "match": []} for name in steps}
    for _ in range(options.repeats):
        for name, step in steps.items():
            times[name]["real"].append(seconds(step.real))
            times[name]["match"].append(seconds(lambda step=step: step.match(target)))  # type: ignore[misc]
    best = {name: {half: min(values) for half, values in halves.items()} for name, halves in times.items()}
    result = _result(best, times, sums, pulled, options.threads)
    result["share_of_our_time"] = shares(steps["ours"], target)
    megabytes = {name: memory_of(name, options.threads) for name in SIDES}
    result["peak_megabytes_of_a_step"] = megabytes
    result["memory_ratio"] = round(megabytes["opacus"] / megabytes["ours"], 2)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _result(
    best: dict[str, dict[str, float]],
    times: dict[str, dict[str, list[float]]],
    sums: dict[str, Tensor],
    pulled: dict[str, Tensor],
    threads: int,
) -> dict[str, Any]:
    whole = {name: sum(halves.values()) for name, halves in best.items()}
    rate = arithmetic(threads)
    # Real: forward, weights, and the input of all but the first. Set: the same, and for the pixels tangents of forward and
    # backward through doubled channels and of the first layer's input.
    real_work = RECORDS * (3 * ALL - FIRST)
    set_work = CLASSES * PER_CLASS * (3 * ALL - FIRST + 4 * ALL - FIRST)
    return {
        "command": "python -m benchmarks.psg_step " + " ".join(sys.argv[1:]),
        "seconds": {name: {half: round(value, 4) for half, value in halves.items()} for name, halves in best.items()},
        "step_seconds": {name: round(value, 4) for name, value in whole.items()},
        "ratio_step": round(whole["opacus"] / whole["ours"], 2),
        "ratio_per_record_gradients": round(best["opacus"]["real"] / best["ours"]["real"], 2),
        "ratio_matching": round(best["opacus"]["match"] / best["ours"]["match"], 2),
        "arithmetic_limit_seconds": round((real_work + set_work) / rate, 4),
        "share_of_arithmetic_limit": round((real_work + set_work) / rate / whole["ours"], 3),
        "convolution_multiply_adds_per_second": round(rate / 1e9, 1) * 1e9,
        "relative_difference_of_sums": float((sums["ours"] - sums["opacus"]).norm() / sums["opacus"].norm()),
        "relative_difference_of_pixel_gradients": float(
            (pulled["ours"] - pulled["opacus"]).norm() / pulled["opacus"].norm()
        ),
        "all_seconds": times,
        "threads": threads,
        "torch": torch.__version__,
        "machine": platform.machine(),
    }


if __name__ == "__main__":
    main()
