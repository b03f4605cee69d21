"""How the command treats the memory that it frees."""

from __future__ import annotations

import ctypes
import resource

# What the libraries of a run map, most of it PyTorch's: measured on Linux with the pinned versions, nothing read yet.
LIBRARIES = 1.05


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


def limit_words() -> str:
    """What to know of a limit on this process's address space (ulimit -v); empty where none is set.

    >>> limit_words()
    ''
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return (
        f": a limit of {limit / 1e9:.2f} GB is set on its addresses (ulimit -v), and the libraries of a run alone map about "
        f"{LIBRARIES:g} GB before a record is read. Records are held or read in pieces in what is left; 1.5 GB are enough"
    )
