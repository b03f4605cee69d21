"""How far the stacked teachers are from what this machine can do at all: a DataLens round and GS-WGAN's 32 critics.

The work is counted in floating-point operations of matrix products and convolutions alone, as the plain loop does it and as
ours does it; the smaller count stands for what has to be done. The limit is that count over the fastest large matrix product
of the same run, with the same threads and in whichever precision is faster, plus, for DataLens, the bytes that Adam must move
at least (three numbers a weight, read and written in each step) over the fastest copy of the same run. No code can be faster
than the limit: everything else that a round does (activations, sorting, random numbers, gathering of patches) is taken to
cost nothing.

    python -m benchmarks.roofline [--repeats 5] [--threads N]       on an idle machine
    python -m benchmarks.roofline --threads 1                       anywhere: it counts the seconds of the processor itself
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from benchmarks.datalens_round import PAPERS, STEPS, Loop, Ours
from benchmarks.gswgan_critics import Work
from limbeck.nets.kernels.hardware import has_fast_bfloat16

RESULT = Path(__file__).parent / "results" / "roofline.json"
TEACHERS = 40  # of DataLens; all are alike, so their number does not change a rate
SIDES = (1024, 2048)  # of the square matrices of the fastest product
COPIED = 64 * 2**20  # numbers of the fastest copy: far more than any cache holds
ADAM = 3  # weight and two moments


def best(work: Callable[[], Any], repeats: int) -> float:
    # What else the machine does counts for nothing where there is one thread.
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


class Counter(TorchDispatchMode):
    """Counts by PyTorch's own formulas. Its `FlopCounterMode` follows modules, too, which breaks `torch.autograd.grad`."""

    total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.total += int(formula(*args, **(kwargs or {}), out_val=made))
        return made


def operations(work: Callable[[], Any]) -> int:
    with Counter() as counter:
        work()
    return int(counter.total)


def fastest_product(repeats: int) -> float:
    """Operations of a second, in the faster of the precisions that the stacked networks use."""
    rates = []
    for kind in (torch.float32, torch.bfloat16) if has_fast_bfloat16(torch.device("cpu")) else (torch.float32,):
        for side in SIDES:
            left, right = torch.rand(2, side, side).to(kind)
            out = torch.empty(side, side, dtype=kind)
            rates.append(2 * side**3 / best(partial(torch.mm, left, right, out=out), 4 * repeats))
    return max(rates)


def fastest_copy(repeats: int) -> float:
    """Bytes of a second, read and written."""
    source, target = torch.rand(COPIED), torch.empty(COPIED)
    return 2 * 4 * COPIED / best(lambda: target.copy_(source), 4 * repeats)


def standing(ours: Callable[[], Any], plain: Callable[[], Any], moved: int, repeats: int) -> dict[str, Any]:
    """One kind of work beside its limit. moved: bytes that have to go to memory and back at least."""
    counts = {"ours": operations(ours), "plain": operations(plain)}
    least = min(counts.values())
    product, copy = fastest_product(repeats), fastest_copy(repeats)
    seconds = {"ours": best(ours, repeats), "plain": best(plain, repeats)}
    limit = least / product + moved / copy
    return {
        "gigaflop": {name: round(value / 1e9, 2) for name, value in counts.items()},
        "fastest_product_gigaflop_per_second": round(product / 1e9, 1),
        "fastest_copy_gigabyte_per_second": round(copy / 1e9, 1),
        "moved_megabytes_at_least": round(moved / 1e6, 1),
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "seconds_limit": round(limit, 4),
        "ratio_plain_to_ours": round(seconds["plain"] / seconds["ours"], 2),
        "ratio_plain_to_limit": round(seconds["plain"] / limit, 2),
        "share_of_the_limit": round(limit / seconds["ours"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ours, loop = Ours(PAPERS, TEACHERS), Loop(PAPERS, TEACHERS)
    weights = sum(value.numel() for value in ours.ensemble.weights.values())
    critics = Work(64)
    result = {
        "command": "python -m benchmarks.roofline " + " ".join(sys.argv[1:]),
        "datalens_round": {
            "teachers": TEACHERS,
            **standing(ours.round, loop.round, STEPS * ADAM * 2 * 4 * weights, options.repeats),
        },
        "gswgan_answer": standing(critics.answer_ours, critics.answer_plain, 0, options.repeats),
        "gswgan_learn": standing(critics.learn_ours, critics.learn_plain, 0, options.repeats),
        "threads": options.threads,
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
