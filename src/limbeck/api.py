"""The public names: all that the commands do, from Python.

    from limbeck import condense, verify
    condense("scans/", "scans-set", epsilon=1.0)

`limbeck` itself has every name of this file but `evaluate`, which there is a package: `from limbeck.api import evaluate`.
What stands here stays as it is within a major version; everything else may move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data import DataSource, open_source
from limbeck.data.drafting import draft
from limbeck.errors import BadInput, LimbeckError
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.protocol import EvaluationProtocol
from limbeck.evaluate.release import evaluate_release
from limbeck.evaluate.released_model import evaluate_model
from limbeck.privacy.plan import Plan
from limbeck.privacy.schema import Column, Schema
from limbeck.progress import Reporter, Silent
from limbeck.release import verification
from limbeck.release.certificate import Certificate
from limbeck.release.generator import load_generator
from limbeck.release.model import ModelRelease, is_model, load_model, read_model
from limbeck.release.reader import Release, read_release
from limbeck.release.statement import public_schema
from limbeck.runs import condense as condensing
from limbeck.runs import resume as resuming
from limbeck.runs.condense import Outcome
from limbeck.runs.distilling import distil
from limbeck.runs.estimator import Condenser
from limbeck.runs.given import as_text, given_data, given_source
from limbeck.runs.in_memory import in_memory
from limbeck.runs.parts import with_part
from limbeck.runs.planning import Quote, make_plan, plan_for, quote, sized
from limbeck.runs.request import DataReference, Request, RunOptions
from limbeck.vault.ledger import Account, Ledger
from limbeck.vault.local import LocalVault

__all__ = [
    "Certificate",
    "Column",
    "Condenser",
    "Evaluation",
    "Ledger",
    "LimbeckError",
    "LocalVault",
    "Plan",
    "Schema",
    "budget",
    "condense",
    "distil",
    "draft",
    "evaluate",
    "load",
    "load_generator",
    "load_model",
    "make_plan",
    "open_source",
    "plan",
    "resume",
    "sample",
    "set_budget",
    "verify",
]


def plan(
    data: Any,
    *,
    epsilon: float | None,
    delta: float = 1e-5,
    method: str | None = None,
    per_class: int | None = None,
    rows: int | None = None,
    settings: Mapping[str, Any] | None = None,
    schema: str | Path | Schema | None = None,
    label: str | None = None,
    root: str | Path | None = None,
    vault: str | Path | None = None,
    real_accuracy: float | None = None,
) -> Quote:
    """What `condense` would ask and cost. Reads no record, books nothing.

    Args:
        data: a path to your data, a frame of pandas, polars or Arrow, or the name of a benchmark set; None with `vault`.
        epsilon: how much may be learnt about any one record (or person), at most; None where a setting fixes the noise.
        delta: the chance that epsilon does not hold; below 1 / number of records or persons.
        method: how the set is made, see `limbeck methods`; None for elixir on images and mosaic on tables.
        per_class, rows: synthetic records of each class; of a table, rows over all classes, for methods that have it.
        settings: of the method, by name.
        schema: the file that says what is public about the data; None looks beside the data. Of a frame, also a `Schema`.
        label, root: the label column of a CSV file; a folder that holds the benchmark sets.
        vault: the socket of a vault that holds the records in another process, see `limbeck vault serve`.
        real_accuracy: for the forecast, in per cent: what a usual model reaches on real records of this kind, if known.

    >>> found = plan("digits", method="ldpdc", epsilon=1.0, per_class=2)
    >>> found.plan.price.epsilon <= 1.0, [query.label for query in found.plan.queries]
    (True, ['groups'])
    """
    given = given_data(data, schema, label, root, vault)
    return quote(given, method, sized(settings, per_class), epsilon, delta, rows, real_accuracy=real_accuracy)


def condense(
    data: Any,
    out: str | Path,
    *,
    epsilon: float | None,
    delta: float = 1e-5,
    method: str | None = None,
    per_class: int | None = None,
    rows: int | None = None,
    settings: Mapping[str, Any] | None = None,
    schema: str | Path | Schema | None = None,
    label: str | None = None,
    root: str | Path | None = None,
    part: str | None = None,
    ledger: str | Path | None = None,
    device: str = "cpu",
    insecure_seed: int | None = None,
    vault: str | Path | None = None,
    reporter: Reporter | None = None,
) -> Outcome:
    """Turn a private data set into a synthetic one. Its epsilon is booked before a record is read.

    Args:
        data, epsilon, delta, method, per_class, rows, settings, schema, label, root, vault: as in `plan`.
        out: the folder for the release; it must be empty or not there yet.
        part: one part of a split that the ledger knows, as SPLIT/NUMBER; None for all records.
        ledger: the file that keeps the budgets; None for the default one.
        device: where to compute.
        insecure_seed: predictable noise, for tests; such a release may not be shared.
        reporter: told how far it is; None shows nothing.

    >>> made = condense("digits", "my-set", method="ldpdc", epsilon=1.0, per_class=2)
    >>> made.release.name, made.releasable
    ('my-set', True)
    """
    options = RunOptions(ledger=as_text(ledger), device=device, insecure_seed=insecure_seed)
    reference = given_data(data, schema, label, root, vault)
    if isinstance(reference, DataSource):
        if part is not None:
            raise BadInput(f"A frame has no part '{part}': give only the rows of that part, or the data by its path.")
        priced, _ = plan_for(reference, method, sized(settings, per_class), epsilon, delta, rows)
        request = Request(data=DataReference(data=None), options=options)
        return in_memory(request, priced, reference, Path(out), reporter or Silent())
    reference = with_part(reference, part, options.ledger_path)
    priced, source = plan_for(reference, method, sized(settings, per_class), epsilon, delta, rows)
    request = Request(data=reference, options=options)
    return condensing.condense(request, priced, source, Path(out), reporter or Silent())


def resume(
    out: str | Path,
    *,
    ledger: str | Path | None = None,
    vault: str | Path | None = None,
    reporter: Reporter | None = None,
) -> Outcome:
    """Go on with a run that was stopped. Nothing is paid twice.

    Args:
        out: the folder of the run.
        ledger: the file that keeps the budgets, if it was moved since.
        vault: the socket of the run's vault, if it was moved since.
        reporter: told how far it is; None shows nothing.

    >>> resume("digits-set")
    Traceback (most recent call last):
    ...
    limbeck.errors.RunConflict: digits-set is a finished release; there is nothing to resume.
    """
    moved = None if ledger is None else Path(ledger)
    socket = None if vault is None else Path(vault)
    return resuming.resume(Path(out), reporter or Silent(), moved, vault_path=socket)


def evaluate(
    release: str | Path,
    test: Any,
    *,
    models: Sequence[str] | None = None,
    preset: str | None = None,
    repeats: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    schema: str | Path | Schema | None = None,
    label: str | None = None,
    root: str | Path | None = None,
    reporter: Reporter | None = None,
    size: int | None = None,
) -> Evaluation:
    """Train models on a released set and score them on real test records; a released model is scored itself.

    Args:
        release: the folder of the release.
        test: real test records: a path, a frame of pandas, polars or Arrow, or the name of a benchmark set.
        models, preset, repeats, seed, device, size: how it is scored; see `EvaluationProtocol`.
        schema, label, root: of the test records, as in `plan`; without a schema that of the release is taken.
        reporter: told how far it is; None shows nothing.

    >>> found = evaluate("digits-set", "digits", models=["linear"], repeats=1)
    >>> 0 <= found.means["linear"] <= 100
    True
    """
    folder = Path(release)
    records = given_source(test, schema, label, root, public_schema(folder))
    if is_model(folder):
        return evaluate_model(folder, records, device, size)
    chosen = None if models is None else tuple(models)
    protocol = EvaluationProtocol(models=chosen, preset=preset, repeats=repeats, seed=seed, device=device, size=size)
    return evaluate_release(folder, records, protocol, reporter or Silent())


def verify(release: str | Path, expected_key: str | None = None) -> Certificate:
    """Check a release against its own certificate: epsilon computed again, every file unchanged, the signature whole.

    Args:
        release: the folder of the release.
        expected_key: the owner's public key, if you know it.

    >>> verify("digits-set").epsilon <= 1.0
    True
    """
    return verification.verify(Path(release), expected_key)


def load(release: str | Path) -> Release | ModelRelease:
    """Read a release: a set with its records `x` and labels `y`, or a model with its `network`; both with `certificate`.

    A table also has `to_pandas()`, `to_polars()` and `to_arrow()`, and every set `to_torch()`.

    Args:
        release: the folder of the release. `verify` checks it; this only needs it to be whole.

    >>> found = load("digits-set")
    >>> found.x.shape, found.y.shape
    ((20, 1, 8, 8), (20,))
    """
    return read_model(Path(release)) if is_model(Path(release)) else read_release(Path(release))


def sample(
    release: str | Path, count: int, *, seed: int = 0, label: str | None = None, where: Sequence[str] = ()
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """More records from the generator of a release, and their class indices. Costs no budget.

    Args:
        release: the folder of a release that has a generator.
        count: how many records.
        seed: the same count, seed, label and conditions give the same records.
        label: all of this class; None for the shares of the set.
        where: of a table, conditions that every row keeps, such as ["age>60", "sex = female"].

    >>> x, y = sample("digits-generator", 4, label="7")
    >>> x.shape, y.tolist()
    ((4, 1, 8, 8), [7, 7, 7, 7])
    """
    return load_generator(release).sample(count, seed, label, where)


def budget(dataset: str, *, ledger: str | Path | None = None) -> Account | None:
    """The budget of a data set, what is spent of it and every booking; None for a data set that has none.

    `spent_epsilon` is composed by the account's `rule` and at the budget's delta; `spent_epsilon_sum` is the plain sum.

    Args:
        dataset: the name in its schema; DATA/SPLIT/NUMBER for a part.
        ledger: the file that keeps the budgets; None for the default one.

    >>> found = budget("digits", ledger="ledger.sqlite")
    >>> [booking.method for booking in found.bookings]
    ['ldpdc', 'dpmerf', 'dpsgd']
    """
    with Ledger.open_to_read(None if ledger is None else Path(ledger)) as book:
        return book.account(dataset)


def set_budget(dataset: str, epsilon: float, delta: float, *, ledger: str | Path | None = None) -> Account:
    """Set or change the budget of a data set. Only its owner does that; it never falls below what is spent.

    Args:
        dataset: the name in its schema.
        epsilon, delta: what all releases of it may spend together.
        ledger: the file that keeps the budgets; None for the default one.

    >>> set_budget("scans", 3.0, 1e-5, ledger="ledger.sqlite").remaining_epsilon
    3.0
    """
    with Ledger.open(None if ledger is None else Path(ledger)) as book:
        return book.set_budget(dataset, epsilon, delta)
