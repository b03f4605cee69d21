"""The report page: one HTML file that needs no network, for the people who decide about a release or use it.

Two editions. `release` shows what was paid for or is public. `owner` may also show private records and scores on them; it
says so on the screen, on every printed page and, for programs, in its head.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from limbeck.errors import NotReleasable, WallBreach
from limbeck.evaluate.evaluation import Evaluation
from limbeck.evaluate.fidelity_result import Fidelity
from limbeck.evaluate.privacy_curve import PrivacyCurve
from limbeck.evaluate.table_marginals import ColumnMarginal
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.editions import EDITIONS, OWNER, RELEASE
from limbeck.release.imprint import Imprint
from limbeck.report import brief, views
from limbeck.report.budget import BudgetView
from limbeck.report.closeness import closeness_view
from limbeck.report.confusion import confusion_view
from limbeck.report.convergence import curve_view, training_curve_drawings
from limbeck.report.marginals import columns_view, marginals_view
from limbeck.report.scores import score_table
from limbeck.report.sites import SiteRow
from limbeck.report.strips import MOST_CLASSES, Strip


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that a page shows. What is left out has no section on it.

    snapshots         (answers seen, first picture of each class) while the set was made
    training_curves   numbers of the run by step, by name
    curve             accuracy against epsilon
    drawn             pictures of each class from the generator of the release
    sites             of a federation: what each site's answers did to the pictures
    imprint           what the owner says of themselves; it is public, because the release states it
    columns           of a table: shares among its rows, beside those of the release's own model (no real row)

    Guarantee: a report of the release edition holds no real picture, no figure measured on private records and nothing
    that is marked as the owner's.
    """

    certificate: Certificate
    schema: Schema
    edition: str = RELEASE
    grid: bytes | None = None
    strips: Sequence[Strip | None] = ()
    snapshots: Sequence[tuple[int, Strip]] = ()
    training_curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    evaluations: Sequence[Evaluation] = ()
    curve: PrivacyCurve | None = None
    budget: BudgetView | None = None
    real: Sequence[Strip | None] = ()
    nearest: Sequence[Strip | None] = ()
    real_grid: bytes | None = None
    fidelity: Fidelity | None = None
    generator: bool = False
    drawn: Sequence[Strip | None] = ()
    columns: Sequence[ColumnMarginal] = ()
    sites: Sequence[SiteRow] = ()
    imprint: Imprint | None = None

    def __post_init__(self) -> None:
        if self.edition not in EDITIONS:
            raise WallBreach(f"There is no edition '{self.edition}' of a report.")
        if self.edition == OWNER:
            return
        if self.real or self.nearest or self.real_grid or self.fidelity is not None:
            raise NotReleasable("Real records and figures measured on them belong to the owner's edition of a report.")
        sources = [each.provenance for each in self.evaluations]
        sources += [] if self.curve is None else [self.curve.provenance]
        if any(source.is_owners for source in sources):
            raise NotReleasable("A result that is marked as the owner's cannot be in the release edition of a report.")


def report_page(
    certificate: Certificate, schema: Schema, grid_png: bytes | None, evaluation: Evaluation | None = None
) -> str:
    """The release edition with a grid of pictures and at most one evaluation. A model has no grid."""
    evaluations = [] if evaluation is None else [evaluation]
    return render(Report(certificate=certificate, schema=schema, grid=grid_png, evaluations=evaluations))


def render(report: Report) -> str:
    """The whole page as text. Everything that comes from a schema or a setting is escaped."""
    certificate, schema = report.certificate, report.schema
    sheets = [*(["multiples.css"] if report.columns or report.fidelity else []), *_owners_sheets(report)]
    tables = [score_table(each) for each in report.evaluations if each.accuracy or each.targets]
    style = page_style("look.css", "report.css", *sheets)
    parts = {
        "head": views.headline(certificate, schema),
        "imprint": brief.imprint_rows(certificate, report.imprint),
        "looks": brief.why_noisy(certificate, schema),
        "promises": views.promises(certificate, schema),
        "making": views.making(certificate, schema),
        "loading": views.how_to_load(certificate, schema, report.generator),
        "style": style,
        "style_hash": style_hash(style),
        "edition": report.edition,
        "is_owner": report.edition == OWNER,
        "grid": views.source(report.grid),
        "real_grid": views.source(report.real_grid),
        "grid_words": brief.grid_words(schema),
        "classes": views.classes(schema, report.strips, report.nearest, report.real),
        "drawn": views.classes(schema, report.drawn, (), ()),
        "snapshots": report.snapshots,
        "training_curves": training_curve_drawings(report.training_curves),
        "sites": report.sites,
        "sites_left": max(len(certificate.federation.terms.sites) - len(report.sites), 0)
        if certificate.federation
        else 0,
        "schema_classes": len(schema.classes),
        "brief_names": views.brief_names(schema),
        "classes_left": max(len(schema.classes) - MOST_CLASSES, 0) if report.strips else 0,
        "tables": [views.scores(table) for table in tables],
        "confusions": [confusion_view(table, schema) for table in tables],
        "curve": curve_view(report.curve) if report.curve else None,
        "closeness": closeness_view(report.fidelity) if report.fidelity else None,
        "marginals": marginals_view(report.fidelity.marginals)
        if report.fidelity and report.fidelity.marginals
        else None,
        "columns": columns_view(report.columns) if report.columns and not _has_marginals(report) else None,
        "budget": report.budget,
    }
    return environment().get_template("report.html").render(parts)


def _has_marginals(report: Report) -> bool:
    """Then the real rows stand beside the synthetic ones already."""
    return report.fidelity is not None and report.fidelity.marginals is not None


def _owners_sheets(report: Report) -> list[str]:
    return ["owner.css"] if report.edition == OWNER else []


@cache
def environment() -> Environment:
    return Environment(
        loader=PackageLoader("limbeck.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def page_style(*names: str) -> Markup:
    """Style sheets of the package, joined as they stand in a page."""
    found = [environment().loader.get_source(environment(), name)[0] for name in names]  # type: ignore[union-attr]
    return Markup("\n".join(found))


def style_hash(style: str) -> str:
    """Lets the page's policy allow this style sheet, byte for byte, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
