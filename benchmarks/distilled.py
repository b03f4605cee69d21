"""Sets of several sizes, and a generator, from the answers that one release keeps: accuracy and CPU seconds by size.

    python -m benchmarks.distilled mnist --release FOLDER                     FOLDER keeps its answers; sizes 50 to 1000
    python -m benchmarks.distilled mnist --release FOLDER --sizes 50,200      these sizes only
    python -m benchmarks.distilled mnist --release FOLDER --generator 2500    a generator first: its pictures alone, and refined
    python -m benchmarks.distilled mnist --release FOLDER --generator 2500 --ways drawn    its pictures alone
    python -m benchmarks.distilled mnist --release FOLDER --from DRAWING      refined from the generator of a set that is there
    python -m benchmarks.distilled mnist --release FOLDER --set updates=800   another setting of `limbeck distil`
    python -m benchmarks.distilled mnist --release FOLDER --keep SETS         leave the sets there, and use what is there
    python -m benchmarks.distilled mnist --release FOLDER --fidelity          the Inception Score of each set as well
    python -m benchmarks.distilled mnist --release FOLDER --models mlp,lenet  other networks
    python -m benchmarks.distilled mnist --release FOLDER --seen 300000       as many pictures in training, however large the set

With --seen the networks are those of the preset, but for the number of epochs, which are as many as show them so many pictures:
150 epochs of a set of 50 a class are 75,000, of 200 a class 300,000.
Scores are those of the real test records, so no default is to be chosen by them. Times are CPU seconds of one thread, which mean
the same on a busy machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy import IMAGE, RESULTS, limbeck
from limbeck.data.source import open_source
from limbeck.evaluate.downstream import Task, score_model
from limbeck.evaluate.labelled import load_labelled
from limbeck.evaluate.presets import preset_named
from limbeck.privacy.numbers import finite_or_word
from limbeck.release.certificate import Certificate
from limbeck.release.destination import is_unfinished
from limbeck.release.reader import read_release
from limbeck.release.statement import read_certificate

SIZES = "50,200,500,1000"
REFINED, DRAWN = "refined", "drawn"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Of which release, on which records, and how sets of it are scored."""

    release: Path
    data: str
    preset: str
    models: str
    fidelity: bool
    seen: int | None
    keep: Path | None
    drawing: Path | None

    def of_set(self, way: str, size: int, words: tuple[str, ...]) -> dict[str, Any]:
        """One set: how it was made, how long that took, and what networks learn from it."""
        told = ("--per-class", str(size), *words)
        with tempfile.TemporaryDirectory() as scratch:
            out = (self.keep or Path(scratch)) / f"{way}-{size}"
            made = self._made(out, told)
            evaluate = ("--test", self.data, "--models", self.models, *IMAGE[2:], "--preset", self.preset)
            scores = limbeck("evaluate", str(out), *evaluate) if self.seen is None else self._shown(out)
            certificate = read_certificate(out)
            found = limbeck("fidelity", str(out), "--data", self.data) if self.fidelity else None
        assert certificate.distilled is not None
        started = () if self.drawing is None else ("--from DRAWING",)
        return {
            "commands": [
                " ".join(("limbeck distil RELEASE", *told, *started, "--out SET")),
                *([" ".join(("limbeck evaluate SET", *evaluate))] if self.seen is None else []),
                *([] if found is None else [f"limbeck fidelity SET --data {self.data}"]),
            ],
            "per_class": size,
            "settings": dict(certificate.distilled.settings),
            **times(made, certificate),
            "preset": scores["preset"],
            **({} if self.seen is None else {"epochs": scores["epochs"]}),
            "accuracy": scores["accuracy"],
            "evaluate_cpu_seconds": scores["cpu_seconds"],
            **({} if found is None else {"fidelity": {"set": found["set"], "real_train": found["real_train"]}}),
        }

    def _shown(self, out: Path) -> dict[str, Any]:
        """Scores of networks of the preset that see `seen` pictures in training."""
        assert self.seen is not None
        torch.set_num_threads(1)
        began, found = resource.getrusage(resource.RUSAGE_SELF).ru_utime, read_release(out)
        schema = found.certificate.public_assumptions
        test = load_labelled(open_source(self.data, split="test"), schema)
        task = Task(torch.from_numpy(found.x), torch.from_numpy(found.y), (test,), len(schema.classes), False)
        epochs = max(1, round(self.seen / len(task.x)))
        preset = dataclasses.replace(preset_named(self.preset).fitted(schema), epochs=epochs)
        accuracy = {}
        for model in self.models.split(","):
            score = score_model(model, task, preset, int(IMAGE[3]), 0, "cpu")
            accuracy[model] = {"mean": score.mean, "std": score.std, "runs": list(score.runs), "labels": score.labels}
        took = resource.getrusage(resource.RUSAGE_SELF).ru_utime - began
        return {"preset": self.preset, "epochs": epochs, "accuracy": accuracy, "cpu_seconds": round(took, 1)}

    def _made(self, out: Path, told: tuple[str, ...]) -> dict[str, Any] | None:
        """What the command said when it made the set, now or before; None for a set of which that is not known."""
        said = out.with_name(f"{out.name}.json")
        if is_unfinished(out):
            limbeck("resume", str(out))
        elif not out.exists():
            start = () if self.drawing is None else ("--from", str(self.drawing))
            made = limbeck("distil", str(self.release), *told, *start, "--out", str(out), "--ledger", f"{out}.sqlite")
            said.write_text(json.dumps(made))
        return json.loads(said.read_text()) if said.exists() else None


