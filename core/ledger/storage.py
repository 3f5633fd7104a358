"""What all logs and cursors of one broker share: the stores, the cache, the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from magnetar.core.kernel.clock import Clock
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.tail_cache import TailCache
from magnetar.core.ports.ledger_store import LedgerStore
from magnetar.core.ports.metadata_store import MetadataStore

if TYPE_CHECKING:
    from magnetar.core.ledger.cursor.cursor import Cursor
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger


class Storage(Struct, frozen=True):
    """What every managed ledger of one broker shares."""

    ledgers: LedgerStore
    metadata: MetadataStore
    cache: TailCache
    clock: Clock
    roll: RollLimits
    spawn: Callable[..., None]
    """Starts a task that outlives its caller (a nursery's `start_soon`)."""
    cursor_dirty: Callable[[Cursor], None]
    """Has a cursor saved soon."""
    gather: Callable[[ManagedLedger], None] | None = None
    """Has `write` called once this sweep is over, so that what all producers appended in it goes to
    storage as one run. None: every append is written at once."""
    skips_lost: bool = False
    """Readers skip unreadable entries; else they wait there until an operator skips them."""
