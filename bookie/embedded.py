"""One bookie inside this process, and the ledger client over it: the LedgerStore of one machine.

`open_embedded` opens the storage and identifies it; `running.py` starts and stops the parts.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from magnetar.bookie.client.catalog import ServerCatalog
from magnetar.bookie.client.store import LedgerClient
from magnetar.bookie.identification import identify, registered
from magnetar.bookie.machine.system import system_machine
from magnetar.bookie.running import RunningBookie, open_bookie
from magnetar.bookie.server.directories import claim
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.server.statistics import BookieStatistics
from magnetar.core.ports.group_commit import EventLoop
from magnetar.core.ports.ledger_store import LedgerInfo, LedgerReader, LedgerWriter
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.metadata_store import MetadataStore

if TYPE_CHECKING:
    from pathlib import Path

    from magnetar.bookie.server.ledgers.lent import LentLedgers

log = logging.getLogger(__name__)

EMBEDDED: Final = "/magnetar/embedded-bookies"
"""Leases of running bookies, by id."""


class EmbeddedStore:
    """A LedgerStore and a GroupCommit, with figures for the metrics."""

    def __init__(self, running: RunningBookie, client: LedgerClient) -> None:
        self._bookie = running.bookie
        self._parts = running
        self._client = client
        self.begin_group = running.flusher.begin_group
        """Promise to call `flush_group` before the loop turns: no task must be woken for it.

        That saves 10 us per sweep, much for a sweep that brings one message.
        """
        self.flush_group = running.flusher.flush_group
        """Hand everything appended since the last call to the journal, once per sweep.

        Without this call, a task does it at the loop's next turn.
        """

    async def create(self, properties: Mapping[str, bytes]) -> LedgerWriter:
        return await self._client.create(properties)

    async def open(self, ledger_id: int, *, recover: bool) -> LedgerReader:
        return await self._client.open(ledger_id, recover=recover)

    async def info(self, ledger_id: int) -> LedgerInfo:
        return await self._client.info(ledger_id)

    async def delete(self, ledger_id: int) -> None:
        await self._client.delete(ledger_id)

    @property
    def congested(self) -> bool:
        """Storage is behind: connections that write should not be read until this is False."""
        return self._bookie.congested

    def writable(self) -> bool:
        """False when the disk is too full, or has failed."""
        return self._bookie.writable

    def refusal(self) -> str:
        """Why writes are refused."""
        return "storage takes no writes: the disk is full, or has failed"

    def statistics(self) -> BookieStatistics:
        return self._parts.statistics()

    def drop_read_cache(self) -> None:
        """Forget what was read from entry logs, as at the end of a start: it reads logs through."""
        self._bookie.read_cache.clear()

    async def checkpoint(self) -> None:
        """Make a checkpoint now: for tests, benchmarks, operators."""
        await self._parts.checkpointer.checkpoint()
        await self._parts.checkpointer.retire()

    def lent(self) -> tuple[LentLedgers, RunningBookie]:
        """The ledgers for readers over the network, and the bookie that has them."""
        from magnetar.bookie.server.ledgers.lent import LentLedgers

        clock = self._parts.storage.machine.clock
        return LentLedgers(self._bookie, clock, spare_bytes=0), self._parts

    async def collect(self, *, compact_below: float) -> None:
        """Free the space of deleted ledgers now."""
        await self._parts.collector.collect(compact_below)


@asynccontextmanager
async def open_embedded(
    directory: Path,
    metadata: MetadataStore,
    settings: BookieSettings,
    *,
    on_fatal: Callable[[str], None],
    loop: EventLoop | None = None,
    machine: Machine | None = None,
) -> AsyncIterator[EmbeddedStore]:
    """Start the bookie below `directory`, replaying its journal; stop it cleanly at the end.

    `loop` is the server's event loop, which runs while this is open; without one, tasks watch the
    kernel's writes.

    `on_fatal` is called once, when storage has failed and the process should end: nothing is stored
    from then on. A bookie that cannot start (directory in use, foreign, newer, damaged) raises
    `StorageFailed` with a sentence for the operator. `machine` is this system by default.
    """
    machine = machine or system_machine()
    with claim(machine.disk, str(directory)) as directories:
        async with registered(metadata, settings.bookie_id, on_fatal):
            await identify(machine, directories, metadata, settings)
            catalog = ServerCatalog(metadata)
            async with open_bookie(
                machine, directories, catalog, settings, on_fatal, loop
            ) as running:
                yield EmbeddedStore(running, _client(running, metadata, settings))


def _client(
    running: RunningBookie, metadata: MetadataStore, settings: BookieSettings
) -> LedgerClient:
    machine, soon = running.storage.machine, running.flusher.call_soon
    return LedgerClient(settings.bookie_id, running.bookie, metadata, machine, soon)
