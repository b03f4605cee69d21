"""The model card: README.md of a release that is a model, with the front matter that the Hugging Face hub reads."""

from __future__ import annotations

from limbeck.nets import NetSpec
from limbeck.privacy.schema import Schema
from limbeck.release.certificate import Certificate
from limbeck.release.imprint import Imprint
from limbeck.report import wording
from limbeck.report.card import making, markdown_text, promise, said_by_the_owner, verifying, yaml_text
from limbeck.report.licences import licence_lines


def model_card(certificate: Certificate, schema: Schema, net: NetSpec, imprint: Imprint | None = None) -> str:
    sections = [
        _introduction(certificate, schema, net),
        *said_by_the_owner(imprint),
        promise(certificate, schema),
        making(certificate),
        _classes(schema),
        _loading(schema),
        verifying(),
    ]
    return _front_matter(certificate, schema, imprint) + "\n" + "\n\n".join(sections) + "\n"


def _front_matter(certificate: Certificate, schema: Schema, imprint: Imprint | None) -> str:
    kind = "image" if schema.is_image else "tabular"
    warnings = [headline for headline, _ in wording.warnings(certificate)]
    price = ", ".join(warnings) or f"epsilon {wording.exact(wording.epsilon_of(certificate))}"
    honest = [headline.lower().replace(" ", "-") for headline in warnings] or ["differential-privacy"]
    lines = [
        "---",
        f"model_name: {yaml_text(f'{schema.name}, classifier ({price})')}",
        *licence_lines(imprint),
        "tags:",
        *(f"- {tag}" for tag in [*honest, "limbeck"]),
        f"pipeline_tag: {kind}-classification",
        "---",
    ]
    return "\n".join(lines) + "\n"


def _introduction(certificate: Certificate, schema: Schema, net: NetSpec) -> str:
    loud = [f"> # {headline}\n>\n> **{text}**" for headline, text in wording.warnings(certificate)]
    name = markdown_text(schema.name)
    text = (
        f"A classifier ({net.kind}) of {len(schema.classes)} classes, trained on the private data set *{name}*. It is a "
        "release like any other: every look at the records was noised and paid for."
    )
    return "\n\n".join([f"# {name}, classifier", *loud, text])


def _classes(schema: Schema) -> str:
    rows = [f"| {index} | {markdown_text(name)} |" for index, name in enumerate(schema.classes)]
    return "\n".join(["## Classes", "", "| logit | class |", "| ---: | --- |", *rows])


def _loading(schema: Schema) -> str:
    shape = ", ".join(str(side) for side in schema.shape)
    if schema.columns:
        scaled = 'from limbeck import open_source\n\nx = torch.from_numpy(open_source("table.csv").load().x)'
        note = "`open_source` encodes the columns as the schema beside the table says; `x` is float32"
    else:
        scaled = f"x = 2 * (raw - {schema.low:g}) / {schema.high - schema.low:g} - 1"
        note = f"`raw` holds values from {schema.low:g} to {schema.high:g}; `x` is float32"
    return "\n\n".join(
        [
            "## How to use it",
            f"From this folder. {note} of shape (records, {shape}), scaled so that [-1, 1] is the public range of values:",
            f'```python\nimport limbeck\nimport torch\n\nmodel = limbeck.load_model(".")\n{scaled}\n'
            "with torch.no_grad():\n    classes = model(x).argmax(1)\n```",
            "`model.safetensors` holds the weights and `model.json` describes the network, for other programs.",
        ]
    )
