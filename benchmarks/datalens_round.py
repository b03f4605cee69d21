"""Time and memory of one DataLens round at the paper's size: stacked teachers against a Python loop over them.

A round: every teacher (555,059 numbers, Adam) learns for two steps on 15 records and 15 fakes, then gives the gradient of 15
images, from which its top-200 signs are taken and added up. The rival has one torch module and one optimiser per teacher
and goes through them one by one. Both in one process, in turn, the minimum over the repeats; the rival's time is measured on
some of its teachers and scaled, because all are alike. Memory: each chunk size in a process of its own, the peak above what
the process held before its first round.

    python -m benchmarks.datalens_round [--teachers 400] [--repeats 3] [--threads N]
    python -m benchmarks.datalens_round --templates     with the teachers that DataLens has here by default: a template a class
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.psg_step import resident
from limbeck.data.records import Records
from limbeck.privacy.queries import TeacherVote
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Discriminator, EnsembleSpec, SignVote
from limbeck.vault.ensemble.desk import vote_sum
from limbeck.vault.ensemble.ensemble import Ensemble
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ensemble.votes import top_signs
from limbeck.vault.noise import Randomness

BATCH, STEPS, IMAGES, K, C, CLASSES = 15, 2, 15, 200, 1e-5, 10
LOOPED = 40  # teachers that the rival is timed on
RESULTS = Path(__file__).parent / "results"
PAPERS = Discriminator(shape=(1, 28, 28), classes=CLASSES)
TEMPLATES = Discriminator(shape=(1, 28, 28), classes=CLASSES, first=0, hidden=0)


def schema_of(teachers: int) -> Schema:
    records = BATCH * teachers
    return Schema(name="round", shape=(1, 28, 28), classes=tuple("0123456789"), records=records, low=0, high=255)


def records_of(teachers: int) -> Records:
    random = np.random.default_rng(0)
    count = BATCH * teachers
    return Records(random.integers(0, 256, (count, 1, 28, 28), dtype=np.uint8), random.integers(0, CLASSES, count))


def question(teacher: Discriminator, spec: EnsembleSpec) -> SignVote:
    random = torch.Generator().manual_seed(1)
    count = STEPS * BATCH
    return SignVote(
        teacher=teacher,
        ensemble=spec,
        fakes=torch.rand((count, 1, 28, 28), generator=random) * 2 - 1,
        fake_labels=torch.randint(0, CLASSES, (count,), generator=random),
        x=torch.rand((IMAGES, 1, 28, 28), generator=random) * 2 - 1,
        y=torch.randint(0, CLASSES, (IMAGES,), generator=random),
        k=K,
        c=C,
    )


class Ours:
    def __init__(self, teacher: Discriminator, teachers: int, chunk: int | None = None) -> None:
        self.spec = EnsembleSpec(teachers=teachers, batch=BATCH, steps=STEPS)
        self.question = question(teacher, self.spec)
        schema, records = schema_of(teachers), records_of(teachers)
        self.ensemble = Ensemble(self.question.teacher, self.spec, schema, torch.device("cpu"), chunk)
        self.ensemble.assign_records(records, partition(records, teachers, bytes(32)))
        clip = 2 * float(np.sqrt(K * IMAGES))
        self.query = TeacherVote(label="v", map="sign_vote", clip=clip, noise_multiplier=1.0, teachers=teachers)

    def round(self) -> None:
        self.ensemble.learn(self.question)
        vote_sum(self.ensemble, self.question, self.query, Randomness(0).stream("v", 0))


class PlainTeacher(nn.Module):
    """The same network out of ordinary layers, with the label as ten more channels and units."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1 + CLASSES, 11, 5, 2, 2)
        self.conv2 = nn.Conv2d(11 + CLASSES, 42, 5, 2, 2)
        self.joint = nn.Linear(42 * 49 + CLASSES, 256)
        self.last = nn.Linear(256 + CLASSES, 1)

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        maps = label[:, :, None, None]
        x = F.leaky_relu(self.conv1(torch.cat([x, maps.expand(-1, -1, 28, 28)], 1)), 0.2)
        x = F.leaky_relu(self.conv2(torch.cat([x, maps.expand(-1, -1, 14, 14)], 1)), 0.2)
        x = F.leaky_relu(self.joint(torch.cat([x.flatten(1), label], 1)), 0.2)
        logits: Tensor = self.last(torch.cat([x, label], 1))[:, 0]
        return logits


