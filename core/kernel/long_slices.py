"""Has a thread that computes for long give way to those that wake, on Linux 6.12 and newer.

Its scheduler lets a thread run to the end of its slice, 1.4 ms on two cores, before one that has
just been woken gets the core; unless the one that wakes has a shorter slice. So a thread that
computes asks for long slices (`sched_attr.sched_runtime`), and all others preempt it at once. Its
share of the core stays the same, as it would not with a lower priority: a thread that waits for
a core while it has the interpreter's lock stops all the others.

That does not help one that has had more than its share, as who publishes one message after the
other has. So compiled loops also offer the core (`sched_yield`) while they have not got the lock,
every ten to fifty microseconds: two in three of those that still waited for 1.4 ms do not any more.
Who reads files does so after each system call (`offer_core`), and so does the loop between parts of
long work (`core/compaction/time_share.py`).

On other systems only the loops do something: other schedulers have other rules.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading
from typing import Final

SLICE_NS: Final = 20_000_000
SYSCALLS: Final = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
"""The number of `sched_setattr` by architecture; the C library has no name for it before 2.41."""
LAYOUT: Final = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr`: its size, policy, flags, nice, priority, runtime, deadline, period."""
_asked: Final = threading.local()


def offer_core() -> None:
    """Let those run who wait for this core, without the interpreter's lock meanwhile."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


def give_way() -> None:
    """Ask for long slices for the calling thread, once."""
    if not getattr(_asked, "done", False):
        _asked.done = True
        ask()


def ask() -> bool:
    """The same; returns whether the kernel has taken it."""
    number = SYSCALLS.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        return False
    attributes = LAYOUT.pack(LAYOUT.size, 0, 0, 0, 0, SLICE_NS, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)
