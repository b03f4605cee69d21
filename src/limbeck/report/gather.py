"""What `limbeck report` puts on a page: the release itself, and what the owner hands over beside it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from limbeck.data import DataSource
from limbeck.errors import BadInput, LedgerFault, NotReleasable, OutputFault, RunConflict
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.fidelity_result import Fidelity
from limbeck.evaluate.privacy_curve import PrivacyCurve, read_snapshots
from limbeck.evaluate.reading import read_json
from limbeck.evaluate.synthetic_columns import synthetic_columns
from limbeck.methods.graphical.network import NetworkModel
from limbeck.methods.mosaic.model import TableModel
from limbeck.release.certificate import Certificate
from limbeck.release.destination import is_unfinished, require_outside, resume_command
from limbeck.release.editions import OWNER, RELEASE, checked_edition, page_edition
from limbeck.release.formats import SNAPSHOTS, TRAINING_CURVES
from limbeck.release.generator import Generator, load_generator
from limbeck.release.imprint import NAME as IMPRINT
from limbeck.release.imprint import imprint_in
from limbeck.release.reader import Release, read_release
from limbeck.release.table_generator import TableGenerator
from limbeck.release.verification import verify
from limbeck.report import convergence
from limbeck.report.budget import BudgetView, budget_view
from limbeck.report.drawn import drawn_strips
from limbeck.report.page import Report
from limbeck.report.pictures import png_bytes, table_grid
from limbeck.report.scores import require_fit, require_public, shared_entries
from limbeck.report.sites import SiteRow, site_rows
from limbeck.report.strips import Strip, class_strips, columns, shown_classes, snapshot_strips, strip
from limbeck.vault.ledger import Account, Ledger, default_path
from limbeck.vault.ledger.address import may_exist


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Everything that a report may be made from. `real` and `fidelity` are for the owner's edition."""

    run: Path
    edition: str = RELEASE
    evaluations: Sequence[Path] = ()
    curve: Path | None = None
    fidelity: Path | None = None
    real: DataSource | None = None
    ledger: Path | None = None
    history: bool = False

    def __post_init__(self) -> None:
        checked_edition(self.edition)
        if self.edition == RELEASE and (self.real is not None or self.fidelity is not None):
            raise NotReleasable(
                "Real records, and figures measured on them, are not paid for and never in the release edition; use "
                "--edition owner."
            )


def gather(sources: Sources) -> Report:
    """Check the release and read what is to be shown.

    Guarantee: in the release edition only public records have scores, and the ledger is read only if the owner asked.
    """
    _require_finished(sources.run)
    certificate = verify(sources.run)
    report = Report(
        certificate=certificate,
        schema=certificate.public_assumptions,
        edition=sources.edition,
        evaluations=[_evaluation(path, certificate, sources.edition) for path in sources.evaluations],
        curve=_curve(sources, certificate),
        budget=_budget(sources, certificate),
        fidelity=_fidelity(sources.fidelity, certificate),
        generator=certificate.has_generator,
        imprint=imprint_in(sources.run) if IMPRINT in certificate.files else None,
    )
    if certificate.is_model:
        if sources.real is not None:
            raise BadInput("A model has no records to lay beside real ones; leave --data out.")
        return report
    return _with_pictures(report, read_release(sources.run), sources)


def require_report_path(out: Path) -> None:
    """Refuse a path inside a release, which holds only what its certificate lists, and a file that is no report."""
    require_outside(out, NotReleasable)
    if out.is_dir() or out.is_symlink():
        raise RunConflict(f"{out} is no file that a report could replace. Choose another --out.")
    if out.exists() and page_edition(out.read_bytes()) is None:
        raise RunConflict(f"{out} exists and is no report; nothing is overwritten. Choose another --out.")
    if not out.absolute().parent.is_dir():
        raise OutputFault(f"The folder {out.absolute().parent} for the report does not exist.")


def default_report_path(run: Path, edition: str) -> Path:
    """Beside the release, never in it."""
    run = run.absolute()
    return run.with_name(f"{run.name}-owner-report.html" if edition == OWNER else f"{run.name}-report.html")


def _require_finished(run: Path) -> None:
    if is_unfinished(run):
        raise RunConflict(f"{run} holds a run that is not finished; there is nothing to report.", resume_command(run))


def _evaluation(path: Path, certificate: Certificate, edition: str) -> Evaluation:
    evaluation = Evaluation.from_dict(read_json(path, "evaluation"))
    require_fit(evaluation, certificate, path)
    if edition == OWNER:
        return evaluation
    require_public(evaluation, str(path))
    return evaluation.public()


def _curve(sources: Sources, certificate: Certificate) -> PrivacyCurve | None:
    inside = sources.run / convergence.FILE
    path = sources.curve or (inside if convergence.FILE in certificate.files else None)
    if path is None:
        return None
    curve = PrivacyCurve.from_dict(read_json(path, "curve"))
    convergence.curve_view(curve, str(path))  # says what is wrong with it
    if sources.edition == RELEASE and path != inside:
        _require_public_curve(curve, path)
    return curve


