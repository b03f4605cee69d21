"""Figure 2 of DataLens, for the owner alone: epsilon over the steps by the plain bound and by the data-dependent one.

Runs teachers of DataLens on a named data set with the given noise, looks at the votes before it, and prints both
curves. What it prints depends on the records beyond any epsilon: never publish it for data that are private.

    python -m benchmarks.datalens_bounds mnist [--teachers 1000] [--steps 10] [--sigma 1250]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from limbeck.data import open_source
from limbeck.methods.datalens import DataLens
from limbeck.vault.api import Answer, Asked
from limbeck.vault.ensemble.data_dependent import both_epsilons
from limbeck.vault.ensemble.desk import vote_sum
from limbeck.vault.ensemble.ensemble import Ensemble
from limbeck.vault.ensemble.partition import partition
from limbeck.vault.ensemble.votes import SignVote
from limbeck.vault.noise import Randomness, drawn_noise, with_noise

K, BETA = 200, 0.7  # the paper's


class Steps:
    def steps(
        self, total: int, state: dict[str, Tensor], answers: str, ends: Callable[[int], int] | None = None
    ) -> Iterator[int]:
        return iter(range(total))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--teachers", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--sigma", type=float, default=1250.0)
    options = parser.parse_args()
    # The paper's votes, from small teachers; no smoothing, which the bound knows nothing of.
    paper = DataLens(
        batch=15, k=K, beta=BETA, gamma=1.0, smooth=0.0, fit=1, latent=50,
        teacher_batch=15, teacher_steps=2, first_steps=10, teacher_eta=1e-3, teacher_decay=0.0, hidden=16, width=16, per_class=1,
    )  # fmt: skip
    method = dataclasses.replace(paper, teachers=options.teachers, T=options.steps, sigma=options.sigma)
    source = open_source(options.data, split="train")
    records, schema = source.load(), source.schema
    ensemble = Ensemble(method.teacher(schema), method.ensemble(schema), schema, torch.device("cpu"))
    ensemble.assign_records(records, partition(records, options.teachers, bytes(32)))
    (query,) = method.queries(schema, 1.0)
    seen: list[np.ndarray] = []

    def ask(label: str, index: int, mapping: Asked) -> Answer:
        assert isinstance(mapping, SignVote)
        ensemble.learn(mapping)
        stream = Randomness().stream(label, index)
        sums = vote_sum(ensemble, mapping, query, stream)  # type: ignore[arg-type]
        seen.append(sums.reshape(method.chosen(schema).batch, -1) * query.step)
        noised = with_noise(query, sums.astype(np.int64), drawn_noise(query, sums.shape, stream))
        return Answer(noised.astype(np.float32))

    method.run(schema, ask, Steps(), torch.device("cpu"))
    plain, dependent = both_epsilons(seen, K, options.sigma, BETA * options.teachers, 1e-5)
    print(json.dumps({"plain": plain, "data_dependent": dependent}, indent=1))


if __name__ == "__main__":
    main()
