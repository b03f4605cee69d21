"""`make mutants`: put small faults into the code, one at a time, and see that the tests notice every one of them.

    python tests/mutants                   all of them, two at a time
    python tests/mutants --only NAME       one, or all whose name begins so
    python tests/mutants --json FILE       also write what came of it
    python tests/mutants --new FILE        those that FILE does not know as they are now, and add what came of each to it

Ends with 0 if every mutation was killed or is explained, with 1 if one survived, with 2 if one does not apply any more or its
tests do not run. A mutation that is explained and killed all the same is reported too: its explanation is wrong.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import queue
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from listed import MUTATIONS
from mutation import BROKEN, KILLED, REPOSITORY, SURVIVED, Mutation, Outcome, Tree
from outcomes import untried, write


def main() -> int:
    options = _options()
    chosen = [m for m in MUTATIONS if m.name == options.only] or [
        m for m in MUTATIONS if m.name.startswith(options.only)
    ]
    if not chosen:
        print(f"There is no mutation {options.only}.", file=sys.stderr)
        return 2
    if options.new:
        chosen = untried(chosen, options.new)
    began = time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        outcomes = _tried(chosen, Path(folder), options.workers, lambda each: _keep(options, [each]))
    if outcomes is None:
        return 2
    if options.json:
        options.json.unlink(missing_ok=True)
    counts = Counter(outcome.result for outcome in outcomes)
    seconds = round(time.monotonic() - began)
    print(
        f"{len(outcomes)} mutations in {seconds} s: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
    )
    for outcome in outcomes:
        if outcome.result in (SURVIVED, BROKEN):
            print(f"{outcome.result}: {outcome.name}: {outcome.said}")
    _keep(options, outcomes, at_the_end=True, seconds=seconds, workers=options.workers)
    return 2 if counts[BROKEN] else 1 if counts[SURVIVED] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="NAME", help="one mutation, or all whose name begins so")
    written = parser.add_mutually_exclusive_group()
    written.add_argument("--json", metavar="FILE", type=Path, help="write the outcomes there")
    written.add_argument(
        "--new", metavar="FILE", type=Path, help="those that FILE does not know as they are now; add the outcomes to it"
    )
    parser.add_argument("--workers", type=int, default=2, help="how many at a time (default 2)")
    return parser.parse_args()


def _tried(chosen: list[Mutation], folder: Path, workers: int, keep: Callable[[Outcome], None]) -> list[Outcome] | None:
    """The outcomes in the order of the list; None if the tests fail without any mutation."""
    turn = threading.Lock()
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
        with turn:
            keep(outcome)
        return outcome

    with ThreadPoolExecutor(workers) as pool:
        tests = sorted({test for mutation in chosen for test in mutation.tests})
        whole = [tuple(tests[place::workers]) for place in range(workers)]
        for code, said in pool.map(Tree.unchanged, list(trees.queue), whole):
            if code:
                print(f"The tests do not pass without a mutation: {said}", file=sys.stderr)
                return None
        return list(pool.map(on_some_tree, chosen))


def _keep(options: argparse.Namespace, outcomes: list[Outcome], at_the_end: bool = False, **more: object) -> None:
    """In the file that was asked for. What is added to one, is added after every mutation, because all of them take a while."""
    path = options.new or (options.json if at_the_end else None)
    if path is None:
        return
    try:
        shown = path.resolve().relative_to(REPOSITORY)
    except ValueError:
        shown = Path(path.name)
    words = ["python tests/mutants", *(["--only", options.only] if options.only else [])]
    write(path, MUTATIONS, outcomes, " ".join([*words, "--new" if options.new else "--json", str(shown)]), **more)


if __name__ == "__main__":
    sys.exit(main())
