"""What the C library does with memory that was freed: it keeps some, and gives the rest back.

Left to itself it gives the top of its heap back to the system whenever a megabyte of it is free,
and takes large blocks from the system one by one. Under a batched load that is thousands of times a
second, and each page that comes back is a fault, cold, and (in a virtual machine that gives its
host back what is free) perhaps the host's to find: the same load cost 0.14 or 0.20 us a message,
as memory happened to lie. With the limits below it stays where it is: 0.13 us each time.

But what lies below something that is still used stays, too, however much it is: after a flood that
was most of it. So it is looked now and then how much has been free for a while, and where that is
more than is kept, all of its pages go back to the system (`malloc_trim`).

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
"""Numbers of `mallopt`."""
KEPT_BYTES: Final = 64 * 1024 * 1024
"""At most so much is kept though nobody uses it."""
BLOCK_BYTES: Final = 16 * 1024 * 1024
"""Larger blocks still come from the system, and go back there."""


def keep_what_is_freed() -> bool:
    """Returns whether the C library has taken the setting."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_THRESHOLD, BLOCK_BYTES) and mallopt(TRIM_THRESHOLD, KEPT_BYTES))


LOOK_SECONDS: Final = 5.0
LOOKS: Final = 4
"""What was free at so many in a row is not needed."""


class _Counts(ctypes.Structure):
    """`struct mallinfo2`."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks")),
        ("keepcost", ctypes.c_size_t),
    )


def free_counter() -> Callable[[], int] | None:
    """Asks the C library how many bytes it has that nobody uses; None where it cannot say."""
    if sys.platform != "linux":
        return None
    count = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if count is None:
        return None
    count.restype = _Counts
    return lambda: int(count().fordblks)


def give_back() -> None:
    """Let the system have the pages that nobody uses. To be called in a thread."""
    ctypes.CDLL(None).malloc_trim(KEPT_BYTES)


async def give_back_what_is_not_needed() -> None:
    """For ever, where the C library is one that keeps it."""
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
