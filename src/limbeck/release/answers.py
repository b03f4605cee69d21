"""The answers of a run as a part of its release: noised, paid for, and listed on the certificate like every other file.

answers.safetensors    tensors by the names of the method's own format, such as limbeck.methods.elixir.answers

Guarantee: what a method was given and what it made of that; the writer has nothing else (limbeck.release.writer).
"""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from limbeck.errors import BadInput, NotAuthentic
from limbeck.files import write_atomic
from limbeck.release.certificate import Certificate
from limbeck.release.distilled import ANSWERS
from limbeck.release.statement import read_certificate

FORMAT = "1"


def write_answers(folder: Path, answers: dict[str, Tensor], method: str) -> None:
    write_atomic(folder / ANSWERS, save(answers, {"format": FORMAT, "method": method}))


def read_answers(release: Path) -> tuple[Certificate, dict[str, Tensor]]:
    """Of a release that keeps them; one that does not is refused in a sentence. `limbeck verify` checks it; this only reads."""
    certificate = read_certificate(release)
    if ANSWERS not in certificate.files:
        raise without_answers(release, certificate)
    try:
        with safe_open(release / ANSWERS, "pt") as file:
            stated = file.metadata() or {}
            if stated != {"format": FORMAT, "method": certificate.method}:
                raise ValueError(stated)
            return certificate, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no mapping
    except (OSError, ValueError, SafetensorError):
        raise damaged_answers(release) from None


def damaged_answers(release: Path) -> NotAuthentic:
    return NotAuthentic(
        f"The release in {release} is damaged: its answers cannot be read.", f"limbeck verify {release}"
    )


def without_answers(release: Path, certificate: Certificate) -> BadInput:
    if certificate.is_model:
        return BadInput(f"The release in {release} is a trained model; it keeps no answers to make a set of.")
    if certificate.distilled is not None:
        return BadInput(
            f"The release in {release} was itself distilled, so it keeps no answers. Take the release that its certificate "
            "cites; more sets of that one cost nothing either."
        )
    if certificate.has_generator:
        return BadInput(
            f"The release in {release} keeps no answers, but what it was made by: a generator, or a model of the table. That "
            "gives as many records as you like.",
            f"limbeck sample {release} --count 1000",
        )
    return BadInput(
        f"The release in {release} keeps no answers, so nothing more can be made of it (method '{certificate.method}'). Sets of "
        "elixir on images keep them from version 0.6.0 on, unless answers=false.",
        "limbeck methods",
    )
