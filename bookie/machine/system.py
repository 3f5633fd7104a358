"""All ports of `core/ports/machine.py` on this system."""

from __future__ import annotations

import secrets

from magnetar.bookie.machine.disk import SystemDisk
from magnetar.bookie.machine.rocksdb import RocksDatabases
from magnetar.bookie.machine.threads import SystemThreads
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.ports.machine import Machine


def system_machine() -> Machine:
    """The ports on this system; their threads report to the running loop."""
    return Machine(SystemDisk(), RocksDatabases, SystemClock(), SystemThreads(), secrets.randbits)
