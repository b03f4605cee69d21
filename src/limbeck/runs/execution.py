"""The work of a booked run: records are opened, the method asks and makes its result, the release is staged and put in place."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from limbeck.errors import BadInput, OutputFault
from limbeck.methods import Method, Result, TrainedModel, method_named
from limbeck.methods.team import Team
from limbeck.progress import Reporter
from limbeck.runs.folder import is_staged, put_in_place, staging
from limbeck.runs.log import SECONDS_BETWEEN_CHECKPOINTS, RunLog
from limbeck.vault.api import Answer, Asked, Grant, Map, Vault


def carry_out(
    folder: Path,
    vault: Vault,
    grant: Grant,
    write_release: Callable[[Path, Result], None],
    reporter: Reporter,
    device: torch.device,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    start: TrainedModel | None = None,
    team: Team | None = None,
) -> None:
    """Run the method of a booked grant to its release, from wherever an earlier attempt got to.

    `start` is a model, released before, that the method is to go on from. `team`: who shares the method's own work.
    """
    staged = staging(folder)
    if not is_staged(folder):
        vault.open_records(grant)
        shutil.rmtree(staged, ignore_errors=True)
        method = method_named(grant.plan.method, grant.plan.settings)
        result = run_method(method, folder, vault, grant, reporter, device, checkpoint_seconds, start, team)
        try:
            staged.mkdir()
            write_release(staged, result)
        except OSError as error:
            raise OutputFault(f"The release could not be written: {error.strerror or error}.") from None
    vault.close(grant)
    put_in_place(folder)


def run_method(
    method: Method,
    folder: Path,
    vault: Vault,
    grant: Grant,
    reporter: Reporter,
    device: torch.device,
    every: float,
    start: TrainedModel | None = None,
    team: Team | None = None,
) -> Result:
    ask = Asking(vault, grant)
    logbook = RunLog(folder, vault, grant, reporter, every)
    if start is not None:
        return method.run_from(start, vault.describe(), ask, logbook, device)
    if team is not None:
        return method.run_shared(team, vault.describe(), ask, logbook, device)
    return method.run(vault.describe(), ask, logbook, device)


@dataclass(frozen=True)
class Asking:
    """What a method is handed: the answers of its own grant."""

    vault: Vault
    grant: Grant

    def __call__(self, label: str, index: int, mapping: Asked) -> Answer:
        return self.vault.ask(self.grant, label, index, mapping)

    @property
    def ahead(self) -> Callable[[str, int, Sequence[Map]], None] | None:
        """Have answers made together that will be asked one by one; None unless the vault is far away."""
        far = getattr(self.vault, "ahead", None)
        if far is None:
            return None

        def asked(label: str, first: int, mappings: Sequence[Map]) -> None:
            far(self.grant, [(label, first + number, mapping) for number, mapping in enumerate(mappings)])

        return asked

    @property
    def away(self) -> Away | None:
        """A way for a generator to where the teachers are; None unless they are far away and answer several in a row."""
        stays = getattr(self.vault, "stays", None)
        return None if stays is None else Away(stays, self.grant)


class Stays(Protocol):
    """A vault that is far away, where a generator may stay for a block of steps."""

    def end(self, step: int) -> int: ...

    def stay(self, grant: Grant, label: str, step: int, count: int, luggage: dict[str, Tensor]) -> None: ...


@dataclass(frozen=True)
class Away:
    """What a method with a generator is handed for its blocks of steps."""

    stays: Stays
    grant: Grant

    def end(self, step: int) -> int:
        return self.stays.end(step)

    def __call__(self, label: str, step: int, count: int, luggage: dict[str, Tensor]) -> None:
        self.stays.stay(self.grant, label, step, count, luggage)


@contextlib.contextmanager
def computing_with(threads: int) -> Iterator[None]:
    """With so many threads, and afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def checked_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
        return device
    except (RuntimeError, AssertionError):
        raise BadInput(f"The device '{name}' is not available here; use --device cpu.") from None
