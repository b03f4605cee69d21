"""The answers that a release of Elixir keeps, with all that they were asked with: whoever has them can match a set, or a
generator, to them again. They are noised and paid for, so that costs nothing (post-processing).

Guarantee: made of answers as the vault gave them, and of what the method made of the set and of earlier answers: networks,
centres, scales. No sum without its noise, no sample and no key of the vault is ever in the hands of a method. Changes and Fourier
directions are public random numbers of the step, drawn again from the settings on the certificate.

initial.NAME     the answers that the first set was made of: centre, distance, means, spread, moments
sizes            records of each class, public or bought
steps            (answers,): the step of each answer, oldest first
networks         (answers, weights) in half precision: those of the network that asked, which had been rounded before it did
centres, scales  (answers, classes, features), (answers,)
fourier_centres, fourier_scales
                 the same of the Fourier features, where there are any
targets          (answers, classes, numbers): the noised class sums over the expected records of the class
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from limbeck.methods.elixir.initial_set import PARTS, low_frequencies
from limbeck.methods.elixir.replay_buffer import Replay
from limbeck.nets.training.pool import Pool
from limbeck.privacy.schema import Schema
from limbeck.vault.api import Answer, Ask, Asked

INITIAL = "initial."
MOST_ANSWERS = 1_000_000
TYPES = {
    "steps": torch.int64,
    "networks": torch.float16,
    "scales": torch.float64,
    "fourier_scales": torch.float64,
}  # of the others: float32
POSITIVE = {"sizes", "scales", "fourier_scales"}


def rounded(body: Tensor) -> Tensor:
    """Weights as the file holds them, so that a question can be put again exactly."""
    return body.half().float()


class Remembering:
    """`ask`, which keeps the answers that the first set is made of."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.given: dict[str, Tensor] = {}

    def __call__(self, label: str, index: int, mapping: Asked) -> Answer:
        answer = self._ask(label, index, mapping)
        if label in PARTS:
            self.given[label] = answer.tensor()
        return answer


@dataclass(frozen=True, eq=False)
class KeptAnswers:
    """initial: by label. sizes: of the classes. replays: oldest first."""

    initial: Mapping[str, Tensor]
    sizes: Tensor
    replays: Sequence[Replay]

    def tensors(self) -> dict[str, Tensor]:
        """What the file holds."""

        def stacked(name: str) -> Tensor:
            return torch.stack([getattr(replay, name) for replay in self.replays]).cpu().contiguous()

        made = {f"{INITIAL}{label}": answer.cpu().contiguous() for label, answer in self.initial.items()}
        made |= {
            "sizes": self.sizes.cpu().float().contiguous(),
            "steps": torch.tensor([replay.step for replay in self.replays]),
            "networks": stacked("body").half(),
            "centres": stacked("centre"),
            "scales": torch.tensor([replay.scale for replay in self.replays], dtype=torch.float64),
            "targets": stacked("target"),
        }
        if self.replays[0].fourier_centre.numel():
            scales = [replay.fourier_scale for replay in self.replays]
            made |= {
                "fourier_centres": stacked("fourier_centre"),
                "fourier_scales": torch.tensor(scales, dtype=torch.float64),
            }
        return made

    @staticmethod
    def read(tensors: Mapping[str, Tensor], forms: Mapping[str, tuple[int, ...]]) -> KeptAnswers:
        """What `tensors` wrote. Raises ValueError unless every tensor is there with the form that it must have, and finite."""
        count = len(tensors["steps"]) if "steps" in tensors else 0
        if set(tensors) != set(forms) or not 0 < count <= MOST_ANSWERS:
            raise ValueError("names")
        for name, form in forms.items():
            expected = form if name == "sizes" or name.startswith(INITIAL) else (count, *form)
            if tensors[name].shape != expected or tensors[name].dtype != TYPES.get(name, torch.float32):
                raise ValueError(name)
            if tensors[name].is_floating_point() and not bool(tensors[name].isfinite().all()):
                raise ValueError(name)
        if int(tensors["steps"].min()) < 0 or not all(
            bool((tensors[name] > 0).all()) for name in POSITIVE & set(tensors)
        ):
            raise ValueError("steps, sizes or scales")
        return KeptAnswers(
            initial={name.removeprefix(INITIAL): value for name, value in tensors.items() if name.startswith(INITIAL)},
            sizes=tensors["sizes"],
            replays=[_replay(tensors, row) for row in range(count)],
        )

    def ask(self, label: str, index: int, mapping: Asked) -> Answer:
        """An answer of the first set, as it was given."""
        return Answer(self.initial[label].float().numpy().copy())


def _replay(tensors: Mapping[str, Tensor], row: int) -> Replay:
    target = tensors["targets"][row]
    none = target.new_zeros(len(target), 0)
    return Replay(
        step=int(tensors["steps"][row]),
        body=tensors["networks"][row].float(),
        centre=tensors["centres"][row],
        scale=float(tensors["scales"][row]),
        fourier_centre=tensors["fourier_centres"][row] if "fourier_centres" in tensors else none,
        fourier_scale=float(tensors["fourier_scales"][row]) if "fourier_scales" in tensors else 0.0,
        target=target,
    )


def forms_of(schema: Schema, pool: Pool, fourier: int) -> dict[str, tuple[int, ...]]:
    """The form of every tensor in the file; of those that all answers have one of, that of a single answer."""
    classes, coordinates = len(schema.classes), len(low_frequencies(schema))
    forms = {
        f"{INITIAL}centre": (schema.numbers,),
        f"{INITIAL}distance": (1,),
        f"{INITIAL}means": (classes, schema.numbers),
        f"{INITIAL}spread": (1,),
        f"{INITIAL}moments": (classes, coordinates**2),
        "sizes": (classes,),
        "steps": (),
        "networks": (pool.body_dimension,),
        "centres": (classes, pool.features),
        "scales": (),
        "targets": (classes, pool.features + fourier),
    }
    return forms | ({"fourier_centres": (classes, fourier), "fourier_scales": ()} if fourier else {})


def size_of(forms: Mapping[str, tuple[int, ...]], answers: int) -> int:
    """Bytes of so many answers, but for a header of some hundred."""
    return sum(
        math.prod(form)
        * TYPES.get(name, torch.float32).itemsize
        * (1 if name == "sizes" or name.startswith(INITIAL) else answers)
        for name, form in forms.items()
    )
