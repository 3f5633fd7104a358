"""The stores, the cache and the clock that all logs and cursors of one broker share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from magnetar.core.kernel.clock import Clock
from magnetar.core.ledger.buckets.index_memory import IndexMemory
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.tail_cache import TailCache
from magnetar.core.ports.ledger_store import LedgerStore
from magnetar.core.ports.metadata_store import MetadataStore


class UnsavedCursor(Protocol):
    """A cursor with unsaved changes."""

    def flush_if_due(self) -> None: ...


class PendingLog(Protocol):
    """A log with appends that storage has not been given yet."""

    def write(self) -> None: ...


class Storage(Struct, frozen=True):
    """One per broker."""

    ledgers: LedgerStore
    metadata: MetadataStore
    cache: TailCache
    clock: Clock
    roll: RollLimits
    spawn: Callable[..., None]
    """Starts a task that outlives its caller (a nursery's `start_soon`)."""
    cursor_dirty: Callable[[UnsavedCursor], None]
    """Called by a cursor that has changes to save."""
    gather: Callable[[PendingLog], None] | None = None
    """Called by a log whose `write` is to be called at the end of this sweep, so that what all
    producers appended in it is stored as one run. None: every append is written at once."""
    skips_lost: bool = False
    """Readers skip unreadable entries; else they wait there until an operator skips them."""
    index_memory: IndexMemory = field(default_factory=IndexMemory)
    unsealed: set[int] = field(default_factory=set)
    """Ledgers that could not be sealed when it was tried last: each is logged once."""
