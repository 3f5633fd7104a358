"""How the C library treats freed memory: it retains some and returns the rest to the system.

By default glibc returns the top of its heap to the system whenever a megabyte of it is free,
and takes large blocks from the system one by one. Under a batched load that happens thousands of
times a second, and each page that comes back costs a fault, is cold, and (in a virtual machine that
returns free memory to its host) may have to be allocated by the host. The same load cost 0.14 or
0.20 us a message, depending on the heap's layout. With the limits below it always costs 0.13 us.

But glibc also retains everything below a block that is still in use, however much that is: after a
flood, most of the heap. So the server returns all free pages to the system (`malloc_trim`) when

    it is ready     its start has read and dropped much
    it is quiet     and has grown since it did so; a load takes them again, in some milliseconds
    under load      if for a while more was free than the retained amount

By default each thread has a heap of its own, whose free memory no other thread uses: those of the
checkpoint and of RocksDB had 20 MB each after a load. Here all threads share one. They seldom wait
for each other, since those that allocate much hold the interpreter's lock anyway.

glibc only; elsewhere nothing is changed.

The interpreter's own garbage, reference cycles that have become old, is looked for when the server
is quiet, after each million new objects or 1,000 topics that were unloaded, whose logs are cycles
of 8 KB. That is a pause, of 150 ms with 10,000 clients, so under load it has to be worth it.
"""

from __future__ import annotations

import ctypes
import gc
import math
import resource
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

TRIM_THRESHOLD: Final = -1
MMAP_THRESHOLD: Final = -3
ARENA_MAX: Final = -8
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
    return bool(
        mallopt(MMAP_THRESHOLD, BLOCK_BYTES)
        and mallopt(TRIM_THRESHOLD, KEPT_BYTES)
        and mallopt(ARENA_MAX, 1)
    )


LOOK_SECONDS: Final = 5.0
LOOKS: Final = 4
"""Memory that was free in this many checks in a row is not needed."""
QUIET_SHARE: Final = 0.1
"""The part of a core below which the server is quiet."""
NEW_ROUNDS: Final = 1_000
"""Collections of new objects only, since the last one of all: each is for 1,000 (`server.py`)."""
QUIET_TOPICS: Final = 1_000
LOADED_TOPICS: Final = 5_000
"""Topics that are unloaded before garbage is looked for, quietly or under load: 8 and 40 MB. To
unload them has taken seconds of CPU."""
QUIET_BYTES: Final = 2 * 1024 * 1024
"""Less memory than this is not worth a search."""
STATM: Final = Path("/proc/self/statm")


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


def give_back(kept_bytes: int = 0) -> None:
    """Return unused pages to the system, but for the end of the heap. Call it in a thread."""
    ctypes.CDLL(None).malloc_trim(kept_bytes)


def seconds_worked() -> float:
    """The CPU time of all threads so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_bytes() -> int:
    """What this process has in memory now. Linux only, as `free_counter`."""
    return int(STATM.read_bytes().split()[1]) * resource.getpagesize()


class Looks:
    """What regular checks have seen, and whether memory is to be given back."""

    def __init__(self) -> None:
        self.quiet = True
        self._free: deque[int] = deque(maxlen=LOOKS)
        self._worked = math.inf  # so that the first look finds a quiet server
        self._least_resident = self._least_free = 0
        """What was resident after memory was given back, and the least that was free since then; 0
        if the server has worked since.
        """

    def look(self, free_bytes: int, resident: int, worked: float) -> int | None:
        """The free and resident bytes and the CPU seconds now; returns how many bytes to retain,
        None for all.

        Bytes that were given back are still free ones, in the sense of the C library. So free bytes
        that grow are new ones; old ones that were used again and freed show in what is resident.
        """
        self.quiet = worked - self._worked < QUIET_SHARE * LOOK_SECONDS
        self._worked = worked
        if self.quiet:
            self._free.clear()
            grown = max(free_bytes - self._least_free, resident - self._least_resident)
            if min(free_bytes, grown) >= QUIET_BYTES:
                self._least_free = free_bytes
                return 0
            self._least_free = min(self._least_free, free_bytes)
            return None
        self._least_resident = self._least_free = 0
        self._free.append(free_bytes)
        if len(self._free) == LOOKS and min(self._free) > KEPT_BYTES:
            self._free.clear()
            return KEPT_BYTES
        return None

    def given_back(self, resident: int) -> None:
        """Note what is still resident now that memory was given back."""
        if self.quiet:
            self._least_resident = resident


class Garbage:
    """Garbage among old objects, which is looked for when there may be much."""

    def __init__(self) -> None:
        self._unloaded = 0

    def look(self, unloaded: int, *, quiet: bool) -> None:
        """Find it, if it is time; so many topics were unloaded since the start."""
        topics = unloaded - self._unloaded
        much_is_new = quiet and gc.get_count()[1] >= NEW_ROUNDS
        if much_is_new or topics >= (QUIET_TOPICS if quiet else LOADED_TOPICS):
            self._unloaded = unloaded
            gc.collect()


async def give_back_what_is_not_needed(unloaded: Callable[[], int] = lambda: 0) -> None:
    """Return memory that stays unused, for ever; `unloaded` says how many topics were."""
    free_bytes, looks, garbage = free_counter(), Looks(), Garbage()
    while True:
        if free_bytes is None:  # this C library does not count them
            kept_bytes = looks.look(0, 0, seconds_worked())
        else:
            kept_bytes = looks.look(free_bytes(), resident_bytes(), seconds_worked())
        garbage.look(unloaded(), quiet=looks.quiet)
        if kept_bytes is not None:
            await trio.to_thread.run_sync(give_back, kept_bytes)
            looks.given_back(resident_bytes())
        await trio.sleep(LOOK_SECONDS)
