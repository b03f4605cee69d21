"""The data card: README.md of a release, with the front matter that the Hugging Face hub and `datasets` read.

The front matter is YAML, written here by hand: a JSON string is also a YAML string, so every text is quoted that way
and no class name can change its structure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from limbeck.errors import BadInput
from limbeck.nets.generators.graph_spec import GraphSpec
from limbeck.nets.generators.spec import GeneratorSpec
from limbeck.nets.generators.table_spec import TableSpec
from limbeck.privacy.dates import DATE
from limbeck.privacy.schema import Column, Schema
from limbeck.release.certificate import Certificate
from limbeck.release.formats import Sizes
from limbeck.release.imprint import Imprint
from limbeck.release.working_size import working_shape
from limbeck.report import wording
from limbeck.report.licences import licence_lines
from limbeck.report.loading import (
    DATA_FILE,
    generator_sentence,
    generator_snippet,
    parquet_sentence,
    scaling_sentence,
    set_snippets,
    size_sentence,
)

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def data_card(
    certificate: Certificate,
    schema: Schema,
    counts: Sequence[int],
    generator: GeneratorSpec | TableSpec | GraphSpec | None = None,
    sizes: Sizes | None = None,
    imprint: Imprint | None = None,
) -> str:
    """`counts`: synthetic records of each class, in the order of the schema's classes. `generator`: what is released too.
    `sizes`: of the Parquet file. `imprint`: what the owner says of themselves."""
    if len(counts) != len(schema.classes):
        raise BadInput(f"A data card needs one count per class, got {len(counts)} for {len(schema.classes)} classes.")
    sections = [
        _introduction(certificate, schema, counts),
        *said_by_the_owner(imprint),
        promise(certificate, schema),
        making(certificate),
        *([_classes(schema, counts)] if schema.has_label else []),
        _loading(schema, working_shape(certificate)),
        *([] if generator is None else [_more(generator)]),
        verifying(),
    ]
    return _front_matter(certificate, schema, sum(counts), sizes, imprint) + "\n" + "\n\n".join(sections) + "\n"


def yaml_text(text: str) -> str:
    """A quoted YAML string; what YAML counts as unprintable is written as an escape."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)


def markdown_text(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~$!])", r"\\\1", line)


def _code(text: str) -> str:
    return "`" + " ".join(text.replace("`", "'").split()) + "`"


def said_by_the_owner(imprint: Imprint | None) -> list[str]:
    rows = [] if imprint is None else imprint.rows
    return ["\n".join(f"- {name}: {markdown_text(value)}" for name, value in rows)] if rows else []


def _front_matter(
    certificate: Certificate, schema: Schema, records: int, sizes: Sizes | None, imprint: Imprint | None
) -> str:
    warnings = [headline for headline, _ in wording.warnings(certificate)]
    price = ", ".join(warnings) or f"epsilon {wording.exact(wording.epsilon_of(certificate))}"
    honest = [headline.lower().replace(" ", "-") for headline in warnings] or ["differential-privacy"]
    tags = ["synthetic", *honest, "dataset-condensation", "limbeck"]
    lines = [
        "---",
        f"pretty_name: {yaml_text(f'{schema.name}, synthetic ({price})')}",
        *licence_lines(imprint),
        "tags:",
        *(f"- {tag}" for tag in tags),
        *_tasks(schema),
        "size_categories:",
        f"- {next((name for limit, name in SIZES if records < limit), '1M<n<10M')}",
        "configs:",
        "- config_name: default",
        "  data_files:",
        "  - split: train",
        f"    path: {DATA_FILE}",
        "dataset_info:",
        "  features:",
        *_features(schema),
        "  splits:",
        "  - name: train",
        *([] if sizes is None else [f"    num_bytes: {sizes.memory}"]),
        f"    num_examples: {records}",
        *([] if sizes is None else [f"  download_size: {sizes.file}", f"  dataset_size: {sizes.memory}"]),
        "---",
    ]
    return "\n".join(lines) + "\n"


def _tasks(schema: Schema) -> list[str]:
    """What the set may be used for, in the hub's words: to predict the label and the targets."""
    kind = "image" if schema.is_image else "tabular"
    numeric = {column.numeric for column in schema.columns if column.name in schema.targets}
    found = [
        *([f"{kind}-classification"] if schema.has_label or False in numeric else []),
        *([f"{kind}-regression"] if True in numeric else []),
    ]
    return ["task_categories:", *(f"- {task}" for task in found)] if found else []


