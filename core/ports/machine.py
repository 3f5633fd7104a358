"""The machine that storage runs on, as a port, so that a simulator can replace it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from magnetar.core.kernel.clock import Clock
from magnetar.core.ports.database import Databases
from magnetar.core.ports.disk import Disk
from magnetar.core.ports.threads import Threads


class Machine(Struct, frozen=True):
    """One machine, as a process on it sees it."""

    disk: Disk
    databases: Callable[[int], Databases]
    """Opens databases, with a cache of so many bytes."""
    clock: Clock
    threads: Threads
    random_bits: Callable[[int], int]
    """Returns a random number of so many bits."""
