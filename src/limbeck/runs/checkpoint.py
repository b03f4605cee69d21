"""A method's checkpoint on the disk: its tensors at a step, and a digest that tells damage from what was written.

A safetensors file whose metadata holds the grant and a SHA-256 of grant, names, types, shapes and bytes. Files of versions
before the digest are read as before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from limbeck.errors import OutputFault, RunConflict
from limbeck.files import replacing

STEP = "step"
GRANT, DIGEST = "grant", "sha256"
# Tensors that versions before 0.6.0 did not keep. They matter to no set; a checkpoint without them leaves them as they begin.
LATER = frozenset({"means"})


def write_checkpoint(path: Path, grant: str, step: int, state: Mapping[str, Tensor]) -> None:
    """Whole or not at all, and on the disk when this returns."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    tensors[STEP] = torch.tensor(step)
    try:
        with replacing(path) as temporary:
            save_file(tensors, temporary, {GRANT: grant, DIGEST: digest_of(grant, tensors)})
    except (OSError, SafetensorError) as error:
        raise OutputFault(
            f"The checkpoint could not be written ({error}); free some space, then resume the run."
        ) from None


def restore_checkpoint(path: Path, grant: str, total: int, state: Mapping[str, Tensor]) -> int:
    """Fill the tensors of `state` in place and return the step; 0 where there is no checkpoint.

    Guarantee: nothing is taken from a file whose content is not what its digest says.
    """
    if not path.exists():
        return 0
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no mapping
    except (SafetensorError, OSError):
        raise _damaged(path) from None
    owner = metadata.get(GRANT, grant)
    # A name that is not known may be the digest's own, damaged.
    if set(metadata) - {GRANT, DIGEST} or metadata.get(DIGEST) not in (None, digest_of(owner, tensors)):
        raise _damaged(path)
    step = tensors.pop(STEP, None)
    if step is None or step.dtype != torch.int64 or step.ndim or not 0 <= int(step) <= total:
        raise _damaged(path)
    known = {name: tensor for name, tensor in state.items() if name in tensors or name not in LATER}
    if owner != grant or _forms(tensors) != _forms(known):
        raise RunConflict(f"The checkpoint {path} belongs to another run or configuration; put the right one back.")
    for name, tensor in tensors.items():
        state[name].copy_(tensor)
    return int(step)


def digest_of(grant: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(repr(grant).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _forms(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def _damaged(path: Path) -> RunConflict:
    return RunConflict(
        f"The checkpoint {path} is damaged, and the answers before it are gone; what the run has booked stays booked. "
        "Restore the file from a backup, or start a new run in another folder."
    )
