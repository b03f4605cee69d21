"""The pages of a new release: what people look at, as files by name. Made from the result and its certificate alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from limbeck.evaluate.synthetic_columns import synthetic_columns
from limbeck.methods import Result, SyntheticSet, TrainedModel
from limbeck.methods.mosaic.model import TableModel
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.report.card import data_card
from limbeck.report.model_card import model_card
from limbeck.report.page import Report, render, report_page
from limbeck.report.pictures import png_bytes, release_grid
from limbeck.report.strips import class_strips, snapshot_strips


def release_pages(certificate: Certificate, schema: Schema, result: Result) -> Mapping[str, bytes]:
    """Card and report; for a set its picture, too.

    Guarantee: reads nothing but its arguments, which are public, so every page may be released.
    """
    if isinstance(result, TrainedModel):
        card, page = model_card(certificate, schema, result.net), report_page(certificate, schema, None, None)
        return {"README.md": card.encode(), "report.html": page.encode()}
    return _set_pages(certificate, schema, result)


def _set_pages(certificate: Certificate, schema: Schema, result: SyntheticSet) -> Mapping[str, bytes]:
    grid = png_bytes(release_grid(result.x, result.y, schema))
    counts = np.bincount(result.y, minlength=len(schema.classes)).tolist()
    made_by = None if result.generator is None else result.generator.spec
    strips = class_strips(result.x, result.y, schema) if schema.is_image else ()
    kept = result.snapshots if schema.is_image else None
    report = Report(
        certificate=certificate,
        schema=schema,
        grid=None if strips else grid,
        strips=strips,
        snapshots=() if kept is None else snapshot_strips(kept, np.asarray(result.snapshots_after), result.y, schema),
        training_curves=result.course,
        generator=made_by is not None,
        columns=synthetic_columns(result.x, result.y, schema, _model(result, schema)),
    )
    return {
        "grid.png": grid,
        "README.md": data_card(certificate, schema, counts, made_by).encode(),
        "report.html": render(report).encode(),
    }


def _model(result: SyntheticSet, schema: Schema) -> TableModel | None:
    made = result.generator
    if made is None or not isinstance(made.spec, TableSpec):
        return None
    return TableModel.of(made.spec, made.weights, schema)
