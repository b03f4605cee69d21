"""Three sizes of the same work.

small   seconds to a minute a row: shows that a row runs, says nothing about the method, never on the page
cpu     minutes a row on two cores
full    the paper's own setting and its own way of training and averaging
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.papers.spec import SCALES, Run, Settings
from limbeck.errors import BadInput
from limbeck.evaluate.presets import Preset, preset_named

# Fewer steps, so longer ones, from a calmer start; chosen on training records of MNIST.
PSG_ON_A_CPU: Settings = {"R": 40, "T": 5, "K": 20, "J": 50, "width": 32, "eta": 1.0, "start": 0.3}

# Of all teachers; their own defaults are for two cores.
PAPERS_TEACHERS: Settings = {
    "teachers": 4000, "T": 149, "batch": 15, "teacher_batch": 15, "teacher_steps": 2, "first_steps": 10, "teacher_eta": 1e-3,
    "teacher_decay": 0.0, "first": 11, "hidden": 256, "latent": 50, "width": 128, "fit": 1,
}  # fmt: skip
PAPERS_DATALENS: Settings = {**PAPERS_TEACHERS, "k": 200, "beta": 0.7, "gamma": 1.0, "smooth": 0.0}
PAPERS_GPATE: Settings = {
    **PAPERS_TEACHERS, "kept": 10, "bins": 10, "c": 1e-3, "confident": 0.5, "gamma": 1.0, "smooth": 0.0,
}  # fmt: skip
PAPERS_PATEGAN: Settings = {
    **PAPERS_TEACHERS, "batch": 64, "student_steps": 1, "stray": 0.0, "coarse": 0.0, "learners": 64, "gamma": 0.0,
}  # fmt: skip
PAPERS_GSWGAN: Settings = {
    "K": 1000, "block": 1, "T": 20_000, "B": 32, "n_dis": 5, "M": 32, "T_w": 2000, "eta_G": 1e-4, "eta_D": 1e-4, "ema": 0.999,
    "latent": 10, "width": 64, "critic_width": 64,
}  # fmt: skip
FEW_TEACHERS: Settings = {"teachers": 40, "T": 2, "batch": 10, "teacher_steps": 1, "first_steps": 1, "fit": 1}

# What a scale changes for a method. A method that is not listed runs with its own defaults.
SETTINGS: dict[str, dict[str, Settings]] = {
    "ndpdc": {"small": {"I": 10, "width": 8}, "cpu": {"I": 2000, "width": 64}},
    "dm": {"small": {"I": 10, "width": 8, "L": 10}, "cpu": {"I": 1000, "width": 64, "L": 64}},
    "psg": {"small": {"R": 1, "T": 1, "K": 2, "J": 1, "width": 8}, "cpu": PSG_ON_A_CPU},
    "dc": {"small": {"R": 1, "T": 1, "J": 1, "width": 8, "L": 10}, "cpu": {"R": 100, "width": 32, "L": 64}},
    "dsa": {"small": {"R": 1, "T": 1, "J": 1, "width": 8, "L": 10}, "cpu": {"R": 100, "width": 32, "L": 64}},
    "dpmerf": {"small": {"features": 100, "T": 5}},
    "dpmerf-ae": {"small": {"features": 100, "T": 5, "T_ae": 5, "B": 200, "width": 8}},
    "dpsgd": {"small": {"T": 3, "width": 8}},
    "gswgan": {"small": {"K": 40, "T": 2, "B": 10, "snapshots": 0}, "full": PAPERS_GSWGAN},
    "datalens": {"small": FEW_TEACHERS, "full": PAPERS_DATALENS},
    "gpate": {"small": FEW_TEACHERS, "full": PAPERS_GPATE},
    "pategan": {"small": FEW_TEACHERS, "full": PAPERS_PATEGAN},
}
BULK = {"small": 20, "cpu": 1000, "full": 6000}
SMALL = Preset(name="small", width=8, epochs=2, lr=0.02, networks=1, source="a smoke test")


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How accuracy is measured: the training protocol, how many sets are made, and how many networks see each."""

    preset: Preset
    sets: int
    networks: int


# The papers' own and ours: preset, preset for sets of thousands, sets, networks.
PROTOCOLS: dict[str, tuple[str, str, int, int]] = {
    "limbeck": ("paper", "full", 2, 3),
    "dpdc": ("dpdc", "dpdc", 5, 1),
    "psg": ("psg", "psg-full", 1, 3),
    "datalens": ("datalens", "datalens", 1, 1),
    "gs-wgan": ("gs-wgan", "gs-wgan", 1, 5),
}


def checked_scale(scale: str) -> str:
    if scale not in SCALES:
        raise BadInput(f"The scales are small, cpu and full, got --scale {scale}.")
    return scale


def settings_at(run: Run, scale: str) -> dict[str, Any]:
    """The method's settings at this scale; the row's own count for more than the scale's."""
    settings = {**SETTINGS.get(run.method, {}).get(scale, {}), **run.settings}
    if run.bulk:
        settings["per_class"] = BULK[scale]
    return {**settings, **run.at.get(scale, {})}


def scoring_at(run: Run, scale: str) -> Scoring:
    preset, bulk_preset, sets, networks = PROTOCOLS[run.protocol]
    if scale == "full":
        return Scoring(preset=preset_named(bulk_preset if run.bulk else preset), sets=sets, networks=networks)
    if scale == "small":
        return Scoring(preset=SMALL, sets=1, networks=1)
    if run.protocol in ("gs-wgan", "datalens"):  # the small CNN takes epochs rather than time
        return Scoring(preset=preset_named("gs-wgan"), sets=1, networks=1 if run.protocol == "gs-wgan" else 3)
    if run.bulk:
        return Scoring(preset=preset_named("brief"), sets=1, networks=3)
    return Scoring(preset=preset_named("cpu"), sets=1, networks=5 if run.data.startswith("adult") else 3)
