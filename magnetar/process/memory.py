"""How the C library treats freed memory: it retains some and returns the rest to the system.

By default glibc returns the top of its heap to the system whenever a megabyte of it is free,
and takes large blocks from the system one by one. Under a batched load that happens thousands of
times a second, and each page that comes back costs a fault, is cold, and (in a virtual machine that
returns free memory to its host) may have to be allocated by the host. The same load cost 0.14 or
0.20 us a message, depending on the heap's layout. With the limits below it always costs 0.13 us.

But glibc also retains everything below a block that is still in use, however much that is: after a
flood, most of the heap. So the server checks regularly how much has been free for a while, and if
that exceeds the retained amount, it returns all free pages to the system (`malloc_trim`).

glibc only; elsewhere nothing is changed.
"""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from collections.abc import Callable
from typing import Final

import trio

TRIM_THRESHOLD: Final = -1
MMAP_THRESHOLD: Final = -3
"""Option numbers of `mallopt`."""
KEPT_BYTES: Final = 64 * 1024 * 1024
"""The most free memory that is retained."""
BLOCK_BYTES: Final = 16 * 1024 * 1024
"""Larger blocks are still taken from the system and returned to it."""


def keep_what_is_freed() -> bool:
    """Make the C library retain freed memory; returns whether it accepted the settings."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_THRESHOLD, BLOCK_BYTES) and mallopt(TRIM_THRESHOLD, KEPT_BYTES))


LOOK_SECONDS: Final = 5.0
LOOKS: Final = 4
"""Memory that was free in this many checks in a row is not needed."""


class _Counts(ctypes.Structure):
    """`struct mallinfo2`."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks")),
        ("keepcost", ctypes.c_size_t),
    )


def free_counter() -> Callable[[], int] | None:
    """A function that returns the C library's free bytes; None if the library has none."""
    if sys.platform != "linux":
        return None
    count = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if count is None:
        return None
    count.restype = _Counts
    return lambda: int(count().fordblks)


def give_back() -> None:
    """Return unused pages to the system. Call it in a thread."""
    ctypes.CDLL(None).malloc_trim(KEPT_BYTES)


async def give_back_what_is_not_needed() -> None:
    """Return memory that stays unused, for ever; ends at once if the C library retains none."""
    counted = free_counter()
    if counted is None:
        return
    free: deque[int] = deque(maxlen=LOOKS)
    while True:
        await trio.sleep(LOOK_SECONDS)
        free.append(counted())
        if len(free) == LOOKS and min(free) > KEPT_BYTES:
            free.clear()
            await trio.to_thread.run_sync(give_back)
