"""federate run and simulate: a set made with all sites of a federation."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.datasets import ready
from limbeck.cli.federate import Block, Collusion, Noise, federate
from limbeck.cli.options import (
    Data,
    Delta,
    Epsilon,
    Json,
    Label,
    LedgerPath,
    MethodOrDefault,
    PerClass,
    Root,
    SchemaPath,
    Set,
    data_reference,
    epsilon_value,
    settings_from,
    text_of,
)
from limbeck.cli.output import emit, reporter
from limbeck.cli.runs import Out, outcome_lines, stoppable
from limbeck.errors import LimbeckError
from limbeck.privacy.numbers import finite_or_word

if TYPE_CHECKING:
    from limbeck.federated.folders import Federation
    from limbeck.privacy.federation import Views
    from limbeck.privacy.plan import Plan
    from limbeck.progress import Reporter

Patience = Annotated[float, typer.Option("--patience", help="Seconds that a site has for an answer.")]
WholeSite = Annotated[
    bool,
    typer.Option("--whole-site", help="Epsilon is for all records of a site, not for one. With teachers only."),
]
SECONDS_A_MESSAGE = 4  # Flower's own pace: a site looks for a message every three seconds


def register(app: typer.Typer) -> None:
    app.add_typer(federate, name="federate")


@federate.command("run")
def run(
    folder: Annotated[Path, typer.Argument(help="The server's folder; 'limbeck federate server' is at work on it.")],
    out: Out,
    method: MethodOrDefault = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    settings: Set = None,
    whole_site: WholeSite = False,
    patience: Patience = 600.0,
    as_json: Json = False,
) -> None:
    """Make a set with all sites. If OUT holds an unfinished run, go on with it; nothing is paid twice."""
    from limbeck.federated.flower_server import FlowerTransport
    from limbeck.federated.folders import Federation
    from limbeck.federated.running import federated_plan, run_federated
    from limbeck.release.destination import is_unfinished

    federation = Federation.read(folder)
    plan = None
    if not is_unfinished(out):
        chosen = settings_from(settings, per_class)
        plan = federated_plan(federation, method, chosen, epsilon_value(epsilon), delta, whole_site)
    with _resumable(f"limbeck federate run {folder} --out {out}"), stoppable(out), reporter() as shown:
        _say(shown, federation, plan)
        transport = FlowerTransport(folder, federation, patience)
        try:
            outcome = run_federated(folder, federation, transport, plan, out, shown)
        finally:
            transport.close()
    _emit_run(outcome, federation, as_json)


@federate.command("simulate")
def simulate(
    data: Data,
    out: Out,
    sites: Annotated[int, typer.Option("--sites", help="How many sites share the records out.")] = 4,
    method: MethodOrDefault = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    per_class: PerClass = None,
    settings: Set = None,
    whole_site: WholeSite = False,
    noise: Noise = "site",
    collusion: Collusion = 0,
    block: Block = 1,
    split: Annotated[
        str, typer.Option("--split", help="Who holds what: iid, class, dirichlet, or writer (persons).")
    ] = "iid",
    seed: Annotated[int, typer.Option("--seed", help="Of the split.")] = 0,
    schema: SchemaPath = None,
    label: Label = None,
    root: Root = None,
    ledger: LedgerPath = None,
    insecure_seed: Annotated[
        int | None, typer.Option("--insecure-seed", help="For tests only: predictable noise; nothing is releasable.")
    ] = None,
    patience: Patience = 600.0,
    as_json: Json = False,
) -> None:
    """Try a federation out on this machine: real Flower processes, TLS, node keys, one process and ledger for each site.

    The records are yours, so the price is booked in your own ledger, too. The sites live in OUT.sites; the same command goes on
    with a run that was stopped.
    """
    from limbeck.federated.running import federated_plan, run_federated
    from limbeck.federated.simulate import Simulation, give_budgets, set_up, simulated, workplace
    from limbeck.release.destination import is_unfinished
    from limbeck.runs.folder import require_unused
    from limbeck.runs.request import Request, RunOptions

    request = Request(data=data_reference(data, schema, label, root), options=RunOptions(ledger=text_of(ledger)))
    ready(request.data.source())
    simulation = Simulation(
        data=request.data,
        sites=sites,
        split=split,
        noise=noise,
        collusion=collusion,
        block=block,
        seed=seed,
        insecure_seed=insecure_seed,
    )
    home, unfinished = workplace(out), is_unfinished(out)
    if not unfinished:
        require_unused(out)
    chosen = settings_from(settings, per_class)
    wanted = epsilon_value(epsilon)
    plan = None if unfinished else federated_plan(simulation.draft(), method, chosen, wanted, delta, whole_site)
    federation = set_up(home, simulation)
    if plan is not None:
        give_budgets(home, simulation, plan)
    with _resumable("limbeck federate simulate with the same options"), stoppable(out), reporter() as shown:
        _say(shown, federation, plan)
        with simulated(home, federation, patience) as transport:
            owner = request.options.ledger_path
            outcome = run_federated(home / "server", federation, transport, plan, out, shown, owner)
    _emit_run(outcome, federation, as_json)


def _say(shown: Reporter, federation: Federation, plan: Plan | None) -> None:
    if plan is None:
        shown.say("Going on with the unfinished run; what the sites answered before is not paid again.")
        return
    from limbeck.privacy.federation import views
    from limbeck.privacy.queries import TeacherGradient, TeacherVote

    terms, found = federation.terms, views(plan.queries, plan.price.delta, federation.terms)
    shown.say(f"{plan.method} over {len(terms.sites)} sites, noise {terms.noise}: {_views_line(found)}")
    answers = sum(query.count for query in plan.queries)
    if all(isinstance(query, TeacherGradient | TeacherVote) for query in plan.queries):
        messages = len(terms.sites) * sum(math.ceil(query.count / terms.block) for query in plan.queries)
        shown.say(
            f"Up to {answers} answers of each site, {terms.block} in a row (--block), so some {messages} messages of about "
            f"{SECONDS_A_MESSAGE} s, {messages * SECONDS_A_MESSAGE / 60:.0f} minutes for messages alone."
        )
        return
    shown.say(
        f"Up to {answers} answers of each site. A message takes about {SECONDS_A_MESSAGE} s, and methods that cannot ask "
        f"ahead need one for each answer: up to {answers * SECONDS_A_MESSAGE / 60:.0f} minutes for messages alone."
    )


def _views_line(found: Views) -> str:
    whole = "" if found.site is None else f"; {finite_or_word(found.site.epsilon)} for a whole site as the unit"
    return (
        f"epsilon {finite_or_word(found.server.epsilon)} against the server, {finite_or_word(found.public.epsilon)} against the "
        f"public, {finite_or_word(found.all_told.epsilon)} if all other sites tell{whole} (delta {found.server.delta:g})"
    )


def _emit_run(outcome: Any, federation: Federation, as_json: bool) -> None:
    from limbeck.privacy.federation import views

    found = views(outcome.plan.queries, outcome.plan.price.delta, federation.terms)
    values = {**outcome.to_dict(), "federation": {"terms": federation.terms.to_dict(), "views": found.to_dict()}}
    emit(as_json, values, [*outcome_lines(outcome), _views_line(found)])


@contextlib.contextmanager
def _resumable(command: str) -> Iterator[None]:
    """What to type next is this command's own, not 'limbeck resume', which has no way to the sites."""
    try:
        yield
    except LimbeckError as error:
        if error.next_command and error.next_command.startswith("limbeck resume"):
            error.message = error.message.replace(error.next_command, command)
            error.next_command = command
        raise