def times(made: dict[str, Any] | None, certificate: Certificate) -> dict[str, Any]:
    if made is None:
        return {"cpu_seconds": None}
    each = made["cpu_seconds"] / certificate.records
    megabytes = {"peak_megabytes": made["peak_megabytes"]}
    return {"cpu_seconds": made["cpu_seconds"], "cpu_seconds_per_picture": round(each, 4), **megabytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--generator", type=int)
    parser.add_argument("--from", type=Path, dest="drawing")
    parser.add_argument("--ways", help=f"with --generator: {DRAWN}, {REFINED}, or both with a comma; both by default")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--models", default=IMAGE[1])
    parser.add_argument("--fidelity", action="store_true")
    parser.add_argument("--seen", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--name", default="", help="put behind the name of the result")
    options = parser.parse_args()
    words = tuple(word for setting in options.settings for word in ("--set", setting))
    if options.generator is not None:
        words += ("--generator", str(options.generator))
    usual = REFINED if options.generator is None else f"{REFINED},{DRAWN}"
    ways = {
        way: {REFINED: words, DRAWN: (*words, "--set", "updates=0")}[way] for way in (options.ways or usual).split(",")
    }
    certificate = read_certificate(options.release)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    measurement = Measurement(
        release=options.release,
        data=options.data,
        preset=options.preset,
        models=options.models,
        fidelity=options.fidelity,
        seen=options.seen,
        keep=options.keep,
        drawing=options.drawing,
    )
    result: dict[str, Any] = {
        "data": options.data,
        "epsilon": finite_or_word(certificate.epsilon),
        "delta": certificate.delta,
        "source": {
            "made_of": certificate.dataset,
            "private_records": certificate.public_assumptions.records,
            "records": certificate.records,
            "settings": dict(certificate.settings),
        },
        "sets": {},
        "versions": dict(certificate.versions),
    }
    place = RESULTS / f"distilled-{options.data}-epsilon-{result['epsilon']:.3g}{options.name}.json"
    for way, told in ways.items():
        for size in options.sizes.split(","):
            result["sets"].setdefault(way, []).append(measurement.of_set(way, int(size), told))
            place.write_text(json.dumps(result, indent=2) + "\n")  # a long measurement may be broken off
            print(place, way, size, flush=True)


if __name__ == "__main__":
    main()
