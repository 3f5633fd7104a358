"""The range of damaged entries around one that cannot be read.

Each entry is read by itself, because intact ones may lie between damaged ones. That is quick, and
done once for each range. Blocks: for a thread.

Invariant: an entry counts as damaged only after a read at the location in the index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.bookie.server.ledger_storage import LedgerStorage
from magnetar.core.kernel.errors import Corrupted, StorageFailed

LOOK_BYTES: Final = 4096
"""Bytes read at first: most entries fit into them."""
LOOKS_PER_BREATH: Final = 50


class DamagedRange:
    """A range of consecutive unreadable entries of one ledger."""

    def __init__(
        self,
        storage: LedgerStorage,
        ledger_id: int,
        is_cached: Callable[[int], bool],
    ) -> None:
        """`is_cached` returns whether an entry is in the write cache."""
        self._storage = storage
        self._ledger_id = ledger_id
        self._is_cached = is_cached
        self._looks = 0

    def around(self, entry_id: int, last: int) -> tuple[int, int]:
        """The first and last entry of the range around `entry_id`; `last` ends the ledger."""
        first = end = entry_id
        while first > 0 and not self.is_readable(first - 1):
            first -= 1
        while end < last and not self.is_readable(end + 1):
            end += 1
        return first, end

    def is_readable(self, entry_id: int) -> bool:
        self._looks += 1
        if self._looks % LOOKS_PER_BREATH == 0:
            self._storage.pause()
        storage, ledger_id = self._storage, self._ledger_id
        location = storage.locations.find(ledger_id, entry_id)
        if location is None:
            if self._is_cached(entry_id):
                return True
            # It may have moved from the cache to the index between the two look-ups.
            location = storage.locations.find(ledger_id, entry_id)
        if location is None:
            return False
        try:
            run = storage.reader.read(ledger_id, entry_id, location, LOOK_BYTES)
            run.checked_payloads(entry_id, entry_id, 1)
        except (Corrupted, FileNotFoundError):
            return False
        except OSError as error:
            raise StorageFailed(f"the disk cannot be read: {error}") from error
        return True
