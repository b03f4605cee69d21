"""One rank against several, one thread each: answers of the vault, bytes between ranks, and Elixir from end to end.

Throughput: one compute-bound query (features of a ConvNet, every record of a generated set in every sample), seconds of an answer
after the first, which tries kernels. End to end: the command `limbeck condense mnist`, started by torchrun, from start to
release; the sets must be the same bits. One rank and several take turns, and the fastest of each counts. Run it on an otherwise
idle machine with at least as many cores as ranks; MNIST has to be there (`limbeck data get mnist`).

    python -m benchmarks.sharded [--ranks 2] [--records 20000] [--answers 4] [--repeats 2] [--run-repeats 1] [--T 250] [--no-run]

--T 500 is the default run of the command; 250 is half of it. A first look that takes two minutes: --records 2000 --answers 2
--repeats 1 --T 3. What was measured is kept after each part, so it may be stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from limbeck.data.records import Records
from limbeck.methods.elixir.method import Elixir
from limbeck.methods.elixir.set_descent import SetDescent
from limbeck.nets import NetSpec
from limbeck.nets.training.pool import Pool
from limbeck.privacy.accounting import price
from limbeck.privacy.plan import Plan
from limbeck.privacy.queries import ClippedSum
from limbeck.privacy.schema import Schema
from limbeck.release.reader import read_release
from limbeck.runs import ranks
from limbeck.vault.api import RandomFeatures
from limbeck.vault.ledger import Ledger
from limbeck.vault.local import LocalVault
from limbeck.vault.noise import Randomness
from limbeck.vault.sharded.group import TorchGroup
from limbeck.vault.sharded.vault import ShardedVault

SHAPE, CLASSES, WIDTH = (1, 28, 28), 10, 64
RESULT = Path(__file__).parent / "results" / "sharded.json"


@dataclass(frozen=True)
class Generated:
    """The same records on every rank, made where they are needed."""

    count: int

    @property
    def schema(self) -> Schema:
        names = tuple(str(index) for index in range(CLASSES))
        return Schema(name="generated", shape=SHAPE, classes=names, records=self.count, low=0, high=255)

    def load(self) -> Records:
        random = np.random.default_rng(0)
        x = random.integers(0, 256, (self.count, *SHAPE), dtype=np.uint8)
        return Records(x, random.integers(0, CLASSES, self.count))

    def prepare(self) -> None:
        """There is nothing to fetch."""


def answers(count: int, times: int) -> dict[str, Any] | None:
    """On one rank of a group, or by itself: seconds of each answer, bytes of one, a digest of the last; at rank 0."""
    source = Generated(count)
    with ranks.joined() as group, tempfile.TemporaryDirectory() as folder:
        if group is not None and group.rank:
            ranks.serve(group, lambda data: source)
            return None
        query = ClippedSum(label="features", map="random_features", clip=1.0, noise_multiplier=10.0, count=times + 1)
        plan = Plan(dataset="generated", method="benchmark", settings={}, queries=(query,), price=price((query,), 1e-7))
        with Ledger.open(Path(folder) / "ledger.sqlite") as ledger:
            vault: LocalVault = LocalVault(source, ledger, Randomness(1))
            if group is not None:
                vault = ShardedVault(source, ledger, group, {}, Randomness(1))
            grant, seconds, said = vault.grant(plan), list[float](), list[int]()
            for index in range(times + 1):
                mapping = RandomFeatures(net=NetSpec(kind="convnet", width=WIDTH), shape=SHAPE, seed=index)
                began, before = time.perf_counter(), group.said if isinstance(group, TorchGroup) else 0
                values = vault.ask(grant, "features", index, mapping).values
                seconds.append(time.perf_counter() - began)
                said.append(group.said - before if isinstance(group, TorchGroup) else 0)
        found = {"seconds": seconds[1:], "bytes": said[-1], "digest": hashlib.sha256(values.tobytes()).hexdigest()}
        if isinstance(group, TorchGroup):
            found["bytes_of_a_step"] = bytes_of_a_step(group)
        return found


def bytes_of_a_step(group: TorchGroup) -> int:
    """Of one step of Elixir's descent along all its answers, at its settings for MNIST."""
    schema, device = Generated(60_000).schema, torch.device("cpu")
    method = Elixir().resolved(schema, 1.0)
    pool = Pool(method._net(schema), SHAPE, CLASSES, 1, device)
    pool.renew(0, 1)
    labels = method.labels(schema)
    images = torch.rand((len(labels), *SHAPE), generator=torch.Generator().manual_seed(1)) * 2 - 1
    question = method.questions(schema).new(0, pool.body_weights(pool.body(0)), images, labels)
    target = torch.zeros(CLASSES, question.rows(images[:1], labels[:1]).shape[1])
    still, times = torch.zeros_like(images), 1 + method.replay
    work = SetDescent(
        questions=(question,) * times, targets=(target,) * times, labels=labels, images=images, first=still, second=still,
        moves=torch.zeros(()), mean=images, average=method.average, eta=method.eta,
    )  # fmt: skip
    before = group.said
    ranks.RankTeam(group).share(work, device)
    return group.said - before


