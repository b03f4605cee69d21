"""How this process treats the memory that it frees, and what it says when there is none left."""

from __future__ import annotations

import ctypes
import errno

from limbeck.errors import OutOfMemory

# PyTorch has no class of its own for the processor's memory, only these words.
_WORDS = ("can't allocate memory", "not enough memory", "bad_alloc", "out of memory", "Storage size calculation")


def ran_out(error: BaseException) -> bool:
    """Whether an error of Python, NumPy, Arrow or PyTorch means that there was too little memory."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(word in str(error) for word in _WORDS)
    )


def out_of_memory(doing: str, next_command: str | None = None) -> OutOfMemory:
    """The sentence for it, without what the library says: that may tell about the records."""
    return OutOfMemory(
        f"There is not enough memory {doing}. Free some, use a larger machine, or take fewer records, smaller ones, "
        "or settings with smaller batches.",
        next_command,
    )


def keep_freed_memory() -> bool:
    """Let this process keep the memory that it frees; whether the C library could be told so (glibc can).

    Maps of a few megabytes come and go with every step. Given back to the system each time, they have to be mapped and
    cleared page by page when they are needed again, which takes as long as the arithmetic on them.
    """
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # names and numbers of malloc.h
    wanted = {trim_threshold: 1 << 30, top_pad: 1 << 26, mmap_threshold: 1 << 25}
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return False
    taken = [mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in wanted.items()]
    return all(taken)
