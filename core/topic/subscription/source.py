"""Where a dispatcher gets entries: the tail cache at once, else storage, one load at a time.

A plain call (`at`) either has entries or sees to it that they come: then `arrived` is called on the
loop and the dispatcher asks again. A failed load is tried again after a pause that doubles, so that
a broken ledger costs log lines, not the loop; a request for another entry meanwhile is served.

An entry that is lost (`losses.py`) is waited for in the same way, and silently, for it has been
told: until somebody skips it, or the broker's settings say that all do. Then empty entries that are
acknowledged already stand in its place.

In a mixed topic every entry comes by a load, because it is converted first (`foreign_entries.py`).

Invariant: at most one load is under way per source; nothing that is not confirmed is returned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from magnetar.core.entry.empty import EMPTY
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.subscription.foreign_entries import Hide, converted

log = logging.getLogger(__name__)

LOAD_BYTES_MAX = 512 * 1024
LOAD_ENTRIES_MAX = 5_000
RETRY_SECONDS = 0.1
RETRY_SECONDS_MAX = 10.0


class EntrySource:
    """See the module's docstring."""

    __slots__ = (
        "_arrived", "_failed", "_hide", "_ledger", "_loaded", "_loading", "_retry_seconds",
        "_spawn",
    )  # fmt: skip

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
        self._failed: Position | None = None
        """It is tried again after a pause."""
        self._retry_seconds = RETRY_SECONDS

    def at(
        self, position: Position, entries_max: int = LOAD_ENTRIES_MAX
    ) -> tuple[Slice, int] | None:
        """A slice and the place of `position` in it; None if it is not there yet, or loads."""
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
        if self._loading is None and position != self._failed:
            if self._failed is not None:
                self._failed, self._retry_seconds = None, RETRY_SECONDS
            self._loading = position
            self._spawn(self._load, position, entries_max)
        return None

    def _stable(self, position: Position) -> bool:
        """Whether what stands there is decided, as far as it belongs to a transaction."""
        transactions = self._ledger.transactions
        return not transactions.open or transactions.stable_entries(*position, 1) > 0

    def forget(self) -> None:
        """What was loaded is of no use any more (seek, unload)."""
        self._loaded = None

    async def _load(self, position: Position, entries_max: int) -> None:
        try:
            self._loaded = await self._read(position, entries_max)
        except BrokerError as error:
            if self._ledger.losses.at(position) is None:
                log.error("%s: cannot read at %s: %s", self._ledger.name, position, error)
            self._failed = position
        else:
            self._retry_seconds = RETRY_SECONDS
        finally:
            self._loading = None
        if self._failed == position:
            await self._pause(position)
        self._arrived()

    async def _pause(self, position: Position) -> None:
        seconds = self._retry_seconds
        self._retry_seconds = min(seconds * 2, RETRY_SECONDS_MAX)
        await trio.sleep(seconds)
        if self._failed == position:
            self._failed = None

    async def _read(self, position: Position, entries_max: int) -> Slice:
        ledger = self._ledger
        cached = ledger.cached(position) if ledger.mixed else None
        if cached is None:
            read = ledger.losses.read_round if ledger.skips_lost else ledger.read
            part = await read(position, entries_max, LOAD_BYTES_MAX)
            if part.payloads[0] is EMPTY:
                self._hide(*position, position[1] + len(part.payloads) - 1)
        else:
            part = cached[0].part(cached[1], cached[1] + entries_max)
        if ledger.transactions.open:
            stable = ledger.transactions.stable_entries(*position, len(part.payloads))
            part = part.part(0, stable)
        return await converted(part, self._hide, ledger) if ledger.mixed else part