def _require_public_curve(curve: PrivacyCurve, path: Path) -> None:
    edition = curve.provenance.edition
    proved = edition is None and curve.provenance.benchmark("test") is not None
    if edition != RELEASE and not proved:
        raise NotReleasable(
            f"{path} neither proves that its accuracies come from a public benchmark, as 'limbeck curve' does for a named set, "
            'nor says by "edition": "release" that they come from public records, so it belongs into the owner\'s edition '
            "(--edition owner)."
        )


def _fidelity(path: Path | None, certificate: Certificate) -> Fidelity | None:
    if path is None:
        return None
    fidelity = Fidelity.from_dict(read_json(path, "fidelity result"))
    stated = shared_entries(certificate)
    for name, value in {"method": fidelity.method, "epsilon": fidelity.epsilon, "records": fidelity.records}.items():
        if value is not None and value != stated[name]:
            raise BadInput(f"{path} was measured on another release: it says {name}={value}.")
    return fidelity


def _budget(sources: Sources, certificate: Certificate) -> BudgetView | None:
    """The account of the data set. Its other runs are no part of this release, so a release tells of them only if asked."""
    if sources.edition == RELEASE and not sources.history:
        return None
    path = sources.ledger or default_path()
    if sources.ledger is None and not may_exist(path):
        return None
    with Ledger.open_to_read(path) as ledger:
        account = ledger.account(certificate.dataset)
        if account is None:
            if sources.ledger is None:
                return None
            raise LedgerFault(f"The ledger {path} knows no data set '{certificate.dataset}'.", "limbeck budget show")
        return budget_view(account, own_grant(ledger, account, sources.run, certificate))


def own_grant(ledger: Ledger, account: Account, run: Path, certificate: Certificate) -> str | None:
    """The booking that paid for a release: the last one with its plan before the certificate was signed."""
    try:
        plan = json.loads((run / "config.json").read_text(encoding="utf-8"))["plan"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    for booking in reversed(account.bookings):
        if booking.state == "finished" and booking.created <= certificate.created:
            booked = json.loads(ledger.grant(booking.grant).plan)
            if booked.get("plan", booked) == plan:
                return booking.grant
    return None


def _with_pictures(report: Report, release: Release, sources: Sources) -> Report:
    if (sources.run / TRAINING_CURVES).exists():
        course = convergence.read_training_curves(sources.run / TRAINING_CURVES)
        report = dataclasses.replace(report, training_curves=course, sites=_sites(report, release, sources.run, course))
    grid = (sources.run / "grid.png").read_bytes() if (sources.run / "grid.png").is_file() else None
    if not release.schema.is_image:
        columns = synthetic_columns(release.x, release.y, release.schema, _table_model(sources.run, report))
        return dataclasses.replace(report, grid=grid, real_grid=_real_rows(sources.real, release), columns=columns)
    strips = class_strips(release.x, release.y, release.schema)
    if (sources.run / SNAPSHOTS).exists():
        shown = snapshot_strips(*read_snapshots(sources.run, release), release.y, release.schema)
        report = dataclasses.replace(report, snapshots=shown)
    real, nearest = _real_pictures(sources.real, release)
    made = load_generator(sources.run) if report.generator else None
    drawn = drawn_strips(made.trained, release.schema) if isinstance(made, Generator) else ()
    return dataclasses.replace(report, strips=strips, real=real, nearest=nearest, drawn=drawn)


def _sites(report: Report, release: Release, run: Path, course: Mapping[str, Sequence[float]]) -> tuple[SiteRow, ...]:
    kept = read_snapshots(run, release) if (run / SNAPSHOTS).exists() else None
    return site_rows(report.certificate, release.schema, course, kept, release.y)


def _table_model(run: Path, report: Report) -> TableModel | NetworkModel | None:
    """The model of a table that a release carries. It is made of noised answers, so it is no real row."""
    found = load_generator(run) if report.generator else None
    return found.model if isinstance(found, TableGenerator) else None


def _real_pictures(source: DataSource | None, release: Release) -> tuple[list[Strip | None], list[Strip | None]]:
    """For each class real pictures, and the nearest real picture of each synthetic one that is shown."""
    if source is None:
        return [], []
    from limbeck.evaluate.real_examples import class_examples

    schema = release.schema
    found = class_examples(release, source, shown_classes(schema), columns(schema))
    return (
        [strip(each.real, schema) if len(each.real) else None for each in found],
        [strip(each.nearest, schema) if len(each.nearest) else None for each in found],
    )


def _real_rows(source: DataSource | None, release: Release) -> bytes | None:
    if source is None:
        return None
    from limbeck.evaluate.real_examples import real_rows

    return png_bytes(table_grid(*real_rows(release, source), release.schema))
