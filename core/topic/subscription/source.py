"""The source of a dispatcher's entries: the tail cache, else storage, one load at a time.

A plain call (`at`) returns entries or starts a load; when that ends, `arrived` is called on the
loop, and the dispatcher calls again. A failed load is tried again after a pause that doubles. A
request for another entry is served meanwhile.

A lost entry (`core/ledger/read/losses.py`, which logs it) is tried again in the same way, until a
client skips it. If the broker is set to skip lost entries, empty ones that count as acknowledged
take their place.

In a mixed topic every entry is loaded, because it is converted first (`foreign_entries.py`). In a
topic with transactions, entries before the first open one are returned, and among them markers and
those of aborted transactions are hidden: they count as acknowledged (PIP-31).

What is loaded, of all sources together, is bounded (`core/ledger/read/loaded_entries.py`): a load
may have to wait, and entries that nobody takes are let go of and loaded again.

Invariant: a source has at most one load; only confirmed entries are returned, and only those whose
transactions are decided; nothing is held after `stop`.
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
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.subscription.foreign_entries import Hide, converted, is_hidden

log = logging.getLogger(__name__)

LOAD_BYTES_MAX = 512 * 1024
LOAD_ENTRIES_MAX = 5_000
RETRY_SECONDS = 0.1
RETRY_SECONDS_MAX = 10.0


class EntrySource:
    """See the module's docstring."""

    __slots__ = (
        "_arrived", "_env", "_failed", "_hide", "_ledger", "_loaded", "_loading", "_resting",
        "_retry_seconds", "_sifted", "_stopped", "_unreadable",
    )  # fmt: skip

    def __init__(
        self,
        ledger: ManagedLedger,
        env: Environment,
        arrived: Callable[[], None],
        hide: Hide,
    ) -> None:
        self._ledger = ledger
        self._env = env
        self._arrived = arrived
        self._hide = hide
        self._loaded: Slice | None = None
        self._loading: Position | None = None
        self._failed: Position | None = None
        """The position whose load failed, during the pause."""
        self._retry_seconds = RETRY_SECONDS
        self._resting: trio.CancelScope | None = None
        """The pause of the last load that failed: there is one."""
        self._unreadable: Position | None = None
        """Where the last load began, if it has failed."""
        self._stopped = False
        self._sifted = (-1, 0, 0)
        """Ledger, first entry, and the one behind the last, of those looked at for hidden ones."""

    def at(
        self, position: Position, entries_max: int = LOAD_ENTRIES_MAX
    ) -> tuple[Slice, int] | None:
        """A slice and the place of `position` in it; None if it is not written or not loaded."""
        if not self._ledger.chain.has(position) or not self._stable(position):
            return None
        loaded = self._loaded
        if loaded is not None:
            start = position[1] - loaded.first_entry
            if loaded.ledger_id == position[0] and 0 <= start < len(loaded.payloads):
                return loaded, start
            self.forget()
        cached = self._ledger.cached(position)
        if cached is not None and not self._ledger.mixed:
            return self._decided(*cached) if self._ledger.transactions.present else cached
        if self._loading is None and position != self._failed:
            if self._failed is not None:
                self._failed, self._retry_seconds = None, RETRY_SECONDS
            self._loading = position
            self._unreadable = None
            self._env.spawn(self._load, position, entries_max)
        return None

    def has_failed(self, position: Position) -> bool:
        """Whether the last load began there, and failed."""
        return self._unreadable == position

    @property
    def pauses(self) -> bool:
        """Whether it has just failed, so that it is not tried again for a while."""
        return self._failed is not None

    def forget_failure(self) -> None:
        """Others are asked for first."""
        self._unreadable = None

    def is_gone(self, position: Position) -> bool:
        """Whether an entry was trimmed."""
        chain = self._ledger.chain
        return not chain.has(position) or chain.normal(position) != position

    def _decided(self, part: Slice, start: int) -> tuple[Slice, int]:
        """The cached entries whose transactions are decided; hidden ones are hidden by then."""
        transactions, ledger_id, first = self._ledger.transactions, part.ledger_id, part.first_entry
        end = transactions.stable_entries(ledger_id, first, len(part.payloads))
        sifted_ledger, sifted_from, sifted_to = self._sifted
        begin, stop = first + start, first + end
        if ledger_id != sifted_ledger or not sifted_from <= begin <= sifted_to:
            sifted_from = sifted_to = begin
        for place in range(sifted_to - first, end):
            if is_hidden(transactions, part, place):
                self._hide(ledger_id, first + place, first + place)
        self._sifted = (ledger_id, sifted_from, max(sifted_to, stop))
        return part.part(0, end), start

    def _stable(self, position: Position) -> bool:
        """Whether no open transaction began before that entry (PIP-31's read committed)."""
        transactions = self._ledger.transactions
        return not transactions.open or transactions.stable_entries(*position, 1) > 0

    def forget(self) -> None:
        """Drop loaded entries (seek, unload); they may be loaded again."""
        if self._loaded is not None:
            self._loaded = None
            self._env.loaded.let_go(self)

    def stop(self) -> None:
        """Nobody asks any more: drop what is loaded, and what is on its way."""
        self._stopped = True
        self.forget()
        self._end_pause()

    async def _load(self, position: Position, entries_max: int) -> None:
        memory, ledger = self._env.loaded, self._ledger
        entry_bytes = ledger.chain.entry_bytes(position[0], ledger.open_bytes)
        expected = max(min(memory.share, LOAD_BYTES_MAX), entry_bytes)
        load = await memory.begin(expected)
        try:
            if not self._stopped:
                self._take(await self._read(position, entries_max, min(expected, LOAD_BYTES_MAX)))
        except BrokerError as error:
            if self._ledger.losses.at(position) is None:
                log.error("%s: cannot read at %s: %s", self._ledger.name, position, error)
            self._failed = position
            self._unreadable = position
        else:
            self._retry_seconds = RETRY_SECONDS
        finally:
            memory.end(load)
            self._loading = None
        self._arrived()
        if self._failed == position and not self._stopped:  # others may be asked for at once
            await self._pause(position)

    def _take(self, loaded: Slice) -> None:
        if not self._stopped:
            self._loaded = loaded
            self._env.loaded.hold(self, sum(map(len, loaded.payloads)))

    async def _pause(self, position: Position) -> None:
        seconds = self._retry_seconds
        self._retry_seconds = min(seconds * 2, RETRY_SECONDS_MAX)
        self._end_pause()
        self._resting = resting = trio.CancelScope()
        with resting:
            await trio.sleep(seconds)
        if self._resting is resting:
            self._resting = None
            if self._failed == position:
                self._failed = None
            self._arrived()

    def _end_pause(self) -> None:
        """A later load has failed, which has a pause of its own, or nobody asks any more."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    async def _read(self, position: Position, entries_max: int, bytes_max: int) -> Slice:
        ledger = self._ledger
        cached = ledger.cached(position) if ledger.mixed else None
        if cached is None:
            read = ledger.losses.read_round if ledger.skips_lost else ledger.read
            part = await read(position, entries_max, bytes_max)
            if part.payloads[0] is EMPTY:
                self._hide(*position, position[1] + len(part.payloads) - 1)
        else:
            part = cached[0].part(cached[1], cached[1] + entries_max)
        if ledger.transactions.open:
            stable = ledger.transactions.stable_entries(*position, len(part.payloads))
            part = part.part(0, stable)
        if ledger.mixed:
            return await converted(part, self._hide, ledger)
        return self._decided(part, 0)[0] if ledger.transactions.present else part
