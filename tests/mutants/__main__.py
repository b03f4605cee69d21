"""`make mutants`: put small faults into the code, one at a time, and see that the tests notice every one of them.

    python tests/mutants                   all of them, two at a time
    python tests/mutants --only NAME       one, or all whose name begins so
    python tests/mutants --json FILE       also write what came of it

Ends with 0 if every mutation was killed or is explained, with 1 if one survived, with 2 if one does not apply any more or its
tests do not run. A mutation that is explained and killed all the same is reported too: its explanation is wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import queue
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from listed import MUTATIONS
from mutation import BROKEN, EXPLAINED, KILLED, PACKAGE, REPOSITORY, SURVIVED, Mutation, Outcome, Tree


def main() -> int:
    options = _options()
    chosen = [m for m in MUTATIONS if m.name == options.only] or [
        m for m in MUTATIONS if m.name.startswith(options.only)
    ]
    if not chosen:
        print(f"There is no mutation {options.only}.", file=sys.stderr)
        return 2
    began = time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        outcomes = _tried(chosen, Path(folder), options.workers)
    if outcomes is None:
        return 2
    counts = Counter(outcome.result for outcome in outcomes)
    seconds = round(time.monotonic() - began)
    print(
        f"{len(outcomes)} mutations in {seconds} s: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
    )
    for outcome in outcomes:
        if outcome.result in (SURVIVED, BROKEN):
            print(f"{outcome.result}: {outcome.name}: {outcome.said}")
    if options.json:
        _write(Path(options.json), outcomes, counts, seconds, options)
    return 2 if counts[BROKEN] else 1 if counts[SURVIVED] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="NAME", help="one mutation, or all whose name begins so")
    parser.add_argument("--json", metavar="FILE", help="write the outcomes there")
    parser.add_argument("--workers", type=int, default=2, help="how many at a time (default 2)")
    return parser.parse_args()


def _tried(chosen: list[Mutation], folder: Path, workers: int) -> list[Outcome] | None:
    """The outcomes in the order of the list; None if the tests fail without any mutation."""
    trees: queue.Queue[Tree] = queue.Queue()
    for place in range(workers):
        (folder / str(place)).mkdir()
        trees.put(Tree(folder / str(place)))

    def on_some_tree(mutation: Mutation) -> Outcome:
        tree = trees.get()
        try:
            outcome = tree.tried(mutation)
        finally:
            trees.put(tree)
        if outcome.result == KILLED and mutation.explained:
            outcome = dataclasses.replace(outcome, result=BROKEN, said=f"explained, but killed by {outcome.said}")
        print(f"{outcome.result:9} {outcome.seconds:6.1f} s  {outcome.name}  {outcome.said}", flush=True)
        return outcome

    with ThreadPoolExecutor(workers) as pool:
        tests = sorted({test for mutation in chosen for test in mutation.tests})
        whole = [tuple(tests[place::workers]) for place in range(workers)]
        for code, said in pool.map(Tree.unchanged, list(trees.queue), whole):
            if code:
                print(f"The tests do not pass without a mutation: {said}", file=sys.stderr)
                return None
        return list(pool.map(on_some_tree, chosen))


def _write(
    path: Path, outcomes: list[Outcome], counts: Counter[str], seconds: int, options: argparse.Namespace
) -> None:
    command = "python tests/mutants" + (f" --only {options.only}" if options.only else "")
    try:
        shown = path.resolve().relative_to(REPOSITORY)
    except ValueError:
        shown = Path(path.name)
    package = REPOSITORY / PACKAGE
    reasons = {m.name: (m.place(package).relative_to(package).as_posix(), m.why) for m in MUTATIONS}
    values = {
        "command": f"{command} --json {shown}",
        "seconds": seconds,
        "workers": options.workers,
        "counts": {what: counts[what] for what in (KILLED, EXPLAINED, SURVIVED, BROKEN)},
        "mutations": [
            {
                "name": outcome.name,
                "file": reasons[outcome.name][0],
                "why": reasons[outcome.name][1],
                "result": outcome.result,
                "by" if outcome.result == KILLED else "said": outcome.said,
            }
            for outcome in outcomes
        ],
    }
    path.write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
