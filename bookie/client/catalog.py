"""The ledgers of a whole server, whose own metadata store names each that its bookie stores.

Each ledger is looked up by name: an absence from a listing proves nothing. (Apache compares
listings, and looks up single ledgers only with `verifyMetadataOnGC`:
`ScanAndCompareGarbageCollector.java` of 4.18.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import trio

from magnetar.bookie.client import metadata_loop
from magnetar.bookie.format import ledger_metadata
from magnetar.core.ports.metadata_store import MetadataStore

LEDGERS_PER_REST: Final = 100
"""Ledgers looked up before yielding to the loop: a millisecond or two."""


class ServerCatalog:
    """See the module's docstring; a `LedgerCatalog`."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata

    async def deleted(self, ledger_ids: Sequence[int]) -> list[int]:
        gone = []
        for count, ledger_id in enumerate(ledger_ids):
            if count % LEDGERS_PER_REST == 0:
                await trio.lowlevel.checkpoint()  # the store's `get` need not yield
            if await self._metadata.get(ledger_metadata.path_of(ledger_id)) is None:
                gone.append(ledger_id)
        return gone

    async def last_entries(self) -> Mapping[int, int]:
        return await metadata_loop.last_entries(self._metadata)

    async def owner(self, ledger_id: int) -> str:
        return ledger_metadata.owner(await metadata_loop.read(self._metadata, ledger_id))