class PlainTemplates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.templates, self.bias = nn.Linear(CLASSES, 784, bias=False), nn.Linear(CLASSES, 1, bias=False)

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        logits: Tensor = (x.flatten(1) * self.templates(label)).sum(1) + self.bias(label)[:, 0]
        return logits


class Loop:
    def __init__(self, teacher: Discriminator, teachers: int) -> None:
        plain = PlainTemplates if teacher is TEMPLATES else PlainTeacher
        self.teachers: list[nn.Module] = [plain() for _ in range(teachers)]
        self.optimisers = [torch.optim.Adam(one.parameters(), 1e-3, betas=(0.5, 0.999)) for one in self.teachers]
        self.asked = question(teacher, EnsembleSpec(teachers=teachers, batch=BATCH, steps=STEPS))
        held = records_of(teachers)
        self.x, self.y = torch.from_numpy(held.x).float() / 127.5 - 1, F.one_hot(torch.from_numpy(held.y), CLASSES)

    def round(self) -> None:
        fakes, fake_labels = self.asked.fakes, F.one_hot(self.asked.fake_labels, CLASSES).float()
        labels = F.one_hot(self.asked.y, CLASSES).float()
        total = torch.zeros(IMAGES, 784)
        for place, (teacher, optimiser) in enumerate(zip(self.teachers, self.optimisers, strict=True)):
            own = slice(place * BATCH, (place + 1) * BATCH)
            x, y = self.x[own], self.y[own].float()
            for step in range(STEPS):
                part = slice(step * BATCH, (step + 1) * BATCH)
                real, fake = teacher(x, y), teacher(fakes[part], fake_labels[part])
                optimiser.zero_grad()
                (F.softplus(-real).mean() + F.softplus(fake).mean()).backward()
                optimiser.step()
            images = self.asked.x.clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad(F.logsigmoid(teacher(images, labels)).sum(), images)
            total += top_signs(gradient.flatten(1)[None], K, C, True, torch.rand)[0]


def seconds(side: Ours | Loop) -> float:
    start = time.perf_counter()
    side.round()
    return time.perf_counter() - start


def memory_of(chunk: int, teachers: int, threads: int) -> float:
    command = [sys.executable, "-m", "benchmarks.datalens_round", "--memory-of", str(chunk), "--threads", str(threads)]
    done = subprocess.run([*command, "--teachers", str(teachers)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def print_memory(chunk: int, teachers: int) -> None:
    ours = Ours(PAPERS, teachers, chunk)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    ours.round()
    print(round(resident("VmHWM") - before))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--teachers", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--memory-of", type=int)
    parser.add_argument("--templates", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        print_memory(options.memory_of, options.teachers)
        return
    looped = min(LOOPED, options.teachers)
    teacher = TEMPLATES if options.templates else PAPERS
    ours, loop = Ours(teacher, options.teachers), Loop(teacher, looped)
    times: dict[str, list[float]] = {"ours": [], "loop": []}
    for _ in range(options.repeats):
        times["ours"].append(seconds(ours))
        times["loop"].append(seconds(loop) * options.teachers / looped)
    best = {name: min(values) for name, values in times.items()}
    small = options.teachers // 8
    result: dict[str, Any] = {
        "command": "python -m benchmarks.datalens_round " + " ".join(sys.argv[1:]),
        "teachers": options.teachers,
        "chunk": ours.ensemble.chunk,
        "numbers_of_a_teacher": sum(value[0].numel() for value in ours.ensemble.weights.values()),
        "round_seconds": {name: round(value, 3) for name, value in best.items()},
        "ratio": round(best["loop"] / best["ours"], 2),
        "loop_was_timed_on_teachers": looped,
        "all_seconds": times,
        "threads": options.threads,
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
    if not options.templates:
        result["peak_megabytes_of_a_round"] = {
            f"chunk {chunk}, {held} teachers": memory_of(chunk, held, options.threads)
            for chunk, held in ((2, small), (4, small), (8, small), (4, 2 * small))
        }
    name = "datalens_round_templates" if options.templates else "datalens_round"
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
