"""How the command treats the memory that it frees."""

from __future__ import annotations

import ctypes


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
