"""Rows of AIM or MST as the package dpmm makes them, for `benchmarks.tables` to score.

    python -m venv peers && peers/bin/pip install dpmm==0.1.9
    peers/bin/python benchmarks/peers/dpmm_rows.py aim --train adult/train.csv --epsilon 1 --seed 0 --out aim-0.csv

Ranges and categories are declared, as for our own rows. AIM has the model size that its authors recommend (80 MB) and the
package's own number of iterations. Needs nothing of Limbeck. Prints the seconds of CPU that it took.
"""

from __future__ import annotations

import argparse
import json
import time

RANGES = {
    "age": (17, 90), "fnlwgt": (10_000, 1_500_000), "education-num": (1, 16), "capital-gain": (0, 99_999),
    "capital-loss": (0, 5_000), "hours-per-week": (1, 99),
}  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("method", choices=["aim", "mst"])
    options.add_argument("--train", required=True)
    options.add_argument("--epsilon", type=float, required=True)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", required=True)
    chosen = options.parse_args()

    import pandas as pd  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from dpmm.pipelines.aim import AIMPipeline  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from dpmm.pipelines.mst import MSTPipeline  # type: ignore[import-not-found,import-untyped,unused-ignore]

    rows = pd.read_csv(chosen.train, skipinitialspace=True)
    domain: dict[str, object] = {}
    for name in rows.columns:
        if name in RANGES:
            domain[name] = dict(zip(("lower", "upper"), RANGES[name], strict=True))
        else:
            categories = sorted(rows[name].unique())
            rows[name] = pd.Categorical(rows[name], categories=categories)
            domain[name] = {"categories": categories}
    began = time.process_time()
    pipeline = (
        AIMPipeline(epsilon=chosen.epsilon, delta=1e-5, n_jobs=1, max_model_size=80)
        if chosen.method == "aim"
        else MSTPipeline(epsilon=chosen.epsilon, delta=1e-5, n_jobs=1)
    )
    pipeline.fit(rows, domain=domain, random_state=chosen.seed)
    made = pipeline.generate(n_records=len(rows), random_state=chosen.seed)
    seconds = time.process_time() - began
    made.to_csv(chosen.out, index=False)
    print(json.dumps({"out": chosen.out, "rows": len(made), "cpu_seconds": round(seconds)}))


if __name__ == "__main__":
    main()
