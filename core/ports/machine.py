"""The machine that storage runs on, as a port, so that a simulator can replace it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from magnetar.core.kernel.clock import Clock
from magnetar.core.ports.database import Databases
from magnetar.core.ports.disk import Disk
from magnetar.core.ports.threads import Threads


class Machine(Struct, frozen=True):
    """The disk, clock, threads and other services of one machine."""

    disk: Disk
    databases: Callable[[int], Databases]
    """Returns an opener of databases with a cache of that many bytes."""
    clock: Clock
    threads: Threads
    random_bits: Callable[[int], int]
    """Returns a random number of that many bits."""
