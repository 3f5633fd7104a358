"""The ledger client: LedgerStore over a link to each bookie. Quorums are 1/1/1 so far.

Recovery, as in `ReadOnlyLedgerHandle.recover` and `LedgerRecoveryOp.java` of BookKeeper 4.18: a
client that opens with `recover` writes IN_RECOVERY to the metadata, so that the old writer cannot
close the ledger; fences it, so that the writer cannot add; takes the last stored entry for the end;
and closes the ledger there. Every metadata write is conditional, so of two recoveries one closes,
and the other finds the ledger closed.

Apache reads forward from the highest LAC, entry by entry, and writes what it finds to the ensemble
again. With one bookie both can be left out: all that was acknowledged is stored there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from magnetar.bookie.client import metadata_loop
from magnetar.bookie.client.link import BookieLink
from magnetar.bookie.client.reader import Reader
from magnetar.bookie.client.writer import Writer
from magnetar.bookie.format import digests, ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.core.ports.ledger_store import LedgerInfo, LedgerReader, LedgerWriter, Quorums
from magnetar.core.ports.machine import Machine
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

MASTER_KEY: Final = digests.master_key(b"")
"""Of the empty password, which Pulsar's ledgers have."""


class LedgerClient:
    """See the module's docstring."""

    def __init__(
        self,
        bookie_id: str,
        link: BookieLink,
        store: MetadataStore,
        machine: Machine,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self._bookie_id = bookie_id
        self._link = link
        self._store = store
        self._machine = machine
        self._call_soon = call_soon
        self._writers: dict[int, Writer] = {}
        """Those that are not closed."""

    async def create(
        self, properties: Mapping[str, bytes], quorums: Quorums | None = None
    ) -> LedgerWriter:
        while True:
            ledger_id = await self._store.next(ledger_metadata.COUNTER)
            fresh = ledger_metadata.fresh(
                (self._bookie_id,),
                (1, 1),
                properties,
                self._machine.clock.wall_ms(),
                self._machine.random_bits(63),
            )
            try:
                await self._link.create(ledger_id, MASTER_KEY)
                await self._store.put(
                    ledger_metadata.path_of(ledger_id), ledger_metadata.encode(fresh), ABSENT
                )
            except AlreadyExists:
                continue
            break
        writer = Writer(
            ledger_id, MASTER_KEY, self._link, self._store, self._call_soon, self._writer_closed
        )
        self._writers[ledger_id] = writer
        return writer

    def _writer_closed(self, ledger_id: int) -> None:
        self._writers.pop(ledger_id, None)
        self._link.release(ledger_id)

    async def open(self, ledger_id: int, *, recover: bool) -> LedgerReader:
        ledger = await metadata_loop.read(self._store, ledger_id)
        if ledger.state != ledger_metadata.CLOSED and recover:
            ledger = await self._recover(ledger_id)
        if ledger.state == ledger_metadata.CLOSED:
            last = ledger.lastEntryId
            return Reader(ledger_id, self._link, lambda: last)
        writer = self._writers.get(ledger_id)
        if writer is not None:
            return Reader(ledger_id, self._link, lambda: writer.last_confirmed)
        found = await self._link.last_entry(ledger_id)
        confirmed = found.last_confirmed if found is not None else -1
        return Reader(ledger_id, self._link, lambda: confirmed)

    async def _recover(self, ledger_id: int) -> LedgerMetadata:
        def begin(ledger: LedgerMetadata) -> bool:
            if ledger.state != ledger_metadata.OPEN:
                return False
            ledger.state = ledger_metadata.IN_RECOVERY
            return True

        ledger = await metadata_loop.change(self._store, ledger_id, begin)
        if ledger.state == ledger_metadata.CLOSED:
            return ledger
        await self._link.fence(ledger_id, MASTER_KEY)
        found = await self._link.last_entry(ledger_id)

        def end(ledger: LedgerMetadata) -> bool:
            if ledger.state == ledger_metadata.CLOSED:
                return False
            ledger.state = ledger_metadata.CLOSED
            ledger.lastEntryId = found.entry_id if found is not None else -1
            ledger.length = found.length if found is not None else 0
            return True

        ledger = await metadata_loop.change(self._store, ledger_id, end)
        self._link.release(ledger_id)
        return ledger

    async def info(self, ledger_id: int) -> LedgerInfo:
        ledger = await metadata_loop.read(self._store, ledger_id)
        return ledger_metadata.info(ledger_id, ledger)

    async def delete(self, ledger_id: int) -> None:
        await metadata_loop.remove(self._store, ledger_id)
