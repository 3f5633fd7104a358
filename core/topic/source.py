"""Where a dispatcher gets entries: the tail cache at once, else storage, one load at a time.

A plain call (`at`) either has entries or sees to it that they come: then `arrived` is called on the
loop and the dispatcher asks again. A failed load is tried again after a pause that doubles, so that
a broken ledger costs log lines, not the loop.

In a mixed topic everything comes by a load, for it has to cross first (`mixed.py`).

Invariant: at most one load is under way per source; nothing that is not confirmed is returned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from core.errors import BrokerError
from core.ledger.chain import Position
from core.ledger.managed import ManagedLedger
from core.ledger.tail_cache import Slice
from core.topic.mixed import Hide, crossed

log = logging.getLogger(__name__)

LOAD_BYTES_MAX = 512 * 1024
LOAD_ENTRIES_MAX = 5_000
RETRY_SECONDS = 0.1
RETRY_SECONDS_MAX = 10.0


class EntrySource:
    """See the module's docstring."""

    __slots__ = ("_arrived", "_hide", "_ledger", "_loaded", "_loading", "_retry_seconds", "_spawn")

    def __init__(
        self,
        ledger: ManagedLedger,
        spawn: Callable[..., None],
        arrived: Callable[[], None],
        hide: Hide,
    ) -> None:
        self._ledger = ledger
        self._spawn = spawn
        self._arrived = arrived
        self._hide = hide
        self._loaded: Slice | None = None
        self._loading: Position | None = None
        self._retry_seconds = RETRY_SECONDS

    def at(
        self, position: Position, entries_max: int = LOAD_ENTRIES_MAX
    ) -> tuple[Slice, int] | None:
        """A slice and where in it `position` is; None if nothing is there yet, or on its way."""
        if not self._ledger.chain.has(position) or not self._stable(position):
            return None
        loaded = self._loaded
        if loaded is not None:
            start = position[1] - loaded.first_entry
            if loaded.ledger_id == position[0] and 0 <= start < len(loaded.payloads):
                return loaded, start
            self._loaded = None
        cached = self._ledger.cached(position)
        if cached is not None and not self._ledger.mixed:
            return cached
        if self._loading is None:
            self._loading = position
            self._spawn(self._load, position, entries_max)
        return None

    def _stable(self, position: Position) -> bool:
        """Whether what stands there is decided, as far as it belongs to a transaction."""
        transactions = self._ledger.transactions
        return transactions is None or transactions.stable_entries(*position, 1) > 0

    def forget(self) -> None:
        """What was loaded is of no use any more (seek, unload)."""
        self._loaded = None

    async def _load(self, position: Position, entries_max: int) -> None:
        try:
            self._loaded = await self._read(position, entries_max)
        except BrokerError as error:
            log.error("%s: cannot read at %s: %s", self._ledger.name, position, error)
            await trio.sleep(self._retry_seconds)
            self._retry_seconds = min(self._retry_seconds * 2, RETRY_SECONDS_MAX)
        else:
            self._retry_seconds = RETRY_SECONDS
        finally:
            self._loading = None
        self._arrived()

    async def _read(self, position: Position, entries_max: int) -> Slice:
        ledger = self._ledger
        cached = ledger.cached(position) if ledger.mixed else None
        if cached is None:
            part = await ledger.read(position, entries_max, LOAD_BYTES_MAX)
        else:
            part = cached[0].part(cached[1], cached[1] + entries_max)
        if ledger.transactions is not None:
            stable = ledger.transactions.stable_entries(*position, len(part.payloads))
            part = part.part(0, stable)
        return await crossed(part, self._hide, ledger) if ledger.mixed else part