def _features(schema: Schema) -> list[str]:
    """The columns of the Parquet file, as the writer stores them."""
    if schema.is_image:
        names = [f"          '{index}': {yaml_text(name)}" for index, name in enumerate(schema.classes)]
        label = [f"  - name: {yaml_text(schema.label)}", "    dtype:", "      class_label:", "        names:", *names]
        return ["  - name: image", "    dtype: image", *label]
    kinds = [(column.name, _dtype(column)) for column in schema.columns]
    kinds = kinds or [(f"x{index}", "float64") for index in range(schema.numbers)]
    if schema.has_label:
        kinds.insert(len(kinds) if schema.label_at is None else schema.label_at, (schema.label, "string"))
    return [line for name, kind in kinds for line in (f"  - name: {yaml_text(name)}", f"    dtype: {kind}")]


def _dtype(column: Column) -> str:
    if column.kind:
        return "date32" if column.kind == DATE else '"timestamp[ms]"'
    return "string" if not column.numeric else "int64" if column.integer else "float64"


def _introduction(certificate: Certificate, schema: Schema, counts: Sequence[int]) -> str:
    loud = [f"> # {headline}\n>\n> **{text}**" for headline, text in wording.warnings(certificate)]
    shape = " x ".join(str(side) for side in schema.shape)
    what = f"pictures of {shape} values (channels, height, width)" if schema.is_image else "rows of a table"
    text = f"A synthetic stand-in for the data set *{markdown_text(schema.name)}*: {sum(counts)} made-up {what}"
    if schema.has_label:
        text += f" in {len(schema.classes)} classes, meant for training classifiers"
    if schema.targets:
        text += f"; {'also ' if schema.has_label else ''}meant for predicting {', '.join(map(_code, schema.targets))}"
    text += "."
    return "\n\n".join([f"# {markdown_text(schema.name)}, synthetic", *loud, text])


def promise(certificate: Certificate, schema: Schema) -> str:
    parts = ["## What is promised", *map(markdown_text, wording.promise(certificate))]
    limits = wording.not_promised(certificate, schema)
    if limits:
        parts += ["## What is not promised", "\n".join(f"- {markdown_text(limit)}" for limit in limits)]
    return "\n\n".join(parts)


def making(certificate: Certificate) -> str:
    title, paper = wording.method_words(certificate)
    after = f", after {markdown_text(paper)}" if paper else ""
    settings = ", ".join(_code(f"{key}={value}") for key, value in wording.setting_rows(certificate))
    parts = ["## How it was made", f"Method: {markdown_text(title)}{after}."]
    if settings:
        parts.append(f"Settings: {settings}.")
    parts.append(
        "The private records were read only through the sums that `certificate.json` lists, each with its clip, noise "
        "and sampling rate. `report.html` shows the same for reading."
    )
    return "\n\n".join(parts)


def _classes(schema: Schema, counts: Sequence[int]) -> str:
    rows = [
        f"| {index} | {markdown_text(name)} | {count} |"
        for index, (name, count) in enumerate(zip(schema.classes, counts, strict=True))
    ]
    return "\n".join(["## Classes", "", "| y | class | records |", "| ---: | --- | ---: |", *rows])


def _loading(schema: Schema, made_at: tuple[int, int] | None) -> str:
    parts = ["## How to load it", f"From inside this folder. {scaling_sentence(schema)}"]
    parts += [size_sentence(made_at)] if made_at else []
    for snippet in set_snippets(schema, made_at):
        parts += [f"{snippet.title}:", f"```python\n{snippet.code}\n```"]
    return "\n\n".join([*parts, markdown_text(parquet_sentence(schema))])


def _more(generator: GeneratorSpec | TableSpec | GraphSpec) -> str:
    some = (
        "\nlimbeck sample FOLDER --count 1000 --where 'COLUMN > 60'"
        if isinstance(generator, TableSpec | GraphSpec)
        else ""
    )
    return (
        f"## How to draw more records\n\n{markdown_text(generator_sentence(generator))}\n\n"
        f"```\nlimbeck sample FOLDER --count 1000 --seed 1 --out more.npz{some}\n```\n\n"
        f"or in Python:\n\n```python\n{generator_snippet().code}\n```"
    )


def verifying() -> str:
    return (
        "## How to verify it\n\n```\nlimbeck verify FOLDER\n```\n\n"
        "computes epsilon again from the listed queries, compares every file with its hash, and checks the signature."
    )
