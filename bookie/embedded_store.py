"""The LedgerStore of one machine: the ledger client over the bookie in this process.

`embedded.py` starts it. The link asks it several times in each sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from magnetar.bookie.client.store import LedgerClient
from magnetar.bookie.running import RunningBookie
from magnetar.bookie.server.statistics import BookieStatistics
from magnetar.core.ports.ledger_store import LedgerInfo, LedgerReader, LedgerWriter, Quorums

if TYPE_CHECKING:
    from magnetar.bookie.server.ledgers.lent import LentLedgers


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

    async def create(
        self, properties: Mapping[str, bytes], quorums: Quorums | None = None
    ) -> LedgerWriter:
        return await self._client.create(properties, quorums)

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

    def writable(self, quorums: Quorums | None = None) -> bool:
        """False when the disk is too full, or has failed."""
        return self._bookie.writable

    def refusal(self, quorums: Quorums | None = None) -> str:
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
