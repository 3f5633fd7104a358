"""A bookie on a machine in memory, where a seed decides who runs when."""

import random
from contextlib import asynccontextmanager

import pytest

from magnetar.bookie.client.catalog import ServerCatalog
from magnetar.bookie.embedded import EmbeddedStore, _client, open_embedded
from magnetar.bookie.identification import identify
from magnetar.bookie.running import open_bookie
from magnetar.bookie.server.directories import claim
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.loops import NotedLoop
from magnetar.core.ports.machine import Machine
from magnetar.core.testing import FixedClock
from magnetar.core.testing.memory_database import MemoryDatabases
from magnetar.core.testing.stepped_threads import open_stepped_threads

START_MS = 1_700_000_000_000
QUIET = BookieSettings(
    checkpoint_interval_seconds=3600,
    disk_check_interval_seconds=3600,
    gc_interval_seconds=3600,
    scrub_bytes_per_second=0,
)
"""Nothing goes by the clock."""


class DiskLoop(NotedLoop):
    """Hears of descriptors from the disk that made them up."""

    def __init__(self, disk):
        super().__init__()
        self.watch = disk.watch


@asynccontextmanager
async def open_in_memory(
    disk, metadata, settings=QUIET, *, seed=0, now_ms=START_MS, ledgers=(), may_grow=False
):
    """The kernel writes the journal if the disk has direct writes, else a thread does. `ledgers`
    are ledger directories elsewhere, as only a bookie of its own process has them.
    """
    chance = random.Random(seed)
    async with open_stepped_threads(chance.randrange) as threads:
        clock = FixedClock(now_ms)
        machine = Machine(disk, MemoryDatabases, clock, threads, chance.getrandbits)
        opened = _open_parts if ledgers else _open_whole
        async with opened(machine, metadata, settings, ledgers, may_grow) as store:
            yield store


@asynccontextmanager
async def _open_whole(machine, metadata, settings, ledgers, may_grow):
    async with open_embedded(
        "/bookie",
        metadata,
        settings,
        on_fatal=pytest.fail,
        loop=DiskLoop(machine.disk),
        machine=machine,
    ) as store:
        yield store


@asynccontextmanager
async def _open_parts(machine, metadata, settings, ledgers, may_grow):
    with claim(machine.disk, "/bookie", "", ledgers) as directories:
        await identify(machine, directories, metadata, settings, may_grow=may_grow)
        catalog, loop = ServerCatalog(metadata), DiskLoop(machine.disk)
        async with open_bookie(
            machine, directories, catalog, settings, pytest.fail, loop
        ) as running:
            yield EmbeddedStore(running, _client(running, metadata, settings))
