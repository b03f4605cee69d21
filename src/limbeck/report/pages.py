"""The pages of a new release: what people look at, as files by name. Made from the result and its certificate alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from limbeck.evaluate.synthetic_columns import synthetic_columns
from limbeck.files import as_json
from limbeck.methods import Result, SyntheticSet, TrainedModel
from limbeck.methods.graphical.network import NetworkModel
from limbeck.methods.mosaic.model import TableModel
from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.formats import Sizes
from limbeck.release.imprint import NAME as IMPRINT
from limbeck.release.imprint import Imprint
from limbeck.report.card import data_card
from limbeck.report.drawn import drawn_strips
from limbeck.report.model_card import model_card
from limbeck.report.page import Report, render
from limbeck.report.pictures import png_bytes, release_grid
from limbeck.report.sites import site_rows
from limbeck.report.strips import class_strips, snapshot_strips


def release_pages(
    certificate: Certificate,
    schema: Schema,
    result: Result,
    sizes: Sizes | None = None,
    imprint: Imprint | None = None,
) -> Mapping[str, bytes]:
    """Card and report; for a set its picture, too; and what the owner says of themselves, if anything.

    Guarantee: reads nothing but its arguments, which are public, so every page may be released.
    """
    said = {} if imprint is None else {IMPRINT: as_json(imprint.to_dict())}
    if isinstance(result, TrainedModel):
        card = model_card(certificate, schema, result.net, imprint)
        page = render(Report(certificate=certificate, schema=schema, imprint=imprint))
        return {"README.md": card.encode(), "report.html": page.encode(), **said}
    return {**_set_pages(certificate, schema, result, sizes, imprint), **said}


def _set_pages(
    certificate: Certificate, schema: Schema, result: SyntheticSet, sizes: Sizes | None, imprint: Imprint | None
) -> Mapping[str, bytes]:
    grid = png_bytes(release_grid(result.x, result.y, schema))
    counts = np.bincount(result.y, minlength=len(schema.classes)).tolist()
    made_by = None if result.generator is None else result.generator.spec
    strips = class_strips(result.x, result.y, schema) if schema.is_image else ()
    kept = result.snapshots if schema.is_image else None
    sets = None if kept is None else (kept, np.asarray(result.snapshots_after))
    report = Report(
        certificate=certificate,
        schema=schema,
        imprint=imprint,
        grid=None if strips else grid,
        strips=strips,
        snapshots=() if sets is None else snapshot_strips(*sets, result.y, schema),
        training_curves=result.course,
        sites=site_rows(certificate, schema, result.course, sets, result.y),
        generator=made_by is not None,
        drawn=() if result.generator is None else drawn_strips(result.generator, schema),
        columns=synthetic_columns(result.x, result.y, schema, _model(result, schema)),
    )
    return {
        "grid.png": grid,
        "README.md": data_card(certificate, schema, counts, made_by, sizes, imprint).encode(),
        "report.html": render(report).encode(),
    }


def _model(result: SyntheticSet, schema: Schema) -> TableModel | NetworkModel | None:
    made = result.generator
    if made is not None and isinstance(made.spec, TableSpec):
        return TableModel.of(made.spec, made.weights, schema)
    if made is not None and isinstance(made.spec, GraphSpec):
        return NetworkModel.of(made.spec, made.weights, schema)
    return None
