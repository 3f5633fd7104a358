"""Ids for new ledgers, by the counters that Apache's clients use too.

    idgen                   ids of 31 bits, until they are used up
    idgen-long/HOB-NNNNNNNNNN   then ids of 63: this number, and 31 bits below

`HOB` are the high order bits. The one with the greatest number is in use; when it is full, whoever
finds it so makes the next one (`LongZkLedgerIdGenerator.java` of 4.18). Once `idgen-long` is there,
`idgen` is used no more.

Invariant: no id is given twice, by us or anybody else: each comes from a counter of the store.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.format.layout import SHORT_ID_MAX
from magnetar.core.kernel.errors import AlreadyExists, StorageFull
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

_HIGH: Final = re.compile(r"HOB-(\d{10})")


class LedgerIdGenerator:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster) -> None:
        self._store = store
        self._short = cluster.path("idgen")
        self._long = cluster.path("idgen-long")
        self._is_long = False

    async def next(self) -> int:
        """An id that no ledger has had."""
        if not self._is_long:
            self._is_long = await self._long_exists()
        if not self._is_long:
            number = await self._number(self._short)
            if number is not None:
                return number
            with suppress(AlreadyExists):
                await self._store.put(self._long, b"", ABSENT)
            self._is_long = True
        return await self._next_long()

    async def _long_exists(self) -> bool:
        return await self._store.get(self._long) is not None or bool(
            await self._store.children(self._long)
        )

    async def _next_long(self) -> int:
        while True:
            names = map(_HIGH.fullmatch, await self._store.children(self._long))
            high = max((int(match[1]) for match in names if match is not None), default=0)
            if high > 0:
                low = await self._number(self._high_path(high))
                if low is not None:
                    return (high << 32) | low
            with suppress(AlreadyExists):
                await self._store.put(self._high_path(high + 1), b"", ABSENT)

    def _high_path(self, high: int) -> str:
        return f"{self._long}/HOB-{high:010d}"

    async def _number(self, path: str) -> int | None:
        """The next number of a counter; None if it is used up."""
        try:
            number = await self._store.next(path)
        except StorageFull:
            return None
        return number if number <= SHORT_ID_MAX else None