def torchrun(size: int, *arguments: object, **environment: str) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(
        [*command, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=env,
    )
    if done.returncode:
        sys.exit(f"{done.stderr}\nThe command on {size} ranks ended with {done.returncode}.")
    return done.stdout


def throughput(options: argparse.Namespace) -> dict[str, Any]:
    best: dict[int, float] = {}
    digests, last = set(), dict[str, Any]()
    for _ in range(options.repeats):
        for size in (1, options.ranks):
            job = ("-m", "benchmarks.sharded", "--job", "--records", options.records, "--answers", options.answers)
            last = json.loads(torchrun(size, *job))
            digests.add(last["digest"])
            best[size] = min(best.get(size, math.inf), *last["seconds"])
    return {
        "records_of_a_sample": options.records,
        "seconds_of_an_answer": {str(size): round(value, 4) for size, value in best.items()},
        "speedup": round(best[1] / best[options.ranks], 3),
        "same_bits": len(digests) == 1,
        "bytes_of_an_answer": last["bytes"],
        "bytes_of_a_step_of_the_set": last["bytes_of_a_step"],
    }


def end_to_end(options: argparse.Namespace) -> dict[str, Any]:
    best: dict[int, float] = {}
    sets = set()
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(options.run_repeats):
            for size in (1, options.ranks):
                out = Path(folder) / f"{size}-{repeat}"
                run = ("condense", "mnist", "--method", "elixir", "--epsilon", 1, "--set", f"T={options.T}")
                began = time.perf_counter()
                torchrun(
                    size, "-m", "limbeck", *run, "--insecure-seed", 1, "--out", out, LIMBECK_LEDGER=str(out) + ".sqlite"
                )
                best[size] = min(best.get(size, math.inf), time.perf_counter() - began)
                sets.add(hashlib.sha256(read_release(out).x.tobytes()).hexdigest())
    return {
        "command": "limbeck condense mnist --method elixir --epsilon 1",
        "T": options.T,
        "seconds": {str(size): round(value, 2) for size, value in best.items()},
        "speedup": round(best[1] / best[options.ranks], 3),
        "same_bits": len(sets) == 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--answers", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--run-repeats", type=int, default=1)
    parser.add_argument("--T", type=int, default=250)
    parser.add_argument("--no-run", action="store_true", help="measure answers only")
    parser.add_argument("--result", type=Path, default=RESULT)
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        found = answers(options.records, options.answers)
        if found is not None:
            print(json.dumps(found))
        return
    result: dict[str, Any] = {
        "command": " ".join(["python -m benchmarks.sharded", *sys.argv[1:]]),
        "ranks": options.ranks,
        "threads_of_a_rank": 1,
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "answers": throughput(options),
    }
    options.result.write_text(json.dumps(result, indent=2) + "\n")
    if not options.no_run:
        result["elixir_on_mnist"] = end_to_end(options)
    options.result.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
